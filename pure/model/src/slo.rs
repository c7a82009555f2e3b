//! The service-level objective of a volume: a latency for a request rate.
//!
//! Façade §3: an SLO is a pair of curves, read and write latency as functions of the offered rate. It is held
//! as triples `((r_1, tr_1, tw_1), ... (r_n, tr_n, tw_n))` with `0 < r_1 < ... < r_n`. The promise is a mean
//! latency over a window. If a workload's rate over the window before was below `r_i`, and its reads are the
//! fraction `f_r`, it is promised `f_r tr_i + (1 - f_r) tw_i`. Above `r_n`, it is promised nothing.
//!
//! **The edge of a segment.** The paper's own example offers 200 IO/s to an SLO that ends at 200 IO/s. Taken
//! literally, and with the counting noise of real arrivals, such a workload would lose its promise in every
//! other window. So a segment ends where the count is above `r_i` by more than two standard deviations of a
//! Poisson count, `n > r_i w + 2 sqrt(r_i w)`. A rate that cannot be told from `r_i` is in contract. Example:
//! at 200 IO/s over 1 s, 228 arrivals are in contract, and 229 are not.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{Arrivals, Iops, Span};

/// One segment of the curve: up to this rate, these latencies.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct SloPoint {
    /// The rate `r_i` at which the segment ends.
    pub up_to: Iops,
    /// The mean latency `tr_i` of a load of reads only.
    pub read: Span,
    /// The mean latency `tw_i` of a load of writes only.
    pub write: Span,
}

/// A latency for a request rate: one segment or more, in increasing rate.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(try_from = "Vec<SloPoint>", into = "Vec<SloPoint>")]
pub struct Slo {
    points: Vec<SloPoint>,
}

/// Whether a window kept its volume's promise.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// What was promised was kept. Of a mean latency: the requests that came in the window took at most the
    /// target on average.
    Met,
    /// It was not. Of a mean latency: the requests took longer on average; one without an answer counts with
    /// its age. Or nothing came, while a request waited for longer than the target.
    Missed,
    /// The volume offered more than its SLO covers in the window before.
    OutOfContract,
    /// There was nothing to judge.
    Idle,
    /// The volume has no SLO, and no target in place of it.
    NoSlo,
}

/// Why a list of points is no SLO. The numbers of points count from zero.
#[derive(Clone, Copy, PartialEq, Debug, Error)]
pub enum SloError {
    /// No points at all.
    #[error("an SLO needs at least one point")]
    Empty,
    /// A rate is not above the one before it.
    #[error("point {0}: `up_to` must be above that of the point before")]
    RateNotIncreasing(usize),
    /// A latency is below the one before it.
    #[error("point {0}: a latency must not be below that of the point before, at a lower rate")]
    LatencyDecreasing(usize),
    /// A latency of zero.
    #[error("point {0}: a latency must be above zero")]
    ZeroLatency(usize),
}

impl Verdict {
    /// Every verdict.
    pub const ALL: [Self; 5] = [Self::Met, Self::Missed, Self::OutOfContract, Self::Idle, Self::NoSlo];

    /// The verdict as it is written at every edge: JSON and metric labels.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::Missed => "missed",
            Self::OutOfContract => "out_of_contract",
            Self::Idle => "idle",
            Self::NoSlo => "no_slo",
        }
    }
}

impl Slo {
    /// The SLO with these segments.
    ///
    /// # Errors
    /// If there are no points, a rate does not increase, or a latency is zero or decreases.
    pub fn new(points: Vec<SloPoint>) -> Result<Self, SloError> {
        if points.is_empty() {
            return Err(SloError::Empty);
        }
        if let Some(zero) = points.iter().position(|p| p.read.is_zero() || p.write.is_zero()) {
            return Err(SloError::ZeroLatency(zero));
        }
        for (i, pair) in points.windows(2).enumerate() {
            if pair[1].up_to <= pair[0].up_to {
                return Err(SloError::RateNotIncreasing(i + 1));
            }
            if pair[1].read < pair[0].read || pair[1].write < pair[0].write {
                return Err(SloError::LatencyDecreasing(i + 1));
            }
        }
        Ok(Self { points })
    }

    /// The segments, in increasing rate; at least one.
    pub fn points(&self) -> &[SloPoint] {
        &self.points
    }

