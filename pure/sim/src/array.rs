//! An array: logical units behind ports, as one range of bytes.
//!
//! It is a state machine like the engine: a driver tells it what happens and when, and asks what follows. So
//! simulated time drives an array in an experiment, and a clock drives the same array behind a gateway. If
//! the driver is late, the array catches up: each event happens at the instant at which it was due.
//!
//! **Modelled**: the way of a request. The data of a write come in through a port
//! ([`LinkOptions`](crate::LinkOptions)). The storage controller handles the request for a fixed time. One
//! unit executes it, or several units at once ([`UnitOptions`](crate::UnitOptions)). The data of a read go
//! out through the same port. A request's tag decides its port, so that ports take turns. Units follow one
//! another, or are striped.
//!
//! A stall holds back everything inside the array, like firmware that hangs: disks end what they do, and
//! begin nothing. A flush is answered at once if all acknowledged writes are in NVRAM or on disk; with NVRAM,
//! that is always so. Without NVRAM, it is answered when the writes before it are on disk. Trims, writes of
//! zeroes, cache hints and block status requests only touch tables in memory, and cost only the storage
//! controller's time.
//!
//! **Not modelled**: two storage controllers that own units and fail over; a limit on a controller's commands
//! a second; a limit on outstanding commands.
//!
//! **Calibration**: the arrays of the Façade paper, HP's `FC60` (6 disks of 10,000 rpm in RAID-5, 256 MB) and
//! VA-7100 (10 disks of 15,000 rpm, 256 MB), behind Fibre Channel of 100 MB/s. [`crate::raid`] and
//! [`crate::cache`] have the figures of their manuals.

pub(crate) mod event;
mod flushes;
mod layout;
pub(crate) mod options;
pub(crate) mod slots;
#[cfg(test)]
mod tests;
pub(crate) mod utilisation;

use std::collections::VecDeque;

use weir_model::{Instant, IoKind, Span};

use crate::event_queue::EventQueue;
use crate::link::Link;
use crate::random::Seed;
use crate::unit::{DiskOperations, Unit};

use event::{Event, PartDone, Turn};
use flushes::Flushes;
use layout::{Map, Part};
pub use options::{ArrayError, ArrayOptions, Layout};
use slots::Slots;
pub use utilisation::Utilisation;

/// A request to an array.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Command {
    /// The driver's number for it; unique among the outstanding requests.
    pub tag: u32,
    /// What to do.
    pub kind: IoKind,
    /// First byte.
    pub offset: u64,
    /// Number of bytes; zero for a flush.
    pub length: u32,
}

/// The answer to a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Finished {
    /// Its tag.
    pub tag: u32,
    /// Whether it succeeded; false if more disks have failed than the layout survives.
    pub ok: bool,
}

/// An array.
#[derive(Debug)]
pub struct Array {
    size: u64,
    map: Map,
    units: Vec<Unit>,
    overheads: Vec<Span>,
    ports: Vec<Port>,
    requests: Slots<Request>,
    flushes: Flushes,
    /// Whether some unit answers a write only when it is on disk.
    writes_through: bool,
    events: EventQueue<Event>,
    stalled_until: Instant,
    finished: VecDeque<Finished>,
    /// Memory that each request uses again.
    done: Vec<PartDone>,
    parts: Vec<Part>,
}

/// A port's two directions.
#[derive(Debug)]
struct Port {
    inward: Link,
    outward: Link,
}

/// A request under way.
#[derive(Clone, Copy, Debug)]
struct Request {
    command: Command,
    /// How many of its parts are not done.
    parts: u32,
    ok: bool,
    /// The epoch of a write; see [`Flushes`].
    epoch: u64,
}

impl Array {
    /// An array that is idle and healthy.
    ///
    /// # Panics
    /// If the options do not pass [`ArrayOptions::check`].
    pub fn new(options: &ArrayOptions, seed: Seed) -> Self {
        if let Err(error) = options.check() {
            panic!("no array: {error}");
        }
        let units = (0..).zip(&options.units);
        let ports =
            options.ports.iter().map(|link| Port { inward: Link::new(*link), outward: Link::new(*link) });
        Self {
            size: options.size(),
            map: Map::new(options),
            units: units.map(|(number, unit)| Unit::new(number, unit, seed)).collect(),
            overheads: options.units.iter().map(|unit| unit.overhead).collect(),
            ports: ports.collect(),
            requests: Slots::new(),
            flushes: Flushes::new(),
            writes_through: options.units.iter().any(|unit| unit.cache.nvram == 0),
            events: EventQueue::new(),
            stalled_until: Instant::ORIGIN,
            finished: VecDeque::new(),
            done: Vec::new(),
            parts: Vec::new(),
        }
    }

