//! Sizes, rates and times for people, and tables of them.

use chrono::{DateTime, Local};
use comfy_table::{CellAlignment, Table, presets};

/// Bytes with three digits and a unit of a thousand, as the rates have.
#[allow(clippy::cast_precision_loss)]
pub(crate) fn size(bytes: u64) -> String {
    if bytes < 1_000 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1e3;
    let mut units = ["kB", "MB", "GB", "TB", "PB"].into_iter();
    let mut unit = units.next();
    while value >= 999.5 {
        value /= 1e3;
        unit = units.next();
    }
    let digits = if value < 9.995 { 2 } else { usize::from(value < 99.95) };
    format!("{value:.digits$} {}", unit.unwrap_or("EB"))
}

/// Bytes a second.
pub(crate) fn rate(bytes_per_second: u64) -> String {
    format!("{}/s", size(bytes_per_second))
}

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

/// A length of time, to the second above a minute.
pub(crate) fn length(ms: u64) -> String {
    let seconds = ms / 1_000;
    match seconds {
        0..60 => format!("{}.{} s", seconds, ms % 1_000 / 100),
        60..3_600 => format!("{} m {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} m", seconds / 3_600, seconds % 3_600 / 60),
    }
}

/// A checksum in hexadecimal digits.
pub(crate) fn hexadecimal(checksum: &[u8]) -> String {
    use std::fmt::Write;
    checksum.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}"); // a string takes everything
        text
    })
}

/// A table whose numbers, at these columns, are at the right.
pub(crate) fn table(head: &[&str], numbers: &[usize], rows: impl IntoIterator<Item = Vec<String>>) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY).set_header(head.to_vec());
    for row in rows {
        table.add_row(row);
    }
    for column in numbers {
        if let Some(column) = table.column_mut(*column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_three_digits_and_a_unit() {
        let shown = [0, 999, 1_000, 12_345, 123_456, 999_499, 999_500, 1_500_000_000, u64::MAX].map(size);
        let wanted =
            ["0 B", "999 B", "1.00 kB", "12.3 kB", "123 kB", "999 kB", "1.00 MB", "1.50 GB", "18.4 EB"];
        assert_eq!(shown, wanted);
    }

    #[test]
    fn a_rate_is_rounded_down_and_needs_no_time_at_all() {
        assert_eq!(rate_of(20_000_000, 2_000), 10_000_000);
        assert_eq!(rate_of(5, 0), 5_000);
        assert_eq!(rate_of(u64::MAX, 1), u64::MAX);
    }

    #[test]
    fn lengths_are_as_exact_as_people_want() {
        assert_eq!([0, 1_550, 61_000, 7_260_000].map(length), ["0.0 s", "1.5 s", "1 m 1 s", "2 h 1 m"]);
    }
}
