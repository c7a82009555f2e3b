//! Reads of a unit: from NVRAM, from the read cache, from members, around a failed member, and ahead of a
//! reader.

use crate::array::event::{PartDone, Turn};
use crate::cache::{BLOCK, Lookup, blocks_of};
use crate::raid::{Extent, RaidLevel};

use super::Unit;
use super::job::Kind;

impl Unit {
    pub(super) fn begin_read(&mut self, turn: &mut Turn<'_>, request: u32, offset: u64, length: u64) {
        let (first, count) = blocks_of(offset, length);
        if self.nvram.used() > 0 && self.nvram.holds(first, count) {
            turn.done.push(PartDone { request, ok: true });
            return;
        }
        let job = self.new_job(Kind::Read { request: Some(request), first, count });
        if self.read_cache.is_absent() {
            self.read_bytes(turn, job, offset, length);
            return;
        }
        self.read_blocks(turn, job, first, count);
        if let Some((ahead, count)) = self.streams.read(first, count) {
            let count = count.min((self.size / BLOCK).saturating_sub(ahead));
            let job = self.new_job(Kind::Read { request: None, first: ahead, count });
            self.read_blocks(turn, job, ahead, count);
        }
    }

    pub(super) fn read_ended(
        &mut self,
        turn: &mut Turn<'_>,
        place: u32,
        request: Option<u32>,
        first: u64,
        count: u64,
    ) {
        let ok = self.jobs[place].ok;
        if let Some(request) = request {
            turn.done.push(PartDone { request, ok });
        }
        if !self.read_cache.is_absent() {
            for block in first..first + count {
                self.read_cache.arrived(block, place);
            }
            let mut waiters = std::mem::take(&mut self.jobs[place].waiters);
            for waiter in waiters.drain(..) {
                self.jobs[waiter].ok &= ok;
                self.job_goes_on(waiter);
            }
            self.jobs[place].waiters = waiters;
        }
        self.end_job(place);
    }

    /// Reads for `job`, from the other members, what a failed member should have read.
    pub(super) fn read_from_others(&mut self, turn: &mut Turn<'_>, job: u32, extent: Extent) {
        self.extents.clear();
        self.add_others(extent);
        self.issue_reads(turn, job);
    }

    /// Reads the blocks that are neither in the cache nor being read, and waits for those that are being
    /// read.
    fn read_blocks(&mut self, turn: &mut Turn<'_>, job: u32, first: u64, count: u64) {
        let end = first + count;
        let mut waited_for = None;
        let mut block = first;
        while block < end {
            match self.read_cache.look_up(block) {
                Lookup::Here => block += 1,
                Lookup::Coming(other) => {
                    if other != job && waited_for != Some(other) {
                        waited_for = Some(other);
                        self.jobs[other].waiters.push(job);
                        self.jobs[job].pending += 1;
                    }
                    block += 1;
                }
                Lookup::Missing => {
                    let from = block;
                    while block < end && self.read_cache.look_up(block) == Lookup::Missing {
                        self.read_cache.expect(block, job);
                        block += 1;
                    }
                    self.issue_bytes(turn, job, from * BLOCK, (block - from) * BLOCK);
                }
            }
        }
        self.launch(job);
    }

    fn read_bytes(&mut self, turn: &mut Turn<'_>, job: u32, offset: u64, length: u64) {
        self.issue_bytes(turn, job, offset, length);
        self.launch(job);
    }

    fn issue_bytes(&mut self, turn: &mut Turn<'_>, job: u32, offset: u64, length: u64) {
        self.extents.clear();
        for piece in self.geometry.pieces(offset, length) {
            let mut member = self.geometry.data_member(piece.row, piece.column);
            let extent = |member| self.geometry.extent(member, piece.row, piece.from, piece.length);
            if self.geometry.level == RaidLevel::Raid1 {
                let both = self.members.works(extent(member)) && self.members.works(extent(member + 1));
                member = if both { self.members.less_busy(member, member + 1) } else { member };
            }
            let extent = extent(member);
            if self.members.works(extent) { self.add(extent) } else { self.add_others(extent) }
        }
        self.issue_reads(turn, job);
    }

    fn issue_reads(&mut self, turn: &mut Turn<'_>, job: u32) {
        let extents = std::mem::take(&mut self.extents);
        for extent in &extents {
            self.issue(turn, job, *extent, false);
        }
        self.extents = extents;
    }

    /// Adds the extents of other members from which the content of `extent` follows.
    fn add_others(&mut self, extent: Extent) {
        match self.geometry.level {
            RaidLevel::Single | RaidLevel::Raid0 => unreachable!("without redundancy the unit is lost"),
            RaidLevel::Raid1 => self.add(Extent { member: extent.member ^ 1, ..extent }),
            RaidLevel::Raid5 => {
                for member in (0..self.geometry.members).filter(|member| *member != extent.member) {
                    self.add(Extent { member, ..extent });
                }
            }
        }
    }

    /// Adds an operation, or makes one longer, or does nothing if the extent is read already.
    fn add(&mut self, new: Extent) {
        for extent in self.extents.iter_mut().rev().filter(|extent| extent.member == new.member) {
            let end = extent.offset + u64::from(extent.length);
            if extent.offset <= new.offset && new.offset + u64::from(new.length) <= end {
                return;
            }
            if let Some(length) = extent.length.checked_add(new.length).filter(|_| end == new.offset) {
                extent.length = length;
                return;
            }
        }
        self.extents.push(new);
    }
}
