//! A bound on an amount: a number, or no limit.
//!
//! **Why whole numbers.** Their sums are exact. Sums of floats are rounded, so the parts could exceed the
//! whole by a little. Also, infinity less infinity is no number.

/// At most a number, or no limit. A tighter bound is less than a wider one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Bound {
    /// No more than this.
    AtMost(u64),
    /// No limit.
    Unlimited,
}

use Bound::{AtMost, Unlimited};

impl Bound {
    /// The sum of both. A sum that a `u64` cannot hold is [`Unlimited`](Self::Unlimited), so no sum is
    /// counted too low.
    pub(crate) fn plus(self, other: Self) -> Self {
        match (self, other) {
            (AtMost(a), AtMost(b)) => a.checked_add(b).map_or(Unlimited, AtMost),
            _ => Unlimited,
        }
    }

    /// This sum without one of its parts; `None` if the part is unlimited, as the rest is then unknown.
    pub(crate) fn without(self, part: Self) -> Option<Self> {
        match (self, part) {
            (AtMost(sum), AtMost(part)) => sum.checked_sub(part).map(AtMost),
            (Unlimited, AtMost(_)) => Some(Unlimited),
            (_, Unlimited) => None,
        }
    }

    /// What this limit leaves beside `held`: nothing, if `held` is more than the limit.
    pub(crate) fn beside(self, held: Self) -> Self {
        match (self, held) {
            (Unlimited, _) => Unlimited,
            (AtMost(limit), AtMost(held)) => AtMost(limit.saturating_sub(held)),
            (AtMost(_), Unlimited) => AtMost(0),
        }
    }

    /// One of so many equal parts, rounded down, but at least one.
    pub(crate) fn part(self, parts: u64) -> Self {
        match self {
            AtMost(limit) => AtMost((limit / parts).max(1)),
            Unlimited => Unlimited,
        }
    }

    /// How many of so many requests this allows.
    pub(crate) fn of(self, requests: u32) -> u32 {
        match self {
            AtMost(limit) => u32::try_from(limit).unwrap_or(u32::MAX).min(requests),
            Unlimited => requests,
        }
    }

    /// `None` for no limit.
    pub(crate) const fn limit(self) -> Option<u64> {
        match self {
            AtMost(limit) => Some(limit),
            Unlimited => None,
        }
    }
}

impl From<Option<u64>> for Bound {
    fn from(limit: Option<u64>) -> Self {
        limit.map_or(Unlimited, AtMost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_that_no_number_holds_is_counted_as_unlimited() {
        assert_eq!(AtMost(3).plus(AtMost(4)), AtMost(7));
        assert_eq!(AtMost(u64::MAX).plus(AtMost(1)), Unlimited);
        assert_eq!(Unlimited.plus(AtMost(1)), Unlimited);
    }

    #[test]
    fn a_part_is_taken_from_a_sum_only_if_both_are_known() {
        assert_eq!(AtMost(7).without(AtMost(4)), Some(AtMost(3)));
        assert_eq!(Unlimited.without(AtMost(4)), Some(Unlimited), "another part is unlimited");
        assert_eq!(Unlimited.without(Unlimited), None);
        assert_eq!(AtMost(4).without(AtMost(7)), None, "it was no part of it");
    }

    #[test]
    fn a_limit_leaves_nothing_beside_more_than_itself() {
        assert_eq!(AtMost(7).beside(AtMost(4)), AtMost(3));
        assert_eq!(AtMost(7).beside(AtMost(9)), AtMost(0));
        assert_eq!(AtMost(7).beside(Unlimited), AtMost(0));
        assert_eq!(Unlimited.beside(Unlimited), Unlimited);
        assert!(AtMost(u64::MAX) < Unlimited);
    }
}
