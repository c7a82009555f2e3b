//! What a volume is to get in absolute terms, and how much that matters when not all targets fit (Maestro
//! §3.1).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{Bandwidth, Iops, Span};

/// What a volume is to get: one metric and its value.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub enum Target {
    /// A mean latency of at most this.
    Latency(Span),
    /// This percentage of requests answered within this latency.
    Percentile(Percentile, Span),
    /// At least so many bytes a second.
    Throughput(Bandwidth),
    /// At least so many requests a second.
    Rate(Iops),
}

/// A percentile of latencies, such as 95 or 99.9: in tenths of a percent, from 0.1 to 99.9.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(try_from = "u16", into = "u16")]
pub struct Percentile(u16);

/// How much a volume's shortfall counts: finite and above zero. A volume of priority 4 falls short a quarter
/// as far as one of priority 1.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Priority(f64);

/// A target, if there is one, and a priority.
///
/// A volume without a target is promised nothing: it gets a part of what the others leave, in proportion to
/// its priority.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct Objective {
    /// What it is to get.
    pub target: Option<Target>,
    /// How much its shortfall counts.
    pub priority: Priority,
}

/// A number that is no percentile: not from 0.1 to 99.9.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error("a percentile must be from 0.1 to 99.9, in tenths")]
pub struct NoPercentile;

/// A number that is no priority: zero, below zero, or not finite.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error("a priority must be a finite number above zero")]
pub struct NoPriority;

impl Percentile {
    /// The percentile of `tenths` tenths of a percent; `None` unless `tenths` is from 1 to 999.
    pub const fn from_tenths(tenths: u16) -> Option<Self> {
        if tenths >= 1 && tenths <= 999 { Some(Self(tenths)) } else { None }
    }

    /// Tenths of a percent.
    pub const fn tenths(self) -> u16 {
        self.0
    }

    /// Percent, such as 99.9.
    pub fn percent(self) -> f64 {
        f64::from(self.0) / 10.0
    }
}

impl fmt::Display for Percentile {
    /// As in `p95`, `p99.9`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0 / 10, self.0 % 10) {
            (whole, 0) => write!(f, "p{whole}"),
            (whole, tenth) => write!(f, "p{whole}.{tenth}"),
        }
    }
}

impl FromStr for Percentile {
    type Err = NoPercentile;

    /// As in `p95`, `p99.9`.
    fn from_str(text: &str) -> Result<Self, NoPercentile> {
        let number = text.strip_prefix('p').ok_or(NoPercentile)?;
        let (whole, tenth) = number.split_once('.').unwrap_or((number, "0"));
        let digits = |text: &str, most: usize| {
            (1..=most).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
        };
        if !digits(whole, 2) || !digits(tenth, 1) {
            return Err(NoPercentile);
        }
        format!("{whole}{tenth}").parse().ok().and_then(Self::from_tenths).ok_or(NoPercentile)
    }
}

impl TryFrom<u16> for Percentile {
    type Error = NoPercentile;
    fn try_from(tenths: u16) -> Result<Self, NoPercentile> {
        Self::from_tenths(tenths).ok_or(NoPercentile)
    }
}

impl From<Percentile> for u16 {
    fn from(percentile: Percentile) -> Self {
        percentile.0
    }
}

impl Priority {
    /// That of all volumes, if nothing is said.
    pub const ONE: Self = Self(1.0);

    /// The priority `value`; `None` unless it is finite and above zero.
    pub fn new(value: f64) -> Option<Self> {
        (value.is_finite() && value > 0.0).then_some(Self(value))
    }

    /// The number.
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl Default for Priority {
    /// One: all volumes count the same.
    fn default() -> Self {
        Self::ONE
    }
}

impl TryFrom<f64> for Priority {
    type Error = NoPriority;
    fn try_from(value: f64) -> Result<Self, NoPriority> {
        Self::new(value).ok_or(NoPriority)
    }
}

impl From<Priority> for f64 {
    fn from(priority: Priority) -> Self {
        priority.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_shown_as_it_is_spoken() {
        assert_eq!(Percentile::from_tenths(950).unwrap().to_string(), "p95");
        assert_eq!(Percentile::from_tenths(999).unwrap().to_string(), "p99.9");
        assert_eq!((Percentile::from_tenths(0), Percentile::from_tenths(1000)), (None, None));
    }

    #[test]
    fn a_percentile_is_read_as_it_is_shown_and_nothing_else_is() {
        for tenths in 1..=999 {
            let percentile = Percentile::from_tenths(tenths).unwrap();
            assert_eq!(percentile.to_string().parse(), Ok(percentile));
        }
        for wrong in ["", "p", "95", "p0", "p100", "p9.99", "p.5", "p-1", "p+1", "P95", "p95.", "p1e1"] {
            assert_eq!(wrong.parse::<Percentile>(), Err(NoPercentile), "{wrong}");
        }
    }

    #[test]
    fn a_priority_is_finite_and_above_zero() {
        assert_eq!(Some(Priority::default()), Priority::new(1.0));
        for wrong in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(Priority::new(wrong), None);
        }
    }
}
