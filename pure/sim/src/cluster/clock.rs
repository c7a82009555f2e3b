//! The clock of one machine. It began at another instant than the other clocks, and runs a little faster or
//! slower.

use weir_model::{Instant, Span};

/// The most that a clock may run too fast or too slow, in parts of 10^9. 500 ppm is the most by which Linux
/// slews a clock (`adjtimex(2)`).
pub(super) const MOST_DRIFT: i64 = 500_000;

/// The parts that a drift is counted in.
const PARTS: i128 = 1_000_000_000;

/// A clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Clock {
    /// The time that it shows at the start of the run.
    pub offset: Span,
    /// How much faster than true time it is, in parts of 10^9.
    pub drift: i64,
}

impl Clock {
    /// The time that it shows at a true instant.
    pub(super) fn shows(self, at: Instant) -> Instant {
        let at = i128::from(at.as_nanos());
        let shown = i128::from(self.offset.as_nanos()) + at + at * i128::from(self.drift) / PARTS;
        Instant::from_nanos(u64::try_from(shown).unwrap_or(u64::MAX))
    }

    /// The first true instant at which it shows `shown`, or later.
    pub(super) fn when(self, shown: Instant) -> Instant {
        if shown == Instant::FAR_FUTURE {
            return shown;
        }
        let elapsed = i128::from(shown.as_nanos()) - i128::from(self.offset.as_nanos());
        let at = elapsed * PARTS / (PARTS + i128::from(self.drift)) - 1;
        let mut at = Instant::from_nanos(u64::try_from(at.max(0)).unwrap_or(u64::MAX));
        while self.shows(at) < shown {
            at = at + Span::from_nanos(1);
        }
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timer_of_a_local_clock_is_never_early_and_at_most_a_nanosecond_late() {
        for drift in [-MOST_DRIFT, -1, 0, 7, MOST_DRIFT] {
            let clock = Clock { offset: Span::from_secs(1_000), drift };
            for nanos in [0, 1, 999, 6_000_000_000, 86_400_000_000_001] {
                let shown = Instant::from_nanos(1_000_000_000_000 + nanos);
                let at = clock.when(shown);
                assert!(clock.shows(at) >= shown, "{clock:?} {nanos}");
                assert!(at == Instant::ORIGIN || clock.shows(at - Span::from_nanos(1)) < shown);
            }
        }
    }
}
