//! How busy the parts of an array were: the first thing to look at if the array is too slow.

use weir_model::{Instant, Span};

/// Shares of time, 0 to 1. Of several parts of one kind, the busiest counts, because requests wait for that
/// one.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Utilisation {
    /// A member had something to do.
    pub members: f64,
    /// A port carried data in one direction.
    pub port: f64,
    /// A write waited for room in NVRAM.
    pub nvram_full: f64,
}

/// Measures for how long a condition held.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Stopwatch {
    total: Span,
    since: Option<Instant>,
}

impl Utilisation {
    /// Converts shares of the time `whole` to shares of `part` of it, if nothing was busy outside of `part`.
    #[must_use]
    pub fn within(self, whole: Span, part: Span) -> Self {
        let factor = whole.as_secs_f64() / part.as_secs_f64();
        let share = |share: f64| if factor.is_finite() { (share * factor).min(1.0) } else { 0.0 };
        Self { members: share(self.members), port: share(self.port), nvram_full: share(self.nvram_full) }
    }
}

impl Stopwatch {
    /// The condition holds from now on, or no longer holds.
    pub(crate) fn set(&mut self, now: Instant, runs: bool) {
        match self.since {
            None if runs => self.since = Some(now),
            Some(since) if !runs => {
                self.total += now.since(since);
                self.since = None;
            }
            _ => {}
        }
    }

    /// For how long the condition has held by now.
    pub(crate) fn total(&self, now: Instant) -> Span {
        self.since.map_or(self.total, |since| self.total + now.saturating_since(since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stopwatch_counts_what_lies_between_on_and_off_and_what_has_not_ended() {
        let at = |seconds| Instant::ORIGIN + Span::from_secs(seconds);
        let mut watch = Stopwatch::default();
        for (second, runs) in [(1, true), (2, true), (4, false), (5, false), (7, true)] {
            watch.set(at(second), runs);
        }
        assert_eq!((watch.total(at(7)), watch.total(at(9))), (Span::from_secs(3), Span::from_secs(5)));
    }

    #[test]
    fn a_part_of_the_time_in_which_all_was_done_is_busier_than_the_whole() {
        let all = Utilisation { members: 0.5, port: 0.25, nvram_full: 0.0 };
        let in_part = all.within(Span::from_secs(20), Span::from_secs(10));
        assert_eq!(in_part, Utilisation { members: 1.0, port: 0.5, nvram_full: 0.0 });
        assert_eq!(all.within(Span::ZERO, Span::ZERO), Utilisation::default());
    }
}
