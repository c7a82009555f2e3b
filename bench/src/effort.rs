//! How much a run measures. A report repeats it.

use serde::Serialize;

/// How a run measures: the arguments with their defaults.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Effort {
    /// How often each measurement is made.
    pub(super) rounds: u32,
    /// How long each measurement takes.
    pub(super) seconds: u32,
}
