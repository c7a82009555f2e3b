//! How many requests an array takes at a time, found by trying: `total_concurrency = "auto"`.

use std::num::NonZeroU32;

use weir_model::{Instant, Span};

use crate::Controller;

/// What was seen of the array in the last control interval.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct ProbeObservation {
    /// How long it was.
    pub over: Span,
    /// Bytes of the reads and writes that were answered.
    pub answered_bytes: u64,
    /// Their number.
    pub answered: u64,
    /// The number of requests at the array, as the mean over the interval.
    pub at_device: f64,
    /// The least total that gives each application a request at each port.
    pub least: u32,
}

/// The law.
#[derive(Clone, PartialEq, Debug)]
pub struct TotalProbe {
    total: NonZeroU32,
}

impl TotalProbe {
    /// The law before it has tried anything.
    pub fn new() -> Self {
        Self { total: NonZeroU32::new(64).expect("above zero") }
    }

    /// The total in force.
    pub const fn total(&self) -> NonZeroU32 {
        self.total
    }
}

impl Default for TotalProbe {
    fn default() -> Self {
        Self::new()
    }
}

impl Controller for TotalProbe {
    type Observation = ProbeObservation;
    type Setting = NonZeroU32;

    fn step(&mut self, _now: Instant, _seen: &ProbeObservation) -> NonZeroU32 {
        self.total
    }
}
