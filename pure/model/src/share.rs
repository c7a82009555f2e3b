//! A part of a device's time.

use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::Span;

/// Parts that the whole is divided into.
const WHOLE: u32 = 1_000_000;

/// A part of a device's time, from nothing to a half, in millionths.
///
/// It is a whole number, so that an instant calculated from a share is the same on every machine.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(try_from = "u32", into = "u32")]
pub struct TimeShare(u32);

/// A number that is no share: more than half of the whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error("a share of time must be at most a half")]
pub struct NoShare;

impl TimeShare {
    /// Nothing.
    pub const ZERO: Self = Self(0);
    /// One percent.
    pub const PERCENT: Self = Self(WHOLE / 100);
    /// The most: a half.
    pub const MAX: Self = Self(WHOLE / 2);

    /// The share of `millionths` millionths; `None` for more than a half.
    pub const fn from_millionths(millionths: u32) -> Option<Self> {
        if millionths <= Self::MAX.0 { Some(Self(millionths)) } else { None }
    }

    /// The fraction `share`, to a millionth; `None` unless it is from 0 to 0.5.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // from 0 to half of the whole
    pub fn new(share: f64) -> Option<Self> {
        let is_share = (0.0..=0.5).contains(&share);
        is_share.then(|| Self((share * f64::from(WHOLE)).round() as u32))
    }

    /// Millionths.
    pub const fn millionths(self) -> u32 {
        self.0
    }

    /// The time of which `used` is this share, rounded up: at 1 %, 5 ms pay for 500 ms. `None` for a share of
    /// zero.
    pub fn pays_for(self, used: Span) -> Option<Span> {
        let parts = u128::from(used.as_nanos()) * u128::from(WHOLE);
        let nanos = (self.0 > 0).then(|| parts.div_ceil(u128::from(self.0)))?;
        Some(Span::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)))
    }
}

impl TryFrom<u32> for TimeShare {
    type Error = NoShare;
    fn try_from(millionths: u32) -> Result<Self, NoShare> {
        Self::from_millionths(millionths).ok_or(NoShare)
    }
}

impl From<TimeShare> for u32 {
    fn from(share: TimeShare) -> Self {
        share.0
    }
}

impl fmt::Display for TimeShare {
    /// As a fraction: `0.01`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (f64::from(self.0) / f64::from(WHOLE)).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_from_nothing_to_a_half() {
        assert_eq!(TimeShare::new(0.0), Some(TimeShare::ZERO));
        assert_eq!(TimeShare::new(0.01), Some(TimeShare::PERCENT));
        assert_eq!(TimeShare::new(0.5), Some(TimeShare::MAX));
        assert_eq!([-0.1, 0.51, f64::NAN, f64::INFINITY].map(TimeShare::new), [None; 4]);
        assert_eq!(TimeShare::PERCENT.to_string(), "0.01");
    }

    #[test]
    fn what_was_used_is_paid_for_when_it_is_no_more_than_the_share() {
        let used = Span::from_millis(5);
        assert_eq!(TimeShare::PERCENT.pays_for(used), Some(Span::from_millis(500)));
        assert_eq!(TimeShare::MAX.pays_for(Span::from_nanos(3)), Some(Span::from_nanos(6)));
        assert_eq!(TimeShare::ZERO.pays_for(used), None);
        let least = TimeShare::from_millionths(1).unwrap();
        assert_eq!(least.pays_for(Span::MAX), Some(Span::MAX));
    }
}
