//! How many requests an array takes at a time, found by trying: `total_concurrency = "auto"`.
//!
//! **Problem.** Maestro shares out a total that somebody has to know. With too few requests at a time, the
//! array is idle in part; with too many, they queue where no priority reaches them. The paper has four
//! requests for each disk. But the operator of an array behind NBD, or of a cloud's volume, cannot count
//! disks.
//!
//! **The law.** Throughput rises with the number of requests until all of the array is busy, and then stays.
//! So the law tries:
//!
//! - **Up.** Measure at the total in force, raise it by a quarter, and measure again. Keep the raise if
//!   throughput rose by at least a fifth of what proportion would give (5 % for the quarter), and try the
//!   next. Otherwise go back, and hold still for [`HOLD`] intervals.
//! - **Down.** Once in [`DOWNWARD`] tries, and then for as long as it works, cut the total by a fifth. Keep
//!   the cut if throughput fell by at most a tenth of what proportion would take (2 %).
//!
//! A total at which neither try succeeds stays, so that noise does not move it.
//!
//! **Why a fifth of proportion.** Take an array of `k` disks, with `n` requests at random disks. Its
//! throughput is `n / (n + k - 1)` of the full throughput. A quarter more requests are worth 5 % up to about
//! `n = 3 k`, and the raise from there is the last. So the law ends between three and four requests for each
//! disk, where the paper arrived by experience. An array that is fully busy from `k` requests on, such as a
//! flash disk or a limit in a cloud, is left at `k` to `1.2 k`.
//!
//! **What throughput is.** Requests and bytes. An array is limited by one of them, and a change of the
//! request size moves the other. So a raise has to be worth it in both, and a cut must harm neither. A change
//! of the load in the middle of a try then ends the try as a failure, which costs only the time until the
//! next.
//!
//! **A bound that is not felt** limits nobody, so there is nothing to learn. A total is felt if at least
//! [`FELT`] of it is at the array. If it is not, the law gives up a try, and begins none until it is felt
//! again.
//!
//! The first interval after each change is not measured: the requests answered in it were given to the array
//! before.

use std::num::NonZeroU32;

use weir_model::{Instant, Span};

use crate::law::Law;
use crate::maestro::{ApplicationObservation, amount};

/// The total at the start: enough to keep a few disks or a flash disk busy.
const INITIAL: u32 = 32;
/// The share of the total at the array from which on it is felt.
const FELT: f64 = 0.9;
/// How many intervals are measured at a total. With a second each, an array of 1,000 requests a second
/// answers 3,000, give or take 2 %.
const MEASURED: u32 = 3;
/// Intervals between a failed try and the next measurement. A failed raise costs little; a failed cut costs a
/// fifth of throughput for four intervals.
const HOLD: u32 = 12;
/// One try in this many is downward.
const DOWNWARD: u32 = 3;
/// A raise is worth it if throughput rose by at least this part of a proportional rise.
const WORTHWHILE: f64 = 0.2;
/// A cut is harmless if throughput fell by at most this part of a proportional fall.
const HARMLESS: f64 = 0.1;

/// The observation of the array in the last control interval.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub(crate) struct ProbeObservation {
    /// The length of the interval.
    pub(crate) over: Span,
    /// Bytes of the reads and writes that were answered.
    pub(crate) answered_bytes: u64,
    /// Their number.
    pub(crate) answered: u64,
    /// The number of requests at the array, as the mean over the interval.
    pub(crate) at_device: f64,
    /// The least total that gives each application a request at each port.
    pub(crate) least: u32,
}

/// The law.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct TotalProbe {
    /// The total in force when nothing is tried.
    base: u32,
    /// The least total that the last observation asked for.
    least: u32,
    phase: Phase,
    /// How many tries were begun.
    tries: u32,
}

/// What the law is doing.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Phase {
    /// At `base`, until the next measurement.
    Hold { intervals: u32 },
    /// At `base`: measures the throughput that a try is compared with.
    Measure(Measure),
    /// At another total, which is tried.
    Try { total: u32, before: Throughput, seen: Measure },
}

/// Throughput while it is measured.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
struct Measure {
    /// Whether the first interval, which is not measured, is over.
    has_begun: bool,
    intervals: u32,
    seconds: f64,
    requests: f64,
    bytes: f64,
}

/// What was answered in a second.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Throughput {
    requests: f64,
    bytes: f64,
}

impl ProbeObservation {
    /// The sum of what was seen at all ports. Some figures may come from another process, and may be
    /// anything.
    pub(crate) fn of(applications: &[ApplicationObservation]) -> Self {
        let mut sum = Self::default();
        for port in applications.iter().flat_map(|application| &application.ports) {
            sum.over = sum.over.max(port.over);
            sum.answered_bytes = sum.answered_bytes.saturating_add(port.answered_bytes);
            sum.answered = sum.answered.saturating_add(port.answered);
            sum.at_device += port.at_device;
            sum.least = sum.least.saturating_add(1);
        }
        sum
    }
}

