//! Points in time and the spans between them, in integer nanoseconds.
//!
//! The types of `std::time` will not do: its `Instant` has no public origin. Pure code could only get one by
//! reading a clock, which it must not do.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

use serde::{Deserialize, Serialize};

/// A point in time: nanoseconds since an origin that the driver chose (the start of the machine, or of a
/// simulation). Instants reach 584 years far.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Instant(u64);

/// A length of time in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Span(u64);

impl Instant {
    /// The origin.
    pub const ORIGIN: Self = Self(0);
    /// Later than every other instant.
    pub const FAR_FUTURE: Self = Self(u64::MAX);

    /// The instant that lies `nanos` nanoseconds after the origin.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the origin.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The span from `earlier` to `self`.
    ///
    /// # Panics
    /// If `earlier` is later than `self`: time does not go back.
    pub fn since(self, earlier: Self) -> Span {
        assert!(earlier <= self, "time went back: {earlier:?} is later than {self:?}");
        Span(self.0 - earlier.0)
    }

    /// The span from `other` to `self`, or zero if `other` is later.
    pub const fn saturating_since(self, other: Self) -> Span {
        Span(self.0.saturating_sub(other.0))
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Self = Self(0);
    /// The longest span.
    pub const MAX: Self = Self(u64::MAX);

    /// A span of `n` nanoseconds.
    pub const fn from_nanos(n: u64) -> Self {
        Self(n)
    }

    /// A span of `n` microseconds.
    pub const fn from_micros(n: u64) -> Self {
        Self(n.saturating_mul(1_000))
    }

    /// A span of `n` milliseconds.
    pub const fn from_millis(n: u64) -> Self {
        Self(n.saturating_mul(1_000_000))
    }

    /// A span of `n` seconds.
    pub const fn from_secs(n: u64) -> Self {
        Self(n.saturating_mul(1_000_000_000))
    }

    /// A span of `seconds`, rounded to the nanosecond. Negative numbers and NaN become zero; numbers that are
    /// too large become [`Span::MAX`].
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // `as` saturates, which is what is meant
    pub fn from_secs_f64(seconds: f64) -> Self {
        Self((seconds * 1e9).round() as u64)
    }

    /// The span in nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The span in whole microseconds, rounded down.
    pub const fn as_micros(self) -> u64 {
        self.0 / 1_000
    }

    /// The span in seconds.
    #[allow(clippy::cast_precision_loss)]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// True for a span of no length.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// The span times `n`, at most [`Span::MAX`].
    pub const fn saturating_mul(self, n: u64) -> Self {
        Self(self.0.saturating_mul(n))
    }
}

/// Saturates at [`Instant::FAR_FUTURE`], so that "never" plus anything is still "never".
impl Add<Span> for Instant {
    type Output = Self;
    fn add(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

/// Saturates at [`Instant::ORIGIN`].
impl Sub<Span> for Instant {
    type Output = Self;
    fn sub(self, span: Span) -> Self {
        Self(self.0.saturating_sub(span.0))
    }
}

impl Add for Span {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Span {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl From<std::time::Duration> for Span {
    fn from(duration: std::time::Duration) -> Self {
        Self(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl From<Span> for std::time::Duration {
    fn from(span: Span) -> Self {
        Self::from_nanos(span.0)
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::FAR_FUTURE { f.write_str("@never") } else { write!(f, "@{}", Span(self.0)) }
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// In the largest unit that leaves a whole part, with up to three decimals: `250us`, `1.5ms`, `10s`.
impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, name) = match self.0 {
            0 => return f.write_str("0s"),
            1..1_000 => (1, "ns"),
            1_000..1_000_000 => (1_000, "us"),
            1_000_000..1_000_000_000 => (1_000_000, "ms"),
            _ => (1_000_000_000, "s"),
        };
        let (whole, rest) = (self.0 / unit, self.0 % unit);
        let thousandths = if unit == 1 { 0 } else { rest * 1_000 / unit };
        if thousandths == 0 {
            write!(f, "{whole}{name}")
        } else {
            let decimals = format!("{thousandths:03}");
            write!(f, "{whole}.{}{name}", decimals.trim_end_matches('0'))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_shown_in_its_largest_whole_unit() {
        for (nanos, text) in [
            (0, "0s"),
            (7, "7ns"),
            (250_000, "250us"),
            (1_500_000, "1.5ms"),
            (12_050_000, "12.05ms"),
            (10_000_000_000, "10s"),
        ] {
            assert_eq!(Span::from_nanos(nanos).to_string(), text);
        }
    }

    #[test]
    fn never_plus_a_span_is_still_never() {
        assert_eq!(Instant::FAR_FUTURE + Span::from_secs(1), Instant::FAR_FUTURE);
    }

    #[test]
    #[should_panic(expected = "time went back")]
    fn since_refuses_an_instant_that_lies_later() {
        let _ = Instant::ORIGIN.since(Instant::from_nanos(1));
    }

    #[test]
    fn seconds_that_make_no_sense_become_zero_or_the_longest_span() {
        assert_eq!(Span::from_secs_f64(-1.0), Span::ZERO);
        assert_eq!(Span::from_secs_f64(f64::NAN), Span::ZERO);
        assert_eq!(Span::from_secs_f64(f64::INFINITY), Span::MAX);
        assert_eq!(Span::from_secs_f64(0.005), Span::from_millis(5));
    }
}
