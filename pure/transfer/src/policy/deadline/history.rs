//! Which rate a node reached with which number of transfers.

use std::collections::BTreeMap;

use weir_model::{Instant, Span};

/// For how long a rate is remembered. A node that others use is another node a few minutes later; and once a
/// minute, one transfer more is tried again.
pub(super) const REMEMBERED: Span = Span::from_secs(60);
/// So many samples after a change of the number, the rate is known.
pub(super) const SETTLED: u32 = 2;
/// By which part of it a rate may differ from the rate that the same number of transfers reached before.
const SAME: f64 = 0.25;
/// The weight of the newest sample, once there are some.
const NEWEST: f64 = 0.3;

/// The rates of a node in one direction, in bytes a second.
#[derive(Clone, PartialEq, Default, Debug)]
pub(super) struct History {
    /// By the number of transfers. At most one entry for each [`SETTLED`] samples of [`REMEMBERED`].
    rates: BTreeMap<u32, Rate>,
    visit: Option<Visit>,
}

#[derive(Clone, Copy, PartialEq, Debug)]
struct Rate {
    rate: f64,
    at: Instant,
}

/// The samples since the number of transfers changed.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Visit {
    active: u32,
    samples: u32,
    rate: f64,
}

impl History {
    /// A sample. `active` is the number of transfers if it was the same all the time.
    pub(super) fn sampled(&mut self, now: Instant, active: Option<u32>, rate: f64) {
        self.rates.retain(|_, known| now.saturating_since(known.at) <= REMEMBERED);
        let Some(active) = active.filter(|active| *active > 0) else {
            self.visit = None;
            return;
        };
        let visit = match self.visit.filter(|visit| visit.active == active) {
            None => Visit { active, samples: 1, rate },
            Some(Visit { samples, rate: before, .. }) => {
                let samples = samples.saturating_add(1);
                let weight = NEWEST.max(1.0 / f64::from(samples));
                Visit { active, samples, rate: before + weight * (rate - before) }
            }
        };
        self.visit = Some(visit);
        if visit.samples < SETTLED {
            return;
        }
        let before = self.rates.get(&active);
        let is_another = |before: &Rate| (visit.rate - before.rate).abs() > SAME * before.rate;
        if visit.samples == SETTLED && before.is_some_and(is_another) {
            self.rates.clear();
        }
        self.rates.insert(active, Rate { rate: visit.rate, at: now });
    }

    /// The rate with this number of transfers, if it is remembered.
    pub(super) fn reached(&self, now: Instant, active: u32) -> Option<f64> {
        let known = self.rates.get(&active).filter(|known| now.saturating_since(known.at) <= REMEMBERED);
        known.map(|known| known.rate)
    }

    /// The rate with one transfer more. `None` while that with the present number is not known.
    pub(super) fn predicted(&self, now: Instant, active: u32, peak: f64) -> Option<f64> {
        let reached = self.reached(now, active)?;
        let share = reached / f64::from(active);
        let predicted = match self.reached(now, active + 1) {
            Some(known) => known.min(reached + share),
            None => {
                let fewer = if active == 1 { Some(0.0) } else { self.reached(now, active - 1) };
                let gain = fewer.map_or(share, |fewer| reached - fewer);
                (reached + gain.clamp(0.0, share)).min(peak.max(reached))
            }
        };
        Some(predicted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: u64) -> Instant {
        Instant::ORIGIN + Span::from_secs(second)
    }

    /// A node that had each of these numbers of transfers for three samples, with these rates.
    fn after(visits: &[(u32, f64)]) -> (History, Instant) {
        let (mut history, mut second) = (History::default(), 0);
        for (active, rate) in visits {
            for _ in 0..3 {
                second += 1;
                history.sampled(at(second), Some(*active), *rate);
            }
        }
        (history, at(second))
    }

    #[test]
    fn a_number_that_was_tried_is_remembered_and_another_gains_as_the_one_before() {
        let (history, now) = after(&[(1, 26.0), (2, 52.0), (3, 60.0), (2, 52.0)]);
        assert_eq!(history.predicted(now, 1, 300.0), Some(52.0));
        assert_eq!(history.predicted(now, 2, 300.0), Some(60.0));
        assert_eq!(history.predicted(now, 3, 300.0), Some(68.0));
        assert_eq!(history.predicted(now, 3, 61.0), Some(61.0), "no more than the peak");
        assert_eq!(history.predicted(now, 4, 300.0), None);
    }

    #[test]
    fn a_rate_is_known_after_two_samples_and_for_a_minute() {
        let mut history = History::default();
        history.sampled(at(1), Some(2), 50.0);
        assert_eq!(history.reached(at(1), 2), None);
        history.sampled(at(2), None, 55.0);
        history.sampled(at(3), Some(2), 50.0);
        assert_eq!(history.reached(at(3), 2), None, "a transfer came or went in between");
        history.sampled(at(4), Some(2), 54.0);
        assert_eq!(history.reached(at(4), 2), Some(52.0));
        assert_eq!(history.reached(at(64), 2), Some(52.0));
        assert_eq!(history.reached(at(65), 2), None);
    }

    #[test]
    fn a_node_that_has_changed_is_learned_anew() {
        let (history, now) = after(&[(1, 26.0), (2, 52.0), (1, 25.0)]);
        assert_eq!(history.reached(now, 2), Some(52.0), "4 % less is the same node");
        let (history, now) = after(&[(1, 26.0), (2, 52.0), (1, 10.0)]);
        assert_eq!(history.reached(now, 2), None);
        assert_eq!(history.reached(now, 1), Some(10.0));
    }
}
