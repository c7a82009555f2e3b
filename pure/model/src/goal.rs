//! The share of windows in which a promise is to be kept.

use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Parts that the whole is divided into.
const WHOLE: u32 = 1_000_000;

/// The share of the judged windows in which an SLO is to be met, in millionths: from a half to all but a
/// hundred-thousandth. The rest is the error budget. So there always is one, and a burn rate is a number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(try_from = "u32", into = "u32")]
pub struct SloGoal(u32);

/// A number that is no goal.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error("a goal must be from 0.5 to 0.99999")]
pub struct NoGoal;

impl SloGoal {
    /// The least: a half.
    pub const MIN: Self = Self(WHOLE / 2);
    /// The most: all but one in a hundred thousand.
    pub const MAX: Self = Self(WHOLE - 10);

    /// The fraction `share`, to a millionth; `None` unless it is from 0.5 to 0.99999.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // from half of the whole to the whole
    pub fn new(share: f64) -> Option<Self> {
        let is_goal = (0.5..=0.99999).contains(&share);
        is_goal.then(|| Self((share * f64::from(WHOLE)).round() as u32))
    }

    /// The fraction.
    pub fn share(self) -> f64 {
        f64::from(self.0) / f64::from(WHOLE)
    }

    /// How many times as fast as the goal allows windows are missed: the share that is missed, over the share
    /// that may be (Site Reliability Workbook, chapter 5). At 1 the error budget is used up just at the end
    /// of the horizon. `None` if no window was judged.
    #[allow(clippy::cast_precision_loss)] // exact up to 2^53 windows
    pub fn burn_rate(self, met: u64, missed: u64) -> Option<f64> {
        let judged = met.saturating_add(missed);
        let may_miss = f64::from(WHOLE - self.0) / f64::from(WHOLE);
        (judged > 0).then(|| missed as f64 / judged as f64 / may_miss)
    }
}

impl Default for SloGoal {
    /// 99 %: of a minute with windows of a second, at most half a window may be missed; of a day, 864.
    fn default() -> Self {
        Self(WHOLE / 100 * 99)
    }
}

impl TryFrom<u32> for SloGoal {
    type Error = NoGoal;
    fn try_from(millionths: u32) -> Result<Self, NoGoal> {
        let goal = Self(millionths);
        if (Self::MIN..=Self::MAX).contains(&goal) { Ok(goal) } else { Err(NoGoal) }
    }
}

impl From<SloGoal> for u32 {
    fn from(goal: SloGoal) -> Self {
        goal.0
    }
}

impl fmt::Display for SloGoal {
    /// As a fraction: `0.99`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.share().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_leaves_an_error_budget() {
        assert_eq!(SloGoal::new(0.99), Some(SloGoal::default()));
        assert_eq!(SloGoal::new(0.5), Some(SloGoal::MIN));
        assert_eq!(SloGoal::new(0.99999), Some(SloGoal::MAX));
        assert_eq!([0.49, 1.0, 99.0, -1.0, f64::NAN].map(SloGoal::new), [None; 5]);
        assert_eq!(SloGoal::default().to_string(), "0.99");
        assert_eq!(SloGoal::try_from(1_000_000), Err(NoGoal));
    }

    #[test]
    fn a_burn_rate_is_the_share_missed_over_the_share_that_may_be() {
        let goal = SloGoal::default();
        assert_eq!(goal.burn_rate(99, 1), Some(1.0));
        assert_eq!(goal.burn_rate(0, 7), Some(100.0));
        assert_eq!(goal.burn_rate(100, 0), Some(0.0));
        assert_eq!(goal.burn_rate(0, 0), None);
        assert_eq!(SloGoal::new(0.9).unwrap().burn_rate(80, 20), Some(2.0));
    }
}
