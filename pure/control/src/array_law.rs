//! The allocator of an array: Maestro's law, together with the total that it shares out.
//!
//! An array has one allocator. It runs in the engine if one engine serves all ports of the array, and in the
//! controller if several gateways do. Both use this code, so both come to the same grants from the same
//! observations.

use std::num::NonZeroU32;

use weir_model::Instant;

use crate::completions::Completions;
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
        Self::with(total, Completions::ALL)
    }

    /// The allocator with some of the completions of Maestro's law.
    pub fn with(total: TotalConcurrency, completions: Completions) -> Self {
        Self { maestro: Maestro::with(completions), total: Total::new(total) }
    }

    /// Changes the total. The law keeps what it has learnt of applications and by probing.
    pub const fn set_total(&mut self, total: TotalConcurrency) {
        self.total.set_config(total);
    }

    /// How many requests may be at the array at a time.
    pub const fn total(&self) -> NonZeroU32 {
        self.total.get()
    }

    /// The most that [`Self::total`] can have been with this configuration, also in an earlier process.
    pub fn most(&self) -> u32 {
        self.total.most()
    }

    /// One step, in two parts: the total follows what was seen, if it is found by probing. Then the law
    /// shares it out.
    ///
    /// `reserved` requests of the total belong to ports that are not among those of `applications`. Each
    /// application gets at least one request at each port, even if the total is smaller. If `applications` is
    /// empty, the law makes no step, and keeps what it knows of the applications that it saw before.
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
