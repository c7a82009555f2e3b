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
//!   it is worst. So if a device has finished no read, its outstanding reads have their age. The age is known
//!   only since a reading showed them, so it is never too long: a read that began just before a reading has
//!   an age of zero.
//! - **An age is less than the wait that it becomes.** So beside reads that another device of the resource
//!   has finished, it counts only where it makes the mean longer.

use std::ops::AddAssign;

use weir_control::ReadWait;
use weir_model::{Instant, Span};

use crate::survey::BlockCounters;

/// From this difference on, a counter of milliseconds went back instead of forth.
const WENT_BACK: u32 = 1 << 31;
const SECTOR: u64 = 512;

/// Some reads, and the time that they took in sum.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Waits {
    count: u64,
    took: Span,
}

impl Waits {
    /// How long one took on average; `None` if there were none.
    fn mean(self) -> Option<Span> {
        Some(Span::from_nanos(self.took.as_nanos().checked_div(self.count)?))
    }
}

impl AddAssign for Waits {
    fn add_assign(&mut self, other: Self) {
        self.count = self.count.saturating_add(other.count);
        self.took += other.took;
    }
}

/// The reads of an interval.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Reads {
    /// Those that the devices finished.
    finished: Waits,
    /// Those that are outstanding at devices which finished none, with their age.
    outstanding: Waits,
}

impl Reads {
    /// How long they waited.
    pub(crate) fn wait(self) -> ReadWait {
        let (mean, age) = (self.finished.mean(), self.outstanding.mean());
        let mut reads = self.finished;
        if mean.is_some() && age > mean {
            reads += self.outstanding;
        }
        match (reads.mean(), age) {
            (Some(mean), _) => ReadWait::Finished(mean),
            (None, Some(age)) => ReadWait::Outstanding(age),
            (None, None) => ReadWait::NoReads,
        }
    }
}

impl AddAssign for Reads {
    fn add_assign(&mut self, other: Self) {
        self.finished += other.finished;
        self.outstanding += other.outstanding;
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
            let finished = Waits { count: reads, took: Span::from_millis(took.into()) };
            Reads { finished, ..Reads::default() }
        } else {
            Reads { outstanding: self.outstanding(now, seen), ..Reads::default() }
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

    /// The outstanding reads of a device that has finished none, with their age.
    fn outstanding(&mut self, now: Instant, seen: BlockCounters) -> Waits {
        let stuck = self.stuck.or_else(|| stuck_from(now, seen));
        let stuck =
            stuck.map(|Stuck { since, reads }| Stuck { since, reads: reads.min(seen.reads_in_flight) });
        self.stuck = stuck.filter(|stuck| stuck.reads > 0);
        self.stuck.map_or(Waits::default(), |Stuck { since, reads }| {
            let (age, count) = (now.saturating_since(since), u64::from(reads));
            Waits { count, took: age.saturating_mul(count) }
        })
    }
}

fn stuck_from(now: Instant, seen: BlockCounters) -> Option<Stuck> {
    (seen.reads_in_flight > 0).then_some(Stuck { since: now, reads: seen.reads_in_flight })
}

#[cfg(test)]
mod props;
#[cfg(test)]
mod tests;
