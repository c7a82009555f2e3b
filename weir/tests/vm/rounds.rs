//! The number of times that servers are killed under writes.

/// The environment variable with the number of all kills; a hundred if it is not set.
pub(super) const VARIABLE: &str = "WEIR_KILL_ROUNDS";

/// The number of rounds for one kind of storage, which has `percent` of all rounds.
pub(crate) fn rounds(percent: u64) -> u64 {
    let all = std::env::var(VARIABLE).ok().map_or(100, |text| text.parse().expect("a number of rounds"));
    (all * percent).div_ceil(100)
}
