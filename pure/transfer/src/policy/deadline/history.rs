//! Which rate a node reached with which number of transfers.

use std::collections::BTreeMap;

use weir_model::{Instant, Span};

use crate::policy::{Count, Sample};

/// For how long a rate is remembered. A node that others use is another node some minutes later.
pub(super) const REMEMBERED: Span = Span::from_secs(300);
/// By which part of it a rate may differ from the mean of the same number of transfers.
const SAME: f64 = 0.25;
/// So many samples in a row that differ by more, all up or all down, are of another node. Two would be too
/// few: a node that sways by a half does that every few seconds.
const OTHER: u32 = 5;
/// So many samples without a sure number in a row, and numbers that are not sure count.
const UNSURE: u32 = 3;
/// So many seconds of transfers tell a share. Example: 8 s of a node with four of them.
const TELLS: f64 = 32.0;
/// But no fewer samples do: what a node does sways, and all of its transfers with it.
const SAMPLES: u32 = 4;
/// The least weight of a sample in the mean.
const NEWEST: f64 = 0.1;

/// The rates of a node in one direction, in bytes a second.
#[derive(Clone, PartialEq, Default, Debug)]
pub(super) struct History {
    /// By the number of transfers. There is at most one for each sample of [`REMEMBERED`].
    rates: BTreeMap<u32, Mean>,
    /// How many of the last samples differed, and whether they were higher.
    odd: (u32, bool),
    /// How many of the last samples had a number that is not sure.
    unsure: u32,
}

#[derive(Clone, Copy, PartialEq, Debug)]
struct Mean {
    rate: f64,
    /// What a transfer had.
    share: f64,
    /// Of the samples whose number of transfers is sure; zero if none is.
    samples: u32,
    at: Instant,
}

impl History {
    /// A sample. A number that is not sure counts only after [`UNSURE`] of them in a row, and while there is
    /// no other: where short transfers come and go, there may never be one. Once is too little, as a transfer
    /// may have begun just before the sample's end.
    pub(super) fn sampled(&mut self, now: Instant, sample: Sample) {
        let Sample { count, rate, share } = sample;
        self.rates.retain(|_, known| now.saturating_since(known.at) <= REMEMBERED);
        self.unsure = if matches!(count, Count::UpTo(_)) { self.unsure.saturating_add(1) } else { 0 };
        match count {
            Count::Held | Count::Same(0) | Count::UpTo(0) => {}
            Count::UpTo(_) if self.unsure < UNSURE => {}
            Count::UpTo(active) => {
                let known = self.rates.entry(active).or_insert(Mean { rate, share, samples: 0, at: now });
                if known.samples == 0 {
                    let (rate, share) = (f64::midpoint(known.rate, rate), f64::midpoint(known.share, share));
                    *known = Mean { rate, share, samples: 0, at: now };
                }
            }
            Count::Same(active) => {
                if self.is_another_node(active, rate) {
                    self.rates.clear();
                }
                let mean = self.rates.entry(active).or_insert(Mean { rate, share, samples: 0, at: now });
                mean.samples = mean.samples.saturating_add(1);
                let weight = NEWEST.max(1.0 / f64::from(mean.samples));
                mean.rate += weight * (rate - mean.rate);
                mean.share += weight * (share - mean.share);
                mean.at = now;
            }
        }
    }

    /// Whether so many samples have differed that all that is remembered is of another node.
    fn is_another_node(&mut self, active: u32, rate: f64) -> bool {
        let Some(known) = self.rates.get(&active).filter(|known| known.samples > 0) else { return false };
        let (is_odd, is_higher) = ((rate - known.rate).abs() > SAME * known.rate, rate > known.rate);
        let before = if self.odd.1 == is_higher { self.odd.0 } else { 0 };
        self.odd = (if is_odd { before + 1 } else { 0 }, is_higher);
        let is_another = self.odd.0 >= OTHER;
        if is_another {
            self.odd = (0, false);
        }
        is_another
    }

    /// The rate with this number of transfers, if it is known.
    pub(super) fn reached(&self, now: Instant, active: u32) -> Option<f64> {
        let known = self.rates.get(&active).filter(|known| now.saturating_since(known.at) <= REMEMBERED);
        known.map(|known| known.rate)
    }

    /// The rate with one transfer more. `None` while that with the present number is not known.
    pub(super) fn predicted(&self, now: Instant, active: u32, peak: f64) -> Option<f64> {
        let reached = self.reached(now, active)?;
        let with_a_share = reached + self.largest_share();
        Some(match self.reached(now, active + 1) {
            Some(known) => known.min(with_a_share),
            None => with_a_share.min(peak.max(reached)),
        })
    }

    /// What a transfer had with this number of them, if it is remembered.
    pub(super) fn share(&self, active: u32) -> Option<f64> {
        self.rates.get(&active).map(|known| known.share)
    }

