//! Writes of a unit: into NVRAM and from there to members, or directly to members.

use weir_model::Instant;

use crate::array::event::{Event, PartDone, Turn};
use crate::cache::{BLOCK, CacheOptions, RowId, blocks_of};
use crate::raid::row_write::ColumnRange;

use super::Unit;
use super::job::{Kind, Phase, Source};

/// A request whose blocks are not all in NVRAM.
#[derive(Clone, Copy, Debug)]
pub(super) struct WaitingWrite {
    request: u32,
    next: u64,
    end: u64,
}

impl Unit {
    /// Begins a write. Returns how many [`PartDone`] will be reported for its request.
    pub(super) fn begin_write(&mut self, turn: &mut Turn<'_>, request: u32, offset: u64, length: u64) -> u32 {
        if self.options.cache.nvram == 0 {
            return self.write_through(turn, request, offset, length);
        }
        let (first, count) = blocks_of(offset, length);
        self.waiting.push_back(WaitingWrite { request, next: first, end: first + count });
        self.fill_nvram(turn);
        1
    }

    pub(super) fn write_phase_ended(
        &mut self,
        turn: &mut Turn<'_>,
        place: u32,
        source: Source,
        phase: Phase,
    ) {
        let job = &mut self.jobs[place];
        if phase == Phase::Reads && job.ok {
            if std::mem::take(&mut job.again) {
                self.start_write(turn, place, source);
            } else {
                self.start_writes(turn, place, source);
            }
            return;
        }
        let ok = job.ok && !self.lost;
        self.end_job(place);
        match source {
            Source::Request { request, .. } => turn.done.push(PartDone { request, ok }),
            Source::Nvram(row) => {
                self.nvram.end_destage(turn.now, row);
                self.destaging -= 1;
                self.fill_nvram(turn);
            }
        }
    }

    /// Destages as many rows as may be destaged now.
    pub(super) fn destage(&mut self, turn: &mut Turn<'_>) {
        while self.destaging < self.destages_allowed(turn.now) {
            let Some(row) = self.nvram.begin_destage() else { break };
            self.destaging += 1;
            let source = Source::Nvram(row);
            let job = self.new_job(Kind::Write { source, phase: Phase::Reads });
            self.start_write(turn, job, source);
        }
        self.set_flush_timer(turn);
    }

    /// Fails the writes that wait for room in NVRAM, because the unit is lost.
    pub(super) fn refuse_waiting(&mut self, turn: &mut Turn<'_>) {
        turn.done.extend(
            self.waiting.drain(..).map(|WaitingWrite { request, .. }| PartDone { request, ok: false }),
        );
        self.nvram_full.set(turn.now, false);
    }

    fn fill_nvram(&mut self, turn: &mut Turn<'_>) {
        while let Some(front) = self.waiting.front_mut() {
            front.next += self.nvram.write(turn.now, front.next, front.end - front.next);
            if front.next < front.end {
                break;
            }
            turn.done.push(PartDone { request: front.request, ok: true });
            self.waiting.pop_front();
        }
        self.nvram_full.set(turn.now, !self.waiting.is_empty());
        self.destage(turn);
    }

