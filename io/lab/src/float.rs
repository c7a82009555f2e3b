//! Numbers to calculate with, and numbers to read, for all stages.

/// A count as a number to calculate with.
#[allow(clippy::cast_precision_loss)] // counts of requests, far below 2^53
pub(crate) const fn float(count: u64) -> f64 {
    count as f64
}

/// The number with about three digits, and its unit.
pub(crate) fn quantity(value: f64, unit: &str) -> String {
    format!("{} {unit}", number(value)).trim_end().to_owned()
}

/// The number with about three digits.
pub(crate) fn number(value: f64) -> String {
    let digits = match value.abs() {
        large if large >= 100.0 => 0,
        middle if middle >= 10.0 => 1,
        _ => 2,
    };
    let text = format!("{value:.digits$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}
