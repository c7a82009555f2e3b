//! Which rate a node reached with which number of transfers.

use std::collections::BTreeMap;

use weir_model::{Instant, Span};

/// For how long a rate is remembered. A node that others use is another node some minutes later.
pub(super) const REMEMBERED: Span = Span::from_secs(300);
/// By which part of it a rate may differ from the mean of the same number of transfers. Two samples that
/// differ by more are of another node.
const SAME: f64 = 0.25;
/// The least weight of a sample in the mean.
const NEWEST: f64 = 0.1;

/// The rates of a node in one direction, in bytes a second.
#[derive(Clone, PartialEq, Default, Debug)]
pub(super) struct History {
    /// By the number of transfers. There is at most one for each sample of [`REMEMBERED`].
    rates: BTreeMap<u32, Mean>,
    /// The sample before, if the number of transfers was the same.
    before: Option<(u32, f64)>,
}

#[derive(Clone, Copy, PartialEq, Debug)]
struct Mean {
    rate: f64,
    samples: u32,
    at: Instant,
}

impl History {
    /// A sample. `active` is the number of transfers if it was the same all the time.
    pub(super) fn sampled(&mut self, now: Instant, active: Option<u32>, rate: f64) {
        self.rates.retain(|_, known| now.saturating_since(known.at) <= REMEMBERED);
        let Some(active) = active.filter(|active| *active > 0) else {
            self.before = None;
            return;
        };
        let before = self.before.filter(|(number, _)| *number == active).map(|(_, rate)| rate);
        self.before = Some((active, rate));
        if let (Some(before), Some(known)) = (before, self.rates.get(&active)) {
            let last = f64::midpoint(before, rate);
            if (last - known.rate).abs() > SAME * known.rate {
                self.rates.clear();
                self.rates.insert(active, Mean { rate: last, samples: 2, at: now });
                return;
            }
        }
        let mean = self.rates.entry(active).or_insert(Mean { rate, samples: 0, at: now });
        mean.samples = mean.samples.saturating_add(1);
        mean.rate += NEWEST.max(1.0 / f64::from(mean.samples)) * (rate - mean.rate);
        mean.at = now;
    }

    /// The rate with this number of transfers, if it is known.
    pub(super) fn reached(&self, now: Instant, active: u32) -> Option<f64> {
        let known = self.rates.get(&active).filter(|known| now.saturating_since(known.at) <= REMEMBERED);
        known.map(|known| known.rate)
    }

    /// The rate with one transfer more. `None` while that with the present number is not known.
    pub(super) fn predicted(&self, now: Instant, active: u32, peak: f64) -> Option<f64> {
        let reached = self.reached(now, active)?;
        let with_a_share = reached + reached / f64::from(active);
        Some(match self.reached(now, active + 1) {
            Some(known) => known.min(with_a_share),
            None => with_a_share.min(peak.max(reached)),
        })
    }

    /// The largest share of one transfer.
    pub(super) fn largest_share(&self) -> f64 {
        self.rates.iter().map(|(active, mean)| mean.rate / f64::from(*active)).fold(0.0, f64::max)
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
    fn a_number_that_was_tried_is_remembered_and_another_adds_a_share_up_to_the_peak() {
        let (history, now) = after(&[(1, 26.0), (2, 52.0), (3, 60.0), (2, 52.0)]);
        assert_eq!(history.predicted(now, 1, 300.0), Some(52.0));
        assert_eq!(history.predicted(now, 2, 300.0), Some(60.0));
        assert_eq!(history.predicted(now, 3, 300.0), Some(80.0));
        assert_eq!(history.predicted(now, 3, 61.0), Some(61.0));
        assert_eq!(history.predicted(now, 4, 300.0), None);
        assert!((history.largest_share() - 26.0).abs() < 1e-9);
    }

    #[test]
    fn a_rate_is_known_with_the_first_whole_sample_and_for_five_minutes() {
        let mut history = History::default();
        history.sampled(at(1), None, 50.0);
        assert_eq!(history.reached(at(1), 2), None, "a transfer came or went");
        history.sampled(at(2), Some(2), 50.0);
        history.sampled(at(3), Some(2), 54.0);
        assert_eq!(history.reached(at(3), 2), Some(52.0));
        assert_eq!(history.reached(at(303), 2), Some(52.0));
        assert_eq!(history.reached(at(304), 2), None);
        history.sampled(at(400), Some(0), 0.0);
        assert_eq!(history, History::default());
    }

    #[test]
    fn a_node_that_has_changed_is_learned_anew_and_one_odd_second_changes_nothing() {
        let (history, now) = after(&[(1, 26.0), (2, 52.0), (1, 24.0)]);
        assert_eq!(history.reached(now, 2), Some(52.0), "8 % less is the same node");
        let (mut history, now) = after(&[(1, 26.0), (2, 52.0)]);
        history.sampled(now, Some(1), 10.0);
        assert_eq!(history.reached(now, 2), Some(52.0), "one second");
        history.sampled(now, Some(1), 12.0);
        assert_eq!((history.reached(now, 1), history.reached(now, 2)), (Some(11.0), None));
    }
}
