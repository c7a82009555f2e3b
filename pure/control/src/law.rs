//! What every law is: a step from an observation to a setting.

use weir_model::Instant;

/// A law: one step for each control period.
pub trait Law {
    /// What the law has to know about the last period.
    type Observation;
    /// What the law decides for the next period.
    type Setting;

    /// The setting after `seen`. `now` does not go back from one call to the next.
    fn step(&mut self, now: Instant, seen: &Self::Observation) -> Self::Setting;
}