impl TotalProbe {
    /// More than any array gains from. The total is never raised above it, unless the applications have more
    /// ports than this, in sum.
    pub(crate) const MOST: u32 = 4096;

    /// The law before it has tried anything.
    pub(crate) const fn new() -> Self {
        Self { base: INITIAL, least: 1, phase: Phase::Measure(Measure::NOTHING), tries: 0 }
    }

    /// The total in force.
    pub(crate) const fn total(&self) -> NonZeroU32 {
        let total = if let Phase::Try { total, .. } = self.phase { total } else { self.base };
        match NonZeroU32::new(if total > self.least { total } else { self.least }) {
            Some(total) => total,
            None => NonZeroU32::MIN,
        }
    }

    /// Begins the next try from `base`, where the throughput was `before`.
    fn begin(&mut self, before: Throughput, is_up: bool) {
        let total = if is_up {
            self.base.saturating_add(self.base.div_ceil(4))
        } else {
            self.base - self.base.div_ceil(5)
        };
        let total = total.clamp(self.least, Self::MOST.max(self.least));
        self.phase = if total == self.base {
            Phase::Hold { intervals: 0 }
        } else {
            Phase::Try { total, before, seen: Measure::NOTHING }
        };
    }

    /// Ends the try of `total`.
    fn end(&mut self, total: u32, before: Throughput, after: Throughput) {
        let is_up = total > self.base;
        let change = f64::from(total) / f64::from(self.base) - 1.0;
        let part = if is_up { WORTHWHILE } else { HARMLESS };
        if after.relative_to(before) >= 1.0 + part * change {
            self.base = total;
            self.begin(after, is_up);
        } else {
            self.phase = Phase::Hold { intervals: 0 };
        }
    }
}

impl Default for TotalProbe {
    fn default() -> Self {
        Self::new()
    }
}

impl Law for TotalProbe {
    type Observation = ProbeObservation;
    type Setting = NonZeroU32;

    fn step(&mut self, _now: Instant, seen: &ProbeObservation) -> NonZeroU32 {
        let is_felt = amount(seen.at_device) >= FELT * f64::from(self.total().get());
        self.least = seen.least.max(1);
        self.base = self.base.max(self.least);
        match self.phase {
            Phase::Hold { intervals } if intervals >= HOLD => self.phase = Phase::Measure(Measure::NOTHING),
            Phase::Hold { intervals } => self.phase = Phase::Hold { intervals: intervals + 1 },
            Phase::Measure(_) if !is_felt => self.phase = Phase::Measure(Measure::NOTHING),
            Phase::Measure(measure) => match measure.and(seen) {
                Ok(throughput) => {
                    self.tries = self.tries.wrapping_add(1);
                    self.begin(throughput, !self.tries.is_multiple_of(DOWNWARD));
                }
                Err(measure) => self.phase = Phase::Measure(measure),
            },
            Phase::Try { seen: Measure { has_begun: true, .. }, .. } if !is_felt => {
                self.phase = Phase::Hold { intervals: 0 };
            }
            Phase::Try { total, before, seen: measure } => match measure.and(seen) {
                Ok(after) => self.end(total, before, after),
                Err(seen) => self.phase = Phase::Try { total, before, seen },
            },
        }
        self.total()
    }
}

impl Measure {
    const NOTHING: Self = Self { has_begun: false, intervals: 0, seconds: 0.0, requests: 0.0, bytes: 0.0 };

    /// Adds one more interval. `Ok` is the throughput, if that interval was the last to be measured.
    fn and(mut self, seen: &ProbeObservation) -> Result<Throughput, Self> {
        if self.has_begun {
            self.intervals += 1;
            self.seconds += seen.over.as_secs_f64();
            self.requests += to_f64(seen.answered);
            self.bytes += to_f64(seen.answered_bytes);
        }
        self.has_begun = true;
        if self.intervals < MEASURED || self.seconds <= 0.0 {
            return Err(self);
        }
        Ok(Throughput { requests: self.requests / self.seconds, bytes: self.bytes / self.seconds })
    }
}

impl Throughput {
    /// This throughput over `before`: the lesser of the ratio of requests and that of bytes. A ratio is zero
    /// if `before` has none.
    fn relative_to(self, before: Self) -> f64 {
        let of = |after: f64, before: f64| if before > 0.0 { after / before } else { 0.0 };
        of(self.requests, before.requests).min(of(self.bytes, before.bytes))
    }
}

#[allow(clippy::cast_precision_loss)] // counts far below 2^53
const fn to_f64(value: u64) -> f64 {
    value as f64
}

#[cfg(test)]
mod tests;
