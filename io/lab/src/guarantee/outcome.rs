//! What became of the volumes of a cell in a run.

use serde::{Deserialize, Serialize};
use weir_model::Span;

use super::promise::{Request, Tally, answered, mean, p99};

/// How a promise was kept.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct Kept {
    /// Windows that kept it.
    pub met: u64,
    /// All windows with requests.
    pub windows: u64,
    /// Requests within the limit; of a rate, those that were answered while clients asked.
    pub in_time: u64,
    /// All requests.
    pub requests: u64,
    /// The longest latency, in microseconds.
    pub worst_us: u64,
}

/// What a volume got.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Got {
    /// The mean latency, in microseconds.
    pub mean_us: u64,
    /// The latency within which 99 % of the requests were answered, in microseconds.
    pub p99_us: u64,
    /// Requests that were answered while clients asked.
    pub answered: u64,
}

/// What became of a volume, in relation to what it was before. 1 is the same.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Harm {
    /// Its mean latency.
    pub mean: f64,
    /// The latency within which 99 % of its requests are answered.
    pub p99: f64,
    /// The requests that it got answered while it asked.
    pub rate: f64,
}

impl Kept {
    pub(super) fn of(tally: &Tally, requests: &[Request]) -> Self {
        let worst = requests.iter().map(|request| request.latency).max();
        Self {
            met: tally.windows.iter().filter(|kept| **kept).count() as u64,
            windows: tally.windows.len() as u64,
            in_time: tally.in_time,
            requests: tally.requests,
            worst_us: worst.map_or(0, Span::as_micros),
        }
    }

    /// The share of windows that kept the promise; one if there was nothing to keep.
    #[allow(clippy::cast_precision_loss)] // some windows
    pub fn share(&self) -> f64 {
        if self.windows == 0 { 1.0 } else { self.met as f64 / self.windows as f64 }
    }
}

impl Got {
    pub(super) fn of(requests: &[Request]) -> Self {
        let (mean, p99) = (mean(requests), p99(requests));
        Self { mean_us: mean.as_micros(), p99_us: p99.as_micros(), answered: answered(requests) }
    }
}

impl Harm {
    #[allow(clippy::cast_precision_loss)] // requests and microseconds of some minutes
    pub(super) fn of(before: Got, after: Got) -> Self {
        let ratio = |before: u64, after: u64| if before > 0 { after as f64 / before as f64 } else { 1.0 };
        Self {
            mean: ratio(before.mean_us, after.mean_us),
            p99: ratio(before.p99_us, after.p99_us),
            rate: ratio(before.answered, after.answered),
        }
    }
}
