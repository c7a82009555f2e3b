//! The array that all gateways share. It knows no gateways, so it also does what a dead process has asked
//! for.

use weir_engine::Request;
use weir_model::{Instant, IoId, Span, VolumeId};

use crate::array::{Array, ArrayOptions, Command, Finished, Utilisation};
use crate::member::MemberOptions;
use crate::random::Seed;
use crate::station::StationOptions;

/// The size of the array in bytes. Only the number of requests matters to a station.
pub(super) const SIZE: u64 = 1 << 30;

/// The array, and the gateways that its requests came from.
#[derive(Debug)]
pub(super) struct Device {
    array: Array,
    options: StationOptions,
    /// By tag.
    asked: Vec<Option<Asked>>,
    free: Vec<u32>,
    at_array: u32,
}

/// A request at the array.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub gateway: usize,
    /// The run (the process) of the gateway.
    pub run: u64,
    pub id: IoId,
    pub volume: VolumeId,
}

impl Device {
    pub(super) fn new(options: StationOptions, seed: Seed) -> Self {
        let array = ArrayOptions::bare(MemberOptions::Station(options), SIZE);
        Self { array: Array::new(&array, seed), options, asked: Vec::new(), free: Vec::new(), at_array: 0 }
    }

    pub(super) fn submit(&mut self, now: Instant, asked: Asked, request: Request) {
        let tag = self.free.pop().unwrap_or_else(|| {
            self.asked.push(None);
            u32::try_from(self.asked.len() - 1).expect("fewer than 2^32 requests")
        });
        self.asked[tag as usize] = Some(asked);
        self.at_array += 1;
        let Request { kind, offset, length, .. } = request;
        self.array.submit(now, Command { tag, kind, offset, length });
    }

    pub(super) fn next_at(&self) -> Instant {
        self.array.poll_timeout().unwrap_or(Instant::FAR_FUTURE)
    }

    /// The next request that is done by now.
    pub(super) fn poll_finished(&mut self, now: Instant) -> Option<(Asked, bool)> {
        if self.next_at() <= now {
            self.array.handle_timeout(now);
        }
        let Finished { tag, ok } = self.array.poll_finished()?;
        self.free.push(tag);
        self.at_array -= 1;
        let asked = self.asked[tag as usize].take().expect("the array finishes what it was given");
        Some((asked, ok))
    }

    /// How many requests are at the array.
    pub(super) const fn at_array(&self) -> u32 {
        self.at_array
    }

    /// The longest time until all requests at the array are done.
    pub(super) fn drains_in(&self) -> Span {
        let rounds = self.at_array.div_ceil(self.options.servers.get()) + 1;
        self.options.service_time.saturating_mul(rounds.into())
    }

    pub(super) fn utilisation(&self, now: Instant) -> Utilisation {
        self.array.utilisation(now)
    }
}
