//! A law is a step from an observation to a setting.

use weir_model::Instant;

/// A law: one step for each control period.
pub trait Law {
    /// The facts about the last period that the law needs.
    type Observation;
    /// The law's decision for the next period.
    type Setting;

    /// The setting after `seen`. `now` does not go back from one call to the next.
    fn step(&mut self, now: Instant, seen: &Self::Observation) -> Self::Setting;
}