    /// The largest of these shares, by numbers that are sure if there are any.
    ///
    /// The numbers count together, from the fewest transfers up, until they [tell](TELLS) a share; and a
    /// number that tells one alone may have a larger one. The largest of single samples would be the one
    /// with the largest error. Example: a client counts pieces of 8 MB and has 26 MB/s, so a sample has
    /// 24 or 32. The single sample of a number of transfers that has 32 would make all that have 26 look
    /// hindered.
    pub(super) fn largest_share(&self) -> f64 {
        let (mut seconds, mut moved, mut alone) = (0.0, 0.0, 0.0_f64);
        for (active, mean) in self.rates.iter().filter(|(_, mean)| mean.samples > 0) {
            let here = f64::from(*active) * f64::from(mean.samples);
            let counts = here.min(TELLS - seconds);
            seconds += counts;
            moved += counts * mean.share;
            if here >= TELLS && mean.samples >= SAMPLES {
                alone = alone.max(mean.share);
            }
        }
        if seconds > 0.0 {
            return alone.max(moved / seconds);
        }
        self.rates.values().map(|mean| mean.share).fold(0.0, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: u64) -> Instant {
        Instant::ORIGIN + Span::from_secs(second)
    }

    /// A sample in which all had the same.
    fn sample(count: Count, rate: f64) -> Sample {
        let (Count::Same(active) | Count::UpTo(active)) = count else {
            return Sample { count, rate, share: rate };
        };
        Sample { count, rate, share: rate / f64::from(active.max(1)) }
    }

    /// A node that had each of these numbers of transfers for three samples, with these rates.
    fn after(visits: impl IntoIterator<Item = (u32, f64)>) -> (History, Instant) {
        let (mut history, mut second) = (History::default(), 0);
        for (active, rate) in visits {
            for _ in 0..3 {
                second += 1;
                history.sampled(at(second), sample(Count::Same(active), rate));
            }
        }
        (history, at(second))
    }

    #[test]
    fn a_number_that_was_tried_is_remembered_and_another_adds_the_largest_share_up_to_the_peak() {
        let alone = [(1, 26.0); 11];
        let (history, now) = after(alone.into_iter().chain([(2, 52.0), (3, 60.0), (2, 52.0)]));
        assert_eq!(history.predicted(now, 1, 300.0), Some(52.0));
        assert_eq!(history.predicted(now, 2, 300.0), Some(60.0));
        assert_eq!(history.predicted(now, 3, 300.0), Some(86.0));
        assert_eq!(history.predicted(now, 3, 61.0), Some(61.0));
        assert_eq!(history.predicted(now, 4, 300.0), None);
        assert!((history.largest_share() - 26.0).abs() < 1e-9);
    }

    #[test]
    fn a_share_is_told_by_seconds_of_transfers_and_not_by_the_largest_sample() {
        let (mut history, mut second) = (History::default(), 0);
        let mut had = |samples: u32, active: u32, share: f64| {
            for _ in 0..samples {
                second += 1;
                let rate = share * f64::from(active);
                history.sampled(at(second), sample(Count::Same(active), rate));
            }
            history.largest_share()
        };
        let is = |found: f64, expected: f64| {
            assert!((found - expected).abs() < 1e-9, "found {found} instead of {expected}");
        };
        is(had(1, 1, 32.0), 32.0); // nothing else is known
        is(had(7, 4, 24.0), (32.0 + 28.0 * 24.0) / 29.0);
        is(had(3, 9, 25.0), (32.0 + 28.0 * 24.0 + 3.0 * 25.0) / 32.0);
        is(had(4, 10, 26.0), 26.0); // they tell a share alone
        is(had(1, 40, 50.0), 26.0); // one sample does not
    }

    #[test]
    fn a_slow_client_that_was_alone_for_long_does_not_stand_for_a_node() {
        let mut history = History::default();
        (1..=40).for_each(|second| history.sampled(at(second), sample(Count::Same(1), 1.0)));
        assert!((history.largest_share() - 1.0).abs() < 1e-9);
        (41..=56).for_each(|second| history.sampled(at(second), sample(Count::Same(2), 52.0)));
        assert!((history.largest_share() - 26.0).abs() < 1e-9);
    }

    #[test]
    fn a_rate_is_known_with_the_first_sample_and_for_five_minutes() {
        let mut history = History::default();
        history.sampled(at(1), sample(Count::Held, 50.0));
        assert_eq!(history, History::default(), "some were held back");
        history.sampled(at(2), sample(Count::Same(2), 50.0));
        history.sampled(at(3), sample(Count::Same(2), 54.0));
        assert_eq!(history.reached(at(3), 2), Some(52.0));
        assert_eq!(history.reached(at(303), 2), Some(52.0));
        assert_eq!(history.reached(at(304), 2), None);
        history.sampled(at(400), sample(Count::Same(0), 0.0));
        assert!(history.rates.is_empty());
    }

    #[test]
    fn a_number_that_is_not_sure_counts_until_one_is() {
        let mut history = History::default();
        (1..=2).for_each(|second| history.sampled(at(second), sample(Count::UpTo(2), 40.0)));
        assert_eq!(history.reached(at(2), 2), None);
        history.sampled(at(2), sample(Count::UpTo(2), 40.0));
        assert_eq!(history.reached(at(2), 2), Some(40.0));
        history.sampled(at(2), sample(Count::Same(2), 50.0));
        history.sampled(at(3), sample(Count::UpTo(2), 40.0));
        assert_eq!(history.reached(at(3), 2), Some(50.0));
        (4..=6).for_each(|second| history.sampled(at(second), sample(Count::UpTo(1), 40.0)));
        assert!((history.largest_share() - 25.0).abs() < 1e-9, "of two");
    }

    #[test]
    fn a_node_that_has_changed_is_learned_anew_and_one_that_sways_is_not() {
        let (mut history, now) = after([(1, 26.0), (2, 52.0)]);
        for rate in [10.0, 12.0, 14.0, 13.0, 40.0, 10.0, 10.0, 10.0, 10.0] {
            history.sampled(now, sample(Count::Same(1), rate));
        }
        assert_eq!(history.reached(now, 2), Some(52.0), "never five in a row");
        history.sampled(now, sample(Count::Same(1), 10.0));
        assert_eq!((history.reached(now, 1), history.reached(now, 2)), (Some(10.0), None));
    }
}
