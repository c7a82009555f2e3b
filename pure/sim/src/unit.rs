//! A logical unit: members behind a storage controller, as one range of bytes.
//!
//! **Modelled**: reads and writes are operations on members ([`crate::raid`]), through the storage
//! controller's memory ([`crate::cache`]). Adjacent parts of a request on one member are one operation. Of a
//! pair, the member with the shorter queue takes a read. If a member fails, its operations are done without
//! it, if the layout survives that; otherwise the whole unit is lost. A failed member is replaced, and
//! rebuilt part after part, at a given pace. Rebuilt parts are healthy.
//!
//! **Not modelled**:
//!
//! - locks between writes to one row that do not come from NVRAM, or between a write and the rebuilding of
//!   its row;
//! - the time until a storage controller notices that a disk has failed;
//! - checksums, retries, and sectors that cannot be read;
//! - time on the links between storage controller and members, which is part of the members' own figures.
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
    /// Whether more members have failed than the layout survives.
    lost: bool,
    jobs: Slots<Job>,
    /// Jobs that wait for nothing any more.
    ready: Vec<u32>,
    nvram: Nvram,
    /// Requests that found no room in NVRAM, in the order in which they came.
    waiting: VecDeque<WaitingWrite>,
    /// Runs while `waiting` is not empty.
    nvram_full: Stopwatch,
    /// How many rows are being destaged.
    destaging: u32,
    flush_timer: bool,
    read_cache: ReadCache,
    streams: Streams,
    rebuild: Option<Rebuild>,
    /// Memory that each request uses again.
    extents: Vec<Extent>,
    ranges: Vec<ColumnRange>,
}

impl Unit {
    /// A unit that is idle and healthy.
    ///
    /// # Panics
    /// If the options do not pass their check.
    pub(crate) fn new(number: u16, options: &UnitOptions, seed: Seed) -> Self {
        let geometry = options.geometry();
        let CacheOptions { nvram, read_cache, prefetch, .. } = options.cache;
        let mut nvram = Nvram::new(nvram / BLOCK, geometry.row_bytes() / BLOCK);
        fill(&mut nvram, options);
        Self {
            number,
            size: options.bytes(),
            geometry,
            options: options.clone(),
            members: Members::new(number, &options.member, options.members, seed),
            lost: false,
            jobs: Slots::new(),
            ready: Vec::new(),
            nvram,
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

    /// Reads bytes for a request. Reports one [`PartDone`] for it.
    pub(crate) fn read(&mut self, turn: &mut Turn<'_>, request: u32, offset: u64, length: u64) {
        if self.lost {
            turn.done.push(PartDone { request, ok: false });
        } else {
            self.begin_read(turn, request, offset, length);
            self.settle(turn);
        }
    }

    /// Writes bytes for a request. Returns how many [`PartDone`] it will report for it.
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

    /// A member fails. Does nothing if it has failed already.
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

    /// Replaces the first failed member, and rebuilds it. Does nothing if no member has failed, the unit is
    /// lost, or a member is being rebuilt already.
    pub(crate) fn start_rebuild(&mut self, turn: &mut Turn<'_>) {
        self.replace_failed(turn);
        self.settle(turn);
    }

    /// The operations that a member has done.
    pub(crate) fn done(&self, member: u32) -> DiskOperations {
        self.members.done(member)
    }

    /// For how long the busiest member had something to do.
    pub(crate) fn busiest_member(&self, now: Instant) -> Span {
        self.members.busiest(now)
    }

    /// For how long at least one write waited for room in NVRAM.
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

    /// An operation or another job that a job waits for has ended.
    fn job_goes_on(&mut self, place: u32) {
        let job = &mut self.jobs[place];
        job.pending -= 1;
        if job.pending == 0 {
            self.ready.push(place);
        }
    }

    /// All operations of a job were issued. If it waits for nothing, it goes on at once.
    fn launch(&mut self, place: u32) {
        if self.jobs[place].pending == 0 {
            self.ready.push(place);
        }
    }

    fn issue(&mut self, turn: &mut Turn<'_>, job: u32, extent: Extent, write: bool) {
        self.jobs[job].pending += 1;
        self.members.issue(turn, job, extent, write);
    }

    /// Takes the next step of each job that waits for nothing any more, until none is left. A loop and no
    /// recursion, because a long chain of reads may wait for one another.
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
            // A lost write is in the parity or in the other copy. A lost read needs another plan.
            Kind::Write { .. } => self.jobs[place].again |= !write,
            Kind::Rebuild { .. } => self.jobs[place].ok = false,
        }
        self.job_goes_on(place);
    }
}

/// Puts the blocks into NVRAM that are there at the start: one for each of some rows, evenly over the unit,
/// and in another column of each row, so that each disk gets its part of the destaging.
fn fill(nvram: &mut Nvram, options: &UnitOptions) {
    let blocks = options::filled_blocks(&options.cache);
    let row_blocks = options.geometry().row_bytes() / BLOCK;
    let rows = options.bytes() / BLOCK / row_blocks;
    for block in 0..blocks {
        // `blocks` rows of all: a product in 64 bits would overflow on a large unit.
        let row = u128::from(block) * u128::from(rows) / u128::from(blocks);
        let row = u64::try_from(row).expect("below the number of rows");
        let taken = nvram.write(Instant::ORIGIN, row * row_blocks + block % row_blocks, 1);
        debug_assert_eq!(taken, 1, "there is room for as many as the options say");
    }
}
