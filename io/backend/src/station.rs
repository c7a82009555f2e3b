//! A device made of k servers, each of which takes the same time for a request, in real time.
//!
//! It is the textbook model of a disk array that several volumes share, and everybody can run it. The station
//! serves k requests at a time, `k / service time` a second. All others wait in one line, first come, first
//! served.
//!
//! Nothing has to be simulated, because the service time is constant. A request starts when it arrives, or
//! when the request k places before it ends, whichever is later. So its end is known when it arrives. A
//! driver that looks late loses no server's time. Example: with k = 2 and 10 ms, requests that arrive at 0, 0
//! and 3 ms end at 10, 10 and 20 ms.
//!
//! **Every kind takes a server**, also a flush, a trim and a question. A flush that overtook the line would
//! be answered as if the disk were idle. A kind that cost nothing would be a way around the queue that the
//! model is there to show.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::num::NonZeroU32;
use std::rc::Rc;

use weir_model::{Instant, Span};

use crate::memory::MemoryDevice;
use crate::{BlockDevice, DeviceRequest, Finished, Properties};

/// The servers, shared by the volumes of a station.
#[derive(Debug)]
pub(crate) struct Station {
    servers: usize,
    service_time: Span,
    /// When the last `servers` requests end, served or waiting, in increasing order.
    ends: VecDeque<Instant>,
}

/// One volume of a station. Its bytes are in memory; they change when the request ends.
#[derive(Debug)]
pub(crate) struct StationDevice {
    station: Rc<RefCell<Station>>,
    memory: MemoryDevice,
    /// This volume's requests, by the instants at which they end.
    pending: VecDeque<(Instant, DeviceRequest)>,
}

impl Station {
    /// A station that is idle.
    pub(crate) fn new(servers: NonZeroU32, service_time: Span) -> Self {
        let servers = usize::try_from(servers.get()).expect("32 bits fit");
        Self { servers, service_time, ends: VecDeque::new() }
    }

    /// Adds a request, and returns when it will end. `now` must not go back.
    fn admit(&mut self, now: Instant) -> Instant {
        while self.ends.front().is_some_and(|end| *end <= now) {
            self.ends.pop_front();
        }
        let free = if self.ends.len() < self.servers { None } else { self.ends.pop_front() };
        let end = free.unwrap_or(now) + self.service_time;
        self.ends.push_back(end);
        end
    }
}

impl StationDevice {
    /// A volume on `station` with its bytes in `memory`.
    pub(crate) fn new(station: Rc<RefCell<Station>>, memory: MemoryDevice) -> Self {
        Self { station, memory, pending: VecDeque::new() }
    }
}

impl BlockDevice for StationDevice {
    fn properties(&self) -> Properties {
        self.memory.properties()
    }

    fn start(&mut self, now: Instant, request: DeviceRequest, _finished: &mut Vec<Finished>) {
        let end = self.station.borrow_mut().admit(now);
        self.pending.push_back((end, request));
    }

    fn poll_finished(&mut self, now: Instant, finished: &mut Vec<Finished>) {
        while self.pending.front().is_some_and(|(end, _)| *end <= now) {
            let (_, request) = self.pending.pop_front().expect("there is one in front");
            finished.push(self.memory.execute(request));
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.pending.front().map(|(end, _)| *end)
    }
}

#[cfg(test)]
mod tests;
