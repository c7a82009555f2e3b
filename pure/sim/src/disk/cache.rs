//! The buffer of a disk: the sectors that it has read, and those that it reads on while no other command
//! needs the heads.
//!
//! **Modelled**: segments, each a run of sectors; the least recently used segment is given up first. After a
//! read, the disk reads on until its segment is full, or another command needs the heads. A read that follows
//! is served from the buffer, or as its sectors pass under the heads. So a sequential stream gets the rate of
//! the medium.
//!
//! **Not modelled**:
//!
//! - a write cache: disks of arrays run with it off, because the array has its own, which survives a loss of
//!   power;
//! - reads from data just written;
//! - partly buffered reads: such a read is read as a whole;
//! - the arm's move to another track while it reads on, for the seek after it.
//!
//! Reading on needs no events of its own: how far the disk has come is computed from the time, when it is
//! needed.

use crate::disk::geometry::Geometry;

/// The buffer.
#[derive(Debug)]
pub(super) struct ReadCache {
    segments: Box<[Segment]>,
    /// Sectors in a segment.
    size: u32,
    used: u64,
    ahead: Option<ReadAhead>,
}

/// Sectors from `start` up to before `end`.
#[derive(Clone, Copy, Default, Debug)]
struct Segment {
    start: u32,
    end: u32,
    used: u64,
}

/// Reading on.
#[derive(Clone, Copy, Debug)]
struct ReadAhead {
    segment: usize,
    /// The last sector that was asked for, and when it had passed, in ns.
    last: u32,
    since: u64,
    /// The first sector for which there is no room.
    limit: u32,
}

impl ReadCache {
    pub(super) fn new(segments: usize, size: u32) -> Self {
        Self { segments: vec![Segment::default(); segments].into(), size, used: 0, ahead: None }
    }

    /// Whether the sectors are in the buffer at `now`.
    pub(super) fn holds(&mut self, now: u64, first: u32, end: u32, geometry: &Geometry) -> bool {
        if let Some(ahead) =
            self.ahead.filter(|ahead| self.segments[ahead.segment].start <= first && first < ahead.limit)
        {
            self.segments[ahead.segment].extend(ahead.reached(now, geometry), self.size);
        }
        let holds = |segment: &Segment| segment.start <= first && end <= segment.end;
        let Some(hit) = self.segments.iter().position(holds) else { return false };
        self.used += 1;
        self.segments[hit].used = self.used;
        // Sectors that the host has read make room, as long as the heads still read on.
        let reads_on = |ahead: &&mut ReadAhead| ahead.segment == hit && self.segments[hit].end < ahead.limit;
        if let Some(ahead) = self.ahead.as_mut().filter(reads_on) {
            ahead.limit = ahead.limit.max(limit(first, end, self.size, geometry));
        }
        true
    }

    /// The sector that comes next under the heads, if a read has ended at `now` and the disk reads on.
    pub(super) fn next(&self, now: u64) -> Option<u32> {
        self.ahead
            .filter(|ahead| ahead.since == now && ahead.last + 1 < ahead.limit)
            .map(|ahead| ahead.last + 1)
    }

    /// When the sectors have passed under the heads, if the disk reads on; `None` if it does not come to them
    /// in this way.
    pub(super) fn passes(&self, now: u64, first: u32, end: u32, geometry: &Geometry) -> Option<u64> {
        let ahead = self.ahead?;
        let start = self.segments[ahead.segment].start;
        if first < start || first >= ahead.limit || ahead.reached(now, geometry) == ahead.limit {
            return None;
        }
        if end <= ahead.last + 1 {
            return Some(now);
        }
        let place = geometry.locate(ahead.last);
        let sector = geometry.transfer(place, 1).nanos;
        Some(ahead.since + geometry.transfer(place, end - ahead.last).nanos - sector)
    }

    /// Ends reading on: the heads are needed elsewhere from `now` on.
    pub(super) fn interrupt(&mut self, now: u64, geometry: &Geometry) {
        if let Some(ahead) = self.ahead.take().filter(|ahead| ahead.since < now) {
            self.segments[ahead.segment].extend(ahead.reached(now, geometry), self.size);
        }
    }

    /// The sectors have just been read: keeps them, and the disk reads on.
    pub(super) fn keep(&mut self, now: u64, first: u32, end: u32, geometry: &Geometry) {
        let follows =
            |segment: &Segment| segment.end > segment.start && (segment.start..=segment.end).contains(&first);
        let chosen = match self.ahead {
            Some(ahead) if end <= ahead.last + 1 => return,
            Some(ahead) => Some(ahead.segment),
            None => self.segments.iter().position(follows),
        };
        let oldest = || (0..self.segments.len()).min_by_key(|&place| self.segments[place].used);
        let Some(place) = chosen.or_else(oldest) else { return };
        self.used += 1;
        let start = if chosen.is_some() { self.segments[place].start } else { first };
        let start = start.max(end.saturating_sub(self.size));
        self.segments[place] = Segment { start, end, used: self.used };
        let limit = limit(first, end, self.size, geometry);
        self.ahead = Some(ReadAhead { segment: place, last: end - 1, since: now, limit });
    }

    /// The sectors are written, so segments with any of them are given up.
    pub(super) fn forget(&mut self, first: u32, end: u32) {
        for segment in &mut self.segments {
            if segment.start < end && first < segment.end {
                *segment = Segment::default();
            }
        }
    }
}

/// The first sector that a disk does not read any more when it reads on. The sectors that were asked for are
/// kept if there is room. But half of a segment is filled in any case, so that streams of large requests do
/// not lose a turn between two requests.
fn limit(first: u32, end: u32, size: u32, geometry: &Geometry) -> u32 {
    first.saturating_add(size).max(end.saturating_add(size / 2)).min(geometry.sectors())
}

impl Segment {
    /// Extends the segment to before `end`. Its first sectors are given up if there is no room for them.
    fn extend(&mut self, end: u32, size: u32) {
        self.end = self.end.max(end);
        self.start = self.start.max(self.end.saturating_sub(size));
    }
}

impl ReadAhead {
    /// The first sector that it has not read at `now`.
    fn reached(&self, now: u64, geometry: &Geometry) -> u32 {
        if now <= self.since {
            return self.last + 1;
        }
        let place = geometry.locate(self.last);
        let sector = geometry.transfer(place, 1).nanos;
        self.last + geometry.passed(place, now - self.since + sector, self.limit - self.last)
    }
}