    /// The mean latency promised to a load with the share `read_fraction` of reads (0 to 1), if `arrived`
    /// arrived over the window before. `None` if that was above the curve: then nothing is promised.
    pub fn target(&self, arrived: &Arrivals, read_fraction: f64) -> Option<Span> {
        let point = self.points.iter().find(|p| !is_above(arrived, p.up_to))?;
        let seconds =
            read_fraction * point.read.as_secs_f64() + (1.0 - read_fraction) * point.write.as_secs_f64();
        Some(Span::from_secs_f64(seconds))
    }

    /// How many requests a volume that keeps to the curve has outstanding at most, if each takes `latency`:
    /// twice what Little's law says for the highest rate, as requests come at random.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // more than fits is as good as all
    pub fn outstanding(&self, latency: Span) -> u32 {
        let rate = self.points.last().map_or(0.0, |point| point.up_to.get());
        (2.0 * rate * latency.as_secs_f64()).ceil() as u32
    }
}

impl TryFrom<Vec<SloPoint>> for Slo {
    type Error = SloError;
    fn try_from(points: Vec<SloPoint>) -> Result<Self, SloError> {
        Self::new(points)
    }
}

impl From<Slo> for Vec<SloPoint> {
    fn from(slo: Slo) -> Self {
        slo.points
    }
}

/// Whether what arrived is above `rate` by more than counting noise (two standard deviations).
#[allow(clippy::cast_precision_loss)]
fn is_above(arrived: &Arrivals, rate: Iops) -> bool {
    let expected = rate.get() * arrived.transfers.over.as_secs_f64();
    arrived.total() as f64 > expected + 2.0 * expected.sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Offered;

    fn point(rate: f64, read_ms: u64, write_ms: u64) -> SloPoint {
        SloPoint {
            up_to: Iops::new(rate).unwrap(),
            read: Span::from_millis(read_ms),
            write: Span::from_millis(write_ms),
        }
    }

    fn offered(total: u64) -> Arrivals {
        Offered { reads: total, writes: 0, over: Span::from_secs(1) }.into()
    }

    #[test]
    fn the_target_is_interpolated_between_reads_and_writes() {
        let slo = Slo::new(vec![point(300.0, 10, 20)]).unwrap();
        assert_eq!(slo.target(&offered(100), 1.0), Some(Span::from_millis(10)));
        assert_eq!(slo.target(&offered(100), 0.0), Some(Span::from_millis(20)));
        assert_eq!(slo.target(&offered(100), 0.5), Some(Span::from_millis(15)));
    }

    #[test]
    fn a_higher_rate_takes_the_next_segment_and_beyond_the_last_nothing_is_promised() {
        let slo = Slo::new(vec![point(300.0, 10, 10), point(1000.0, 25, 25)]).unwrap();
        assert_eq!(slo.target(&offered(0), 1.0), Some(Span::from_millis(10)));
        assert_eq!(slo.target(&offered(600), 1.0), Some(Span::from_millis(25)));
        assert_eq!(slo.target(&offered(2000), 1.0), None);
    }

    #[test]
    fn a_rate_that_cannot_be_told_from_the_end_of_a_segment_is_in_contract() {
        let slo = Slo::new(vec![point(200.0, 50, 50)]).unwrap();
        assert!(slo.target(&offered(200), 1.0).is_some());
        assert!(slo.target(&offered(228), 1.0).is_some());
        assert!(slo.target(&offered(229), 1.0).is_none());
    }

    #[test]
    fn requests_of_every_kind_count_towards_the_rate_that_is_covered() {
        let slo = Slo::new(vec![point(200.0, 50, 50)]).unwrap();
        let with = |others| Arrivals { others, ..offered(100) };
        assert!(slo.target(&with(128), 1.0).is_some());
        assert!(slo.target(&with(129), 1.0).is_none());
    }

    #[test]
    fn a_curve_must_increase() {
        assert_eq!(Slo::new(vec![]), Err(SloError::Empty));
        let same_rate = vec![point(300.0, 10, 10), point(300.0, 20, 20)];
        assert_eq!(Slo::new(same_rate), Err(SloError::RateNotIncreasing(1)));
        let falling = vec![point(300.0, 10, 10), point(400.0, 9, 10)];
        assert_eq!(Slo::new(falling), Err(SloError::LatencyDecreasing(1)));
        assert_eq!(Slo::new(vec![point(300.0, 0, 10)]), Err(SloError::ZeroLatency(0)));
    }
}