    /// Linear threshold scheduling; see [`crate::cache`].
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)] // blocks: below 2^52
    fn destages_allowed(&self, now: Instant) -> u32 {
        let CacheOptions { nvram, high_water, low_water, flush_after, destages, .. } = self.options.cache;
        if self.lost {
            return u32::MAX; // there is nowhere to write to: all of it is dropped
        }
        let filled = self.nvram.used() as f64 / (nvram / BLOCK) as f64;
        let too_old = |oldest: Instant| flush_after.is_some_and(|age| oldest + age <= now);
        if filled >= high_water || self.nvram.oldest().is_some_and(too_old) {
            destages
        } else if filled > low_water {
            let share = (filled - low_water) / (high_water - low_water);
            (share * f64::from(destages)).ceil() as u32
        } else {
            0
        }
    }

    fn set_flush_timer(&mut self, turn: &mut Turn<'_>) {
        let (Some(oldest), Some(age)) = (self.nvram.oldest(), self.options.cache.flush_after) else { return };
        // A row that is too old already waits until another destage ends, and needs no timer.
        if !self.flush_timer && oldest + age > turn.now {
            self.flush_timer = true;
            turn.events.push(oldest + age, Event::FlushDue { unit: self.number });
        }
    }

    /// Begins a write without NVRAM: a job for each row. Returns the number of rows.
    fn write_through(&mut self, turn: &mut Turn<'_>, request: u32, offset: u64, length: u64) -> u32 {
        let row_bytes = self.geometry.row_bytes();
        let (mut from, end) = (offset, offset + length);
        let mut rows = 0;
        while from < end {
            let until = end.min((from / row_bytes + 1) * row_bytes);
            let source = Source::Request { request, offset: from, length: until - from };
            let job = self.new_job(Kind::Write { source, phase: Phase::Reads });
            self.start_write(turn, job, source);
            (from, rows) = (until, rows + 1);
        }
        rows
    }

    /// Plans the write of a row for the members that work now, and begins it.
    fn start_write(&mut self, turn: &mut Turn<'_>, job: u32, source: Source) {
        if self.lost {
            self.jobs[job].ok = false;
            self.ready.push(job);
            return;
        }
        let row = match source {
            Source::Request { offset, length, .. } => self.set_ranges_of_bytes(offset, length),
            Source::Nvram(row) => self.set_ranges_of_blocks(row),
        };
        let end = (row + 1) * self.geometry.stripe_unit;
        let members = &self.members;
        let plan = &mut self.jobs[job].plan;
        plan.plan(&self.geometry, row, &self.ranges, |member| members.works_up_to(member, end));
        if plan.reads.is_empty() {
            self.start_writes(turn, job, source);
        } else {
            self.jobs[job].kind = Kind::Write { source, phase: Phase::Reads };
            let plan = std::mem::take(&mut self.jobs[job].plan);
            for extent in &plan.reads {
                self.issue(turn, job, *extent, false);
            }
            self.jobs[job].plan = plan;
        }
    }

    fn start_writes(&mut self, turn: &mut Turn<'_>, job: u32, source: Source) {
        self.jobs[job].kind = Kind::Write { source, phase: Phase::Writes };
        let plan = std::mem::take(&mut self.jobs[job].plan);
        for extent in &plan.writes {
            if self.members.works(*extent) {
                self.issue(turn, job, *extent, true);
            }
        }
        self.jobs[job].plan = plan;
        self.launch(job);
    }

    /// Sets the ranges that a request writes in a row. Returns the row's number.
    fn set_ranges_of_bytes(&mut self, offset: u64, length: u64) -> u64 {
        self.ranges.clear();
        self.ranges.extend(self.geometry.pieces(offset, length).map(|piece| ColumnRange {
            column: piece.column,
            from: piece.from,
            end: piece.from + piece.length,
            whole: true,
        }));
        offset / self.geometry.row_bytes()
    }

    /// Sets the ranges that are being destaged of a row, one for each column. Returns the row's number.
    fn set_ranges_of_blocks(&mut self, row: RowId) -> u64 {
        self.ranges.clear();
        let unit_blocks = self.geometry.stripe_unit / BLOCK;
        for block in self.nvram.destaging(row) {
            #[allow(clippy::cast_possible_truncation)] // below the number of columns
            let column = (block / unit_blocks) as u32;
            let from = block % unit_blocks * BLOCK;
            match self.ranges.last_mut().filter(|range| range.column == column) {
                Some(range) => {
                    range.whole &= range.end == from;
                    range.end = from + BLOCK;
                }
                None => self.ranges.push(ColumnRange { column, from, end: from + BLOCK, whole: true }),
            }
        }
        self.nvram.row_number(row)
    }
}
