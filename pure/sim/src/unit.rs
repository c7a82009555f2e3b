//! A logical unit: members behind a controller, as one range of bytes.
//!
//! **Modelled**: reads and writes as operations on members ([`crate::raid`]), through the controller's memory
//! ([`crate::cache`]); adjacent parts of a request on one member are one operation; the members of a pair
//! take the reads by the length of their queues. A member fails: what it was asked for is done without it, if
//! the layout survives that, and the whole unit is lost if not. A failed member is replaced and rebuilt part
//! after part, at a given pace; what is rebuilt is healthy.
//!
//! **Not modelled**: locks between writes to one row that do not come from NVRAM, nor between a write and the
//! rebuilding of its row; the time until a controller notices that a disk has failed; checksums, retries,
//! sectors that cannot be read; time on the links between controller and members, which is part of the
//! members' own figures.
//!
//! **Calibration**: see [`crate::raid`] and [`crate::cache`] for the arrays of the papers.

mod job;
mod members;
pub(crate) mod options;
mod read;
mod repair;
#[cfg(test)]
mod tests;
mod write;

use std::collections::VecDeque;

use weir_model::{Instant, Span};

use crate::array::event::{PartDone, Turn};
use crate::array::slots::Slots;
use crate::array::utilisation::Stopwatch;
use crate::cache::{BLOCK, CacheOptions, Nvram, ReadCache, Streams};
use crate::raid::row_write::ColumnRange;
use crate::raid::{Extent, Geometry};
use crate::random::Seed;

use job::{Job, Kind};
pub use members::DiskOperations;
use members::{LostOperation, Members};
pub use options::{UnitError, UnitOptions};
use repair::Rebuild;
use write::WaitingWrite;

/// A logical unit.
#[derive(Debug)]
pub(crate) struct Unit {
    number: u16,
    size: u64,
    geometry: Geometry,
    options: UnitOptions,
    members: Members,
    /// More members have failed than the layout survives.
    lost: bool,
    jobs: Slots<Job>,
    /// Jobs that wait for nothing any more.
    ready: Vec<u32>,
    nvram: Nvram,
    /// Requests that found no room in NVRAM, in the order in which they came.
    waiting: VecDeque<WaitingWrite>,
    /// While there are any.
    nvram_full: Stopwatch,
    /// Rows that are being destaged.
    destaging: u32,
    flush_timer: bool,
    read_cache: ReadCache,
    streams: Streams,
    rebuild: Option<Rebuild>,
    /// Memory that is used anew for each request.
    extents: Vec<Extent>,
    ranges: Vec<ColumnRange>,
}

impl Unit {
    /// One that is idle and healthy.
    ///
    /// # Panics
    /// If the options do not pass their check.
    pub(crate) fn new(number: u16, options: &UnitOptions, seed: Seed) -> Self {
        let geometry = options.geometry();
        let CacheOptions { nvram, read_cache, prefetch, .. } = options.cache;
        Self {
            number,
            size: options.bytes(),
            geometry,
            options: options.clone(),
            members: Members::new(number, &options.member, options.members, seed),
            lost: false,
            jobs: Slots::new(),
            ready: Vec::new(),
            nvram: Nvram::new(nvram / BLOCK, geometry.row_bytes() / BLOCK),
            waiting: VecDeque::new(),
            nvram_full: Stopwatch::default(),
            destaging: 0,
            flush_timer: false,
            read_cache: ReadCache::new(read_cache / BLOCK),
            streams: Streams::new(prefetch / BLOCK),
            rebuild: None,
            extents: Vec::new(),
            ranges: Vec::new(),
        }
    }

    /// Reads bytes for a request; it will be told of once.
    pub(crate) fn read(&mut self, turn: &mut Turn<'_>, request: u32, offset: u64, length: u64) {
        if self.lost {
            turn.done.push(PartDone { request, ok: false });
        } else {
            self.begin_read(turn, request, offset, length);
            self.settle(turn);
        }
    }

    /// Writes bytes for a request; how often it will be told of.
    pub(crate) fn write(&mut self, turn: &mut Turn<'_>, request: u32, offset: u64, length: u64) -> u32 {
        if self.lost {
            turn.done.push(PartDone { request, ok: false });
            return 1;
        }
        let parts = self.begin_write(turn, request, offset, length);
        self.settle(turn);
        parts
    }

