//! How often servers are killed under writes.

/// Names how many kills there are in all; a hundred if it is not set.
const VARIABLE: &str = "WEIR_KILL_ROUNDS";

/// The part of all rounds that one kind of storage has, of a hundred.
pub(crate) fn rounds(percent: u64) -> u64 {
    let all = std::env::var(VARIABLE).ok().map_or(100, |text| text.parse().expect("a number of rounds"));
    (all * percent).div_ceil(100)
}

/// What the guest is to know of it, for `env`.
pub(super) fn passed_on() -> Option<String> {
    std::env::var(VARIABLE).ok().map(|value| format!("{VARIABLE}={value}"))
}
