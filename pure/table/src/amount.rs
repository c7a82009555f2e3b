//! Sizes, rates and times for people.
//!
//! Bulk transfers are asked for in megabytes a second, so their sizes and rates have units of a thousand.

/// Bytes with three digits and a unit of a thousand, as the rates have.
#[allow(clippy::cast_precision_loss)]
pub fn size(bytes: u64) -> String {
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
pub fn rate(bytes_per_second: u64) -> String {
    format!("{}/s", size(bytes_per_second))
}

/// A length of time, to the second above a minute.
pub fn length(ms: u64) -> String {
    let seconds = ms / 1_000;
    match seconds {
        0..60 => format!("{}.{} s", seconds, ms % 1_000 / 100),
        60..3_600 => format!("{} m {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} m", seconds / 3_600, seconds % 3_600 / 60),
    }
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
    fn lengths_are_as_exact_as_people_want() {
        assert_eq!([0, 1_550, 61_000, 7_260_000].map(length), ["0.0 s", "1.5 s", "1 m 1 s", "2 h 1 m"]);
    }
}
