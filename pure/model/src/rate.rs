//! Rates: requests and bytes a second, and what a volume was offered over a span.

use std::fmt;
use std::num::NonZeroU64;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::Span;

/// Requests a second: finite and above zero.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Iops(f64);

/// Thousandths of a request a second, above zero: a rate whose parts add up exactly.
///
/// Parts of an [`Iops`] do not, because each sum of floats is rounded. So grants are counted in this unit.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct MilliIops(NonZeroU64);

/// Bytes a second, above zero.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(try_from = "u64", into = "u64")]
pub struct Bandwidth(u64);

/// A number that is no rate: zero, below zero, or not finite.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error("a rate must be a finite number above zero")]
pub struct NoRate;

impl Iops {
    /// `rate` requests a second; `None` unless it is finite and above zero.
    pub fn new(rate: f64) -> Option<Self> {
        (rate.is_finite() && rate > 0.0).then_some(Self(rate))
    }

    /// Requests a second.
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl MilliIops {
    /// `rate` thousandths of a request a second; `None` for zero.
    pub const fn new(rate: u64) -> Option<Self> {
        match NonZeroU64::new(rate) {
            Some(rate) => Some(Self(rate)),
            None => None,
        }
    }

    /// `rate` rounded down, but at least one thousandth: 333.3339 requests a second become 333.333.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // `as` saturates, which is what is meant
    pub fn at_most(rate: Iops) -> Self {
        // The product may be rounded: 4.35 x 1000 may become less than 4350. So the nearest number is tried
        // first.
        let nearest = Self::at_least_one((rate.0 * 1000.0).round() as u64);
        if Iops::from(nearest) <= rate { nearest } else { Self::at_least_one(nearest.get() - 1) }
    }

    /// `rate` thousandths of a request a second, but at least one.
    pub const fn at_least_one(rate: u64) -> Self {
        match NonZeroU64::new(rate) {
            Some(rate) => Self(rate),
            None => Self(NonZeroU64::MIN),
        }
    }

    /// Thousandths of a request a second.
    pub const fn get(self) -> u64 {
        self.0.get()
    }
}

impl From<MilliIops> for Iops {
    #[allow(clippy::cast_precision_loss)] // above 2^53, where no device is
    fn from(rate: MilliIops) -> Self {
        Self(rate.get() as f64 / 1000.0)
    }
}

impl Bandwidth {
    /// `rate` bytes a second; `None` for zero.
    pub const fn new(rate: u64) -> Option<Self> {
        if rate == 0 { None } else { Some(Self(rate)) }
    }

    /// Bytes a second.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl TryFrom<f64> for Iops {
    type Error = NoRate;
    fn try_from(rate: f64) -> Result<Self, NoRate> {
        Self::new(rate).ok_or(NoRate)
    }
}

impl From<Iops> for f64 {
    fn from(rate: Iops) -> Self {
        rate.0
    }
}

impl TryFrom<u64> for Bandwidth {
    type Error = NoRate;
    fn try_from(rate: u64) -> Result<Self, NoRate> {
        Self::new(rate).ok_or(NoRate)
    }
}

impl From<Bandwidth> for u64 {
    fn from(rate: Bandwidth) -> Self {
        rate.0
    }
}

impl fmt::Display for Iops {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}iops", self.0)
    }
}

/// How many reads and writes arrived over a span.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct Offered {
    /// Reads that arrived.
    pub reads: u64,
    /// Writes that arrived.
    pub writes: u64,
    /// The span over which they were counted.
    pub over: Span,
}

impl Offered {
    /// Reads and writes.
    pub const fn total(&self) -> u64 {
        self.reads + self.writes
    }

    /// Reads and writes a second; zero over no time.
    #[allow(clippy::cast_precision_loss)]
    pub fn rate(&self) -> f64 {
        if self.over.is_zero() { 0.0 } else { self.total() as f64 / self.over.as_secs_f64() }
    }

    /// The share of reads, from 0 to 1; `None` if nothing arrived.
    #[allow(clippy::cast_precision_loss)]
    pub fn read_fraction(&self) -> Option<f64> {
        (self.total() > 0).then(|| self.reads as f64 / self.total() as f64)
    }
}

/// All requests that arrived over a span. An SLO covers so many a second, of whatever kind.
///
/// If only reads and writes counted, a volume could send any number of flushes or trims with the deadlines of
/// its promise, and take the device from the volumes that keep to theirs.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Arrivals {
    /// Reads and writes, and the span.
    pub transfers: Offered,
    /// Requests of other kinds.
    pub others: u64,
}

impl Arrivals {
    /// All requests.
    pub const fn total(&self) -> u64 {
        self.transfers.total() + self.others
    }
}

impl From<Offered> for Arrivals {
    fn from(transfers: Offered) -> Self {
        Self { transfers, others: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thousandths(rate: f64) -> u64 {
        MilliIops::at_most(Iops::new(rate).unwrap()).get()
    }

    #[test]
    fn a_rate_becomes_the_most_thousandths_that_are_not_above_it() {
        assert_eq!(
            [333.3339, 333.3331, 4.35, 1.001, 900.0].map(thousandths),
            [333_333, 333_333, 4350, 1001, 900_000]
        );
        for rate in 1..10_000 {
            let rate = MilliIops::new(rate).unwrap();
            assert_eq!(MilliIops::at_most(rate.into()), rate, "there and back");
        }
    }

    #[test]
    fn no_rate_is_so_low_that_it_becomes_none_and_none_too_high() {
        assert_eq!([1e-300, 0.0004, 0.0019, 1e300].map(thousandths), [1, 1, 1, u64::MAX]);
    }
}
