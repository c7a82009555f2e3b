//! How many requests an array may have at a time, `C`: fixed by an operator, or found by probing.

use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};
use weir_model::Instant;

use crate::law::Law;
use crate::total_probe::{ProbeObservation, TotalProbe};

/// How many requests may be at an array at a time, from all ports together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum TotalConcurrency {
    /// This many, set by the operator.
    Fixed(NonZeroU32),
    /// As many as raise throughput, found by trying (`total_probe.rs`).
    Auto,
}

/// The total in force.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Total {
    config: TotalConcurrency,
    /// Kept while the total is fixed. If the operator goes back to `Auto`, the total that was found before is
    /// in force again.
    probe: TotalProbe,
}

impl Total {
    pub(crate) const fn new(config: TotalConcurrency) -> Self {
        Self { config, probe: TotalProbe::new() }
    }

    pub(crate) const fn set_config(&mut self, config: TotalConcurrency) {
        self.config = config;
    }

    /// The total in force.
    pub(crate) const fn get(&self) -> NonZeroU32 {
        match self.config {
            TotalConcurrency::Fixed(total) => total,
            TotalConcurrency::Auto => self.probe.total(),
        }
    }

    /// The most that the total can have been with this configuration.
    pub(crate) fn most(&self) -> u32 {
        match self.config {
            TotalConcurrency::Fixed(total) => total.get(),
            TotalConcurrency::Auto => self.probe.total().get().max(TotalProbe::MOST),
        }
    }

    /// Takes in what was seen, if the total is found by probing.
    pub(crate) fn observe(&mut self, now: Instant, seen: &ProbeObservation) {
        if self.config == TotalConcurrency::Auto {
            self.probe.step(now, seen);
        }
    }
}