    /// An operation on a member ends.
    pub(crate) fn handle_operation(
        &mut self,
        turn: &mut Turn<'_>,
        member: u32,
        generation: u16,
        operation: u32,
    ) {
        if let Some(job) = self.members.finish(turn, member, generation, operation) {
            self.job_goes_on(job);
            self.settle(turn);
        }
    }

    /// The oldest row in NVRAM may have become too old.
    pub(crate) fn handle_flush_due(&mut self, turn: &mut Turn<'_>) {
        self.flush_timer = false;
        self.destage(turn);
        self.settle(turn);
    }

    /// The next part of a member is to be rebuilt.
    pub(crate) fn handle_rebuild_due(&mut self, turn: &mut Turn<'_>, generation: u16) {
        self.rebuild_next(turn, generation);
        self.settle(turn);
    }

    /// A member fails. Nothing, if it has failed already.
    pub(crate) fn fail(&mut self, turn: &mut Turn<'_>, member: u32) {
        for LostOperation { job, extent, write } in self.lose_member(turn.now, member) {
            self.operation_lost(turn, job, extent, write);
        }
        if self.lost {
            self.destage(turn);
            self.refuse_waiting(turn);
        }
        self.settle(turn);
    }

    /// The first failed member is replaced and rebuilt; nothing, if there is none, or the unit is lost, or
    /// one is being rebuilt already.
    pub(crate) fn start_rebuild(&mut self, turn: &mut Turn<'_>) {
        self.replace_failed(turn);
        self.settle(turn);
    }

    /// What a member has done.
    pub(crate) fn done(&self, member: u32) -> DiskOperations {
        self.members.done(member)
    }

    /// For how long the member that was it for longest had something to do.
    pub(crate) fn busiest_member(&self, now: Instant) -> Span {
        self.members.busiest(now)
    }

    /// For how long a write waited for room in NVRAM.
    pub(crate) fn nvram_full(&self, now: Instant) -> Span {
        self.nvram_full.total(now)
    }

    /// Whether every byte of it has the redundancy that the layout gives.
    pub(crate) fn is_healthy(&self) -> bool {
        !self.lost && self.rebuild.is_none() && self.members.first_failed().is_none()
    }

    fn new_job(&mut self, kind: Kind) -> u32 {
        let place = self.jobs.take();
        let job = &mut self.jobs[place];
        (job.kind, job.pending, job.ok, job.again) = (kind, 0, true, false);
        place
    }

    /// One of the things that a job waits for has happened.
    fn job_goes_on(&mut self, place: u32) {
        let job = &mut self.jobs[place];
        job.pending -= 1;
        if job.pending == 0 {
            self.ready.push(place);
        }
    }

    /// A job is complete as it stands; it goes on at once if there is nothing that it waits for.
    fn launch(&mut self, place: u32) {
        if self.jobs[place].pending == 0 {
            self.ready.push(place);
        }
    }

    fn issue(&mut self, turn: &mut Turn<'_>, job: u32, extent: Extent, write: bool) {
        self.jobs[job].pending += 1;
        self.members.issue(turn, job, extent, write);
    }

    /// Does what follows from jobs that wait for nothing any more, until none is left. A loop and no
    /// recursion: one read may be waited for by a long chain of others.
    fn settle(&mut self, turn: &mut Turn<'_>) {
        while let Some(place) = self.ready.pop() {
            match self.jobs[place].kind {
                Kind::Free => unreachable!("nothing ends twice"),
                Kind::Read { request, first, count } => self.read_ended(turn, place, request, first, count),
                Kind::Write { source, phase } => self.write_phase_ended(turn, place, source, phase),
                Kind::Rebuild { part, phase } => self.rebuild_phase_ended(turn, place, part, phase),
            }
        }
    }

    fn end_job(&mut self, place: u32) {
        self.jobs[place].kind = Kind::Free;
        self.jobs.give_back(place);
    }

    /// An operation was not done, because its member failed.
    fn operation_lost(&mut self, turn: &mut Turn<'_>, place: u32, extent: Extent, write: bool) {
        match self.jobs[place].kind {
            Kind::Free => unreachable!("a job lives until its operations have ended"),
            Kind::Read { .. } if self.lost => self.jobs[place].ok = false,
            Kind::Read { .. } => self.read_from_others(turn, place, extent),
            // What is not written is in the parity or in the other copy, and what is not read needs another
            // plan.
            Kind::Write { .. } => self.jobs[place].again |= !write,
            Kind::Rebuild { .. } => self.jobs[place].ok = false,
        }
        self.job_goes_on(place);
    }
}