    /// How many bytes it stores.
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// Takes a request, after the events that were due before it.
    ///
    /// # Panics
    /// If it does not lie inside of the array.
    pub fn submit(&mut self, now: Instant, command: Command) {
        let Command { offset, length, .. } = command;
        let end = offset.checked_add(u64::from(length));
        assert!(end.is_some_and(|end| end <= self.size), "{command:?} goes beyond {} bytes", self.size);
        self.handle_timeout(now);
        let request = self.requests.take();
        self.requests[request] = Request { command, parts: 0, ok: true, epoch: 0 };
        let arrives = self.arrival(now, command);
        if arrives > now || self.stalled_until > now {
            self.events.push(arrives, Event::Arrived(request));
        } else {
            self.begin(now, request);
        }
    }

    /// When to call [`Array::handle_timeout`]; `None` if nothing is under way.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.events.next_at().map(|at| at.max(self.stalled_until))
    }

    /// Time has passed: lets the events happen that are due.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(due) = self.events.next_at() {
            let at = due.max(self.stalled_until);
            if at > now {
                break;
            }
            if let Some(event) = self.events.pop_due(due) {
                self.handle_event(at, event);
            }
        }
    }

    /// The next answer.
    pub fn poll_finished(&mut self) -> Option<Finished> {
        self.finished.pop_front()
    }

    /// A disk of a logical unit fails. The others serve the requests to it, if the layout allows that.
    ///
    /// # Panics
    /// If there is no such disk.
    pub fn fail_disk(&mut self, now: Instant, unit: usize, disk: usize) {
        self.handle_timeout(now);
        let disk = u32::try_from(disk).expect("disks have small numbers");
        self.with_unit(now, unit, |unit, turn| unit.fail(turn, disk));
    }

    /// Replaces the first failed disk of a logical unit, and begins to rebuild the new one. Does nothing if
    /// no disk has failed, too many have, or one is being rebuilt.
    ///
    /// # Panics
    /// If there is no such unit.
    pub fn start_rebuild(&mut self, now: Instant, unit: usize) {
        self.handle_timeout(now);
        self.with_unit(now, unit, Unit::start_rebuild);
    }

    /// Stalls the array: no operation begins before `until`.
    pub fn stall(&mut self, now: Instant, until: Instant) {
        self.handle_timeout(now);
        self.stalled_until = self.stalled_until.max(until);
    }

    /// Whether every byte of a logical unit has the redundancy that its layout gives.
    ///
    /// # Panics
    /// If there is no such unit.
    pub fn is_healthy(&self, unit: usize) -> bool {
        self.units[unit].is_healthy()
    }

    /// The operations that a disk of a logical unit has done since it was put in.
    ///
    /// # Panics
    /// If there is no such disk.
    pub fn disk_operations(&self, unit: usize, disk: usize) -> DiskOperations {
        self.units[unit].done(u32::try_from(disk).expect("disks have small numbers"))
    }

    /// How busy its parts were from [`Instant::ORIGIN`] until now.
    pub fn utilisation(&self, now: Instant) -> Utilisation {
        let whole = now.since(Instant::ORIGIN).as_secs_f64();
        let share = |times: &mut dyn Iterator<Item = Span>| {
            let most = times.max().unwrap_or(Span::ZERO);
            if most.is_zero() { 0.0 } else { most.as_secs_f64() / whole }
        };
        let links = self.ports.iter().flat_map(|port| [&port.inward, &port.outward]);
        Utilisation {
            members: share(&mut self.units.iter().map(|unit| unit.busiest_member(now))),
            port: share(&mut links.map(|link| link.busy(now))),
            nvram_full: share(&mut self.units.iter().map(|unit| unit.nvram_full(now))),
        }
    }

    /// When a command is inside, and the storage controller has handled it.
    fn arrival(&mut self, now: Instant, command: Command) -> Instant {
        let Command { kind, offset, length, .. } = command;
        let inside = match self.port_of(command) {
            Some(port) if kind == IoKind::Write => port.inward.transfer(now, length),
            _ => now,
        };
        let unit = if self.overheads.len() == 1 { 0 } else { self.unit_at(offset) };
        inside + self.overheads[unit]
    }

    fn unit_at(&mut self, offset: u64) -> usize {
        self.map.split(offset.min(self.size - 1), 1, &mut self.parts);
        self.parts[0].unit
    }

    fn port_of(&mut self, command: Command) -> Option<&mut Port> {
        let count = self.ports.len();
        if count == 0 { None } else { self.ports.get_mut(command.tag as usize % count) }
    }

    fn handle_event(&mut self, now: Instant, event: Event) {
        match event {
            Event::Arrived(request) => self.begin(now, request),
            Event::Answered(request) => self.answer(request),
            Event::Operation { unit, generation, member, operation } => {
                self.with_unit(now, unit.into(), |unit, turn| {
                    unit.handle_operation(turn, member, generation, operation);
                });
            }
            Event::FlushDue { unit } => self.with_unit(now, unit.into(), Unit::handle_flush_due),
            Event::RebuildDue { unit, generation } => {
                self.with_unit(now, unit.into(), |unit, turn| unit.handle_rebuild_due(turn, generation));
            }
        }
    }

    fn with_unit(&mut self, now: Instant, unit: usize, act: impl FnOnce(&mut Unit, &mut Turn<'_>)) {
        let mut turn = Turn { now, events: &mut self.events, done: &mut self.done };
        act(&mut self.units[unit], &mut turn);
        self.finish_parts(now);
    }

    /// A request is inside: gives it to its units.
    fn begin(&mut self, now: Instant, request: u32) {
        let Command { kind, offset, length, .. } = self.requests[request].command;
        match kind {
            IoKind::Read | IoKind::Write if length > 0 => {
                self.map.split(offset, length.into(), &mut self.parts);
                self.begin_parts(now, request, kind == IoKind::Write);
            }
            IoKind::Flush if self.writes_through => {
                self.flushes.flush_comes(request);
                self.finish_flushes();
            }
            _ => self.answer(request),
        }
    }

    fn begin_parts(&mut self, now: Instant, request: u32, write: bool) {
        if write && self.writes_through {
            self.requests[request].epoch = self.flushes.write_begins();
        }
        let mut turn = Turn { now, events: &mut self.events, done: &mut self.done };
        for Part { unit, offset, length } in self.parts.iter().copied() {
            let unit = &mut self.units[unit];
            self.requests[request].parts += if write {
                unit.write(&mut turn, request, offset, length)
            } else {
                unit.read(&mut turn, request, offset, length);
                1
            };
        }
        self.finish_parts(now);
    }

    fn finish_parts(&mut self, now: Instant) {
        // By index, because `finish` borrows all of the array. In the order in which the parts were done. To
        // finish a request ends no other part, so the list does not grow.
        for part in 0..self.done.len() {
            let PartDone { request, ok } = self.done[part];
            let under_way = &mut self.requests[request];
            under_way.ok &= ok;
            under_way.parts -= 1;
            if under_way.parts == 0 {
                self.finish(now, request);
            }
        }
        self.done.clear();
    }

    /// All parts of a request are done.
    fn finish(&mut self, now: Instant, request: u32) {
        let Request { command, ok, epoch, .. } = self.requests[request];
        if command.kind == IoKind::Write {
            self.answer(request);
            if self.writes_through {
                self.flushes.write_ends(epoch);
                self.finish_flushes();
            }
            return;
        }
        match self.port_of(command) {
            Some(port) if ok => {
                let at = port.outward.transfer(now, command.length);
                self.events.push(at, Event::Answered(request));
            }
            _ => self.answer(request),
        }
    }

    fn finish_flushes(&mut self) {
        while let Some(request) = self.flushes.poll() {
            self.answer(request);
        }
    }

    fn answer(&mut self, request: u32) {
        let Request { command, ok, .. } = self.requests[request];
        self.finished.push_back(Finished { tag: command.tag, ok });
        self.requests.give_back(request);
    }
}

impl Default for Request {
    fn default() -> Self {
        let command = Command { tag: 0, kind: IoKind::Flush, offset: 0, length: 0 };
        Self { command, parts: 0, ok: true, epoch: 0 }
    }
}
