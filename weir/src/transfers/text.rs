//! Sizes, rates and times for people, and tables of them.

use chrono::{DateTime, Local};
use comfy_table::presets;
use weir_coordinator::proto::{Kind, State};
pub(crate) use weir_table::{length, rate, size};

use crate::terminal;

/// A rate that may be unknown.
pub(crate) fn rate_or_dash(bytes_per_second: u64) -> String {
    if bytes_per_second == 0 { "-".to_owned() } else { rate(bytes_per_second) }
}

/// The rate at which so many bytes were moved in so many milliseconds.
pub(crate) fn rate_of(bytes: u64, ms: u64) -> u64 {
    u64::try_from(u128::from(bytes) * 1_000 / u128::from(ms.max(1))).unwrap_or(u64::MAX)
}

/// A time, local, to the second; a dash for none.
pub(crate) fn time(unix_ms: u64) -> String {
    let found = i64::try_from(unix_ms).ok().filter(|ms| *ms > 0).and_then(DateTime::from_timestamp_millis);
    found.map_or("-".to_owned(), |at| at.with_timezone(&Local).format("%Y-%m-%d %H:%M:%S").to_string())
}

/// A checksum in hexadecimal digits.
pub(crate) fn hexadecimal(checksum: &[u8]) -> String {
    use std::fmt::Write;
    checksum.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}"); // a string takes everything
        text
    })
}

/// A table whose numbers, at these columns, are at the right. `spare` are the columns that may go if the
/// terminal is too narrow, the first of them first.
pub(crate) fn table(
    head: &[&str],
    numbers: &[usize],
    spare: &[usize],
    rows: impl IntoIterator<Item = Vec<String>>,
) -> String {
    let is_text = |column| !numbers.contains(&column);
    weir_table::table(presets::UTF8_HORIZONTAL_ONLY, head, rows, is_text, spare, terminal::width())
}

/// The word for a kind of transfer.
pub(crate) const fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Put => "put",
        Kind::Get => "get",
        Kind::Check => "verify",
        Kind::Import => "import",
        Kind::Replicate => "copy",
        Kind::Unspecified => "?",
    }
}

/// The word for the state of a transfer.
pub(crate) const fn state(state: State) -> &'static str {
    match state {
        State::Waiting => "waiting",
        State::Active => "running",
        State::Done => "done",
        State::Failed => "failed",
        State::Cancelled => "cancelled",
        State::Interrupted => "interrupted",
        State::Unspecified => "?",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_rounded_down_and_needs_no_time_at_all() {
        assert_eq!(rate_of(20_000_000, 2_000), 10_000_000);
        assert_eq!(rate_of(5, 0), 5_000);
        assert_eq!(rate_of(u64::MAX, 1), u64::MAX);
    }
}
