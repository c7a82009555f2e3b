//! How long the reads of a resource took, from its devices' counters.
//!
//! The wait over an interval is the time that the reads of all devices took, divided by their number. Both
//! are differences of two readings of the kernel's counters:
//!
//! - **The time** is counted in milliseconds in 32 bits, and wraps after 49 days of reading. So its
//!   difference is computed modulo 2^32.
//! - **The numbers** of reads and sectors have 64 bits. If one of them goes back, the device is another one
//!   that got the same number, and the interval does not count. A kernel of 32 bits wraps the number of reads
//!   at 2^32; that costs one interval too. A time that grows by 2^31 ms or more within an interval means
//!   another device as well.
//! - **Reads without a completion** have no time yet. If a device hangs, its wait would fall silent just when
//!   it is worst. So if a device has finished no read, its outstanding reads count by their age. The age is
//!   known only since a reading showed them, so it is never too long: a read that began just before a reading
//!   has an age of zero and does not count yet.
//! - **Without reads** there is no wait.

use std::ops::AddAssign;

use weir_model::{Instant, Span};

use crate::survey::BlockCounters;

/// From this difference on, a counter of milliseconds went back instead of forth.
const WENT_BACK: u32 = 1 << 31;
const SECTOR: u64 = 512;

/// Reads that were waited for, and the time that they took in sum.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Reads {
    count: u64,
    took: Span,
}

impl Reads {
    /// How long one took on average; `None` if there were none.
    pub(crate) fn mean(self) -> Option<Span> {
        Some(Span::from_nanos(self.took.as_nanos().checked_div(self.count)?))
    }
}

impl AddAssign for Reads {
    fn add_assign(&mut self, other: Self) {
        self.count = self.count.saturating_add(other.count);
        self.took += other.took;
    }
}

/// What a device did in an interval.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Done {
    /// Its reads.
    pub(crate) reads: Reads,
    /// The bytes that it has written.
    pub(crate) written: u64,
}

/// Reads that are outstanding, and since when none has finished.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Stuck {
    since: Instant,
    /// How many of those that were outstanding then are so still, at most.
    reads: u32,
}

/// The meter of a device.
#[derive(Default, Debug)]
pub(crate) struct DeviceMeter {
    last: Option<BlockCounters>,
    stuck: Option<Stuck>,
}

impl DeviceMeter {
    /// What the device did since the reading before. The first reading says nothing.
    pub(crate) fn handle_reading(&mut self, now: Instant, seen: BlockCounters) -> Done {
        let Some(last) = self.last.replace(seen) else {
            return self.start_anew(now, seen);
        };
        let took = seen.read_millis.wrapping_sub(last.read_millis);
        let (Some(reads), Some(sectors)) =
            (seen.reads.checked_sub(last.reads), seen.sectors_written.checked_sub(last.sectors_written))
        else {
            return self.start_anew(now, seen);
        };
        if took >= WENT_BACK {
            return self.start_anew(now, seen);
        }
        let reads = if reads > 0 {
            self.stuck = stuck_from(now, seen);
            Reads { count: reads, took: Span::from_millis(took.into()) }
        } else {
            self.outstanding(now, seen)
        };
        Done { reads, written: sectors.saturating_mul(SECTOR) }
    }

    /// The device could not be read: whatever has its number next is another one.
    pub(crate) fn handle_absence(&mut self) {
        *self = Self::default();
    }

    fn start_anew(&mut self, now: Instant, seen: BlockCounters) -> Done {
        self.stuck = stuck_from(now, seen);
        Done::default()
    }

    /// The outstanding reads of a device that has finished none, by their age.
    fn outstanding(&mut self, now: Instant, seen: BlockCounters) -> Reads {
        let Some(stuck) = &mut self.stuck else {
            self.stuck = stuck_from(now, seen);
            return Reads::default();
        };
        stuck.reads = stuck.reads.min(seen.reads_in_flight);
        let (age, count) = (now.saturating_since(stuck.since), u64::from(stuck.reads));
        if count == 0 {
            self.stuck = None;
        }
        Reads { count, took: age.saturating_mul(count) }
    }
}

fn stuck_from(now: Instant, seen: BlockCounters) -> Option<Stuck> {
    (seen.reads_in_flight > 0).then_some(Stuck { since: now, reads: seen.reads_in_flight })
}

#[cfg(test)]
mod props;
#[cfg(test)]
mod tests;
