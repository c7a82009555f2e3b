//! A disk that works on one request at a time, and the counters of the logical volumes on it.

use rand::RngExt;
use weir_model::{Instant, Span};
use weir_throttle::BlockCounters;

use crate::random::Prng;

/// The disk of a volume group.
#[derive(Debug)]
pub(super) struct Disk {
    shortest: Span,
    longest: Span,
    free_at: Instant,
    random: Prng,
}

impl Disk {
    pub(super) fn new(service_time: Span, spread: f64, random: Prng) -> Self {
        let mean = service_time.as_secs_f64();
        let [shortest, longest] = [1.0 - spread, 1.0 + spread].map(|by| Span::from_secs_f64(mean * by));
        Self { shortest, longest, free_at: Instant::ORIGIN, random }
    }

    /// A request comes; the instant at which it is finished.
    pub(super) fn handle_request(&mut self, now: Instant) -> Instant {
        let takes = self.random.random_range(self.shortest.as_nanos()..=self.longest.as_nanos());
        self.free_at = self.free_at.max(now) + Span::from_nanos(takes);
        self.free_at
    }
}

/// The kernel's counters of a logical volume.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct VolumeCounters {
    pub(super) reads: u64,
    /// The time that all reads took, in sum.
    pub(super) read_time: Span,
    pub(super) bytes_written: u64,
    pub(super) reads_in_flight: u32,
}

impl VolumeCounters {
    /// As the kernel shows them.
    pub(super) fn shown(&self) -> BlockCounters {
        BlockCounters {
            reads: self.reads,
            read_millis: low_bits(self.read_time.as_nanos() / 1_000_000),
            sectors_written: self.bytes_written / 512,
            reads_in_flight: self.reads_in_flight,
        }
    }

    /// A few milliseconds before the kernel's 32 bits wrap.
    pub(super) fn near_wrap() -> Self {
        let millis = (1 << 32) - 50;
        Self { read_time: Span::from_millis(millis), ..Self::default() }
    }
}

#[allow(clippy::cast_possible_truncation)] // that is the point
fn low_bits(millis: u64) -> u32 {
    millis as u32
}
