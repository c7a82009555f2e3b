//! The allocator of an array: what Maestro's law shares out, and how many requests that is.
//!
//! An array has one allocator, wherever its ports are: in the engine that serves them all, or in the
//! controller of the gateways that do. So both come to the same grants from the same observations.

use std::num::NonZeroU32;

use weir_model::Instant;

use crate::law::Law;
use crate::maestro::{ApplicationObservation, ArrayObservation, ArraySetting, Maestro};
use crate::total::{Total, TotalConcurrency};
use crate::total_probe::ProbeObservation;

/// The allocator.
#[derive(Clone, PartialEq, Debug)]
pub struct ArrayLaw {
    maestro: Maestro,
    total: Total,
}

impl ArrayLaw {
    /// The allocator before it has seen anything.
    pub fn new(total: TotalConcurrency) -> Self {
        Self { maestro: Maestro::new(), total: Total::new(total) }
    }

    /// Changes the total. What was learnt of applications, and by probing, is kept.
    pub const fn set_total(&mut self, total: TotalConcurrency) {
        self.total.set_config(total);
    }

    /// How many requests may be at the array at a time.
    pub const fn total(&self) -> NonZeroU32 {
        self.total.get()
    }

    /// The most that [`Self::total`] can have been with the same configuration, also in an earlier process.
    pub fn most(&self) -> u32 {
        self.total.most()
    }

    /// One step, in two: the total follows what was seen, if it is found by probing; then the law shares it
    /// out.
    ///
    /// `reserved` requests of the total are spoken for, by ports that are not among those of `applications`.
    /// Each application has at least one request at each port, even if the total has not so many. Where no
    /// applications were seen the law is not asked, and keeps what it knows of those that it saw before.
    pub fn step(
        &mut self,
        now: Instant,
        reserved: u32,
        applications: Vec<ApplicationObservation>,
    ) -> ArraySetting {
        let seen = ProbeObservation::of(&applications);
        self.total.observe(now, &seen);
        let Some(least) = NonZeroU32::new(seen.least) else {
            return ArraySetting { applications: Vec::new() };
        };
        let free = NonZeroU32::new(self.total().get().saturating_sub(reserved));
        let total = free.map_or(least, |free| free.max(least));
        self.maestro.step(now, &ArrayObservation { total, applications })
    }
}

#[cfg(test)]
mod tests;
