//! Counts as numbers to calculate with, for all stages.

/// A count as a number to calculate with.
#[allow(clippy::cast_precision_loss)] // counts of requests, far below 2^53
pub(crate) const fn float(count: u64) -> f64 {
    count as f64
}
