//! Rates: requests and bytes a second, and what a volume was offered over a span.

use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::Span;

/// Requests a second: finite and above zero.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Iops(f64);

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
