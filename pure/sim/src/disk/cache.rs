//! The buffer of a disk: what it has read, and what it goes on to read while nobody wants anything else.
//!
//! **Modelled**: segments, each a run of sectors, the least recently used given up first; after a read the
//! disk reads on until its segment is full or another command needs the heads; a read that follows is served
//! from the buffer, or, if the heads have yet to come to it, as it passes under them. So a sequential stream
//! gets the rate of the medium. **Not modelled**: a write cache (disks of arrays run with it off: the array
//! has its own that survives a loss of power); reads from data just written; a partly buffered read, which is
//! read as a whole; the switch of the arm to another track by reading on, for the seek after it.
//!
//! Nothing here happens by an event of its own: how far the disk has read on follows from the time, when
//! asked.

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
    /// Up to before which sector there is room.
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
        // What is read out makes room, as long as the heads still read.
        let reads_on = |ahead: &&mut ReadAhead| ahead.segment == hit && self.segments[hit].end < ahead.limit;
        if let Some(ahead) = self.ahead.as_mut().filter(reads_on) {
            ahead.limit = ahead.limit.max(limit(first, end, self.size, geometry));
        }
        true
    }

    /// The sector that comes next under the heads because the disk reads on, at the end of a read.
    pub(super) fn next(&self, now: u64) -> Option<u32> {
        self.ahead
            .filter(|ahead| ahead.since == now && ahead.last + 1 < ahead.limit)
            .map(|ahead| ahead.last + 1)
    }

    /// When the sectors have passed under the heads, if the disk just reads on; `None` if it does not come to
    /// them so.
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

    /// The heads are needed elsewhere from `now` on.
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

    /// The sectors are written: what is buffered of them is no longer true.
    pub(super) fn forget(&mut self, first: u32, end: u32) {
        for segment in &mut self.segments {
            if segment.start < end && first < segment.end {
                *segment = Segment::default();
            }
        }
    }
}

/// Up to before which sector a disk reads on after a read: what was asked for is kept beside it if there is
/// room, but half of a segment is filled in any case, so that streams of large requests do not lose a turn
/// between two of them.
fn limit(first: u32, end: u32, size: u32, geometry: &Geometry) -> u32 {
    first.saturating_add(size).max(end.saturating_add(size / 2)).min(geometry.sectors())
}

impl Segment {
    /// It holds what there is up to before `end`, and as much before as it has room for.
    fn extend(&mut self, end: u32, size: u32) {
        self.end = self.end.max(end);
        self.start = self.start.max(self.end.saturating_sub(size));
    }
}

impl ReadAhead {
    /// Up to before which sector it has read at `now`.
    fn reached(&self, now: u64, geometry: &Geometry) -> u32 {
        if now <= self.since {
            return self.last + 1;
        }
        let place = geometry.locate(self.last);
        let sector = geometry.transfer(place, 1).nanos;
        self.last + geometry.passed(place, now - self.since + sector, self.limit - self.last)
    }
}
