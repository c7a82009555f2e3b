//! How much a run measures, which a report repeats.

use serde::Serialize;

/// How a run measures: the arguments with their defaults.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Effort {
    /// How often each measurement is made.
    pub(super) rounds: u32,
    /// How long each takes.
    pub(super) seconds: u32,
}
