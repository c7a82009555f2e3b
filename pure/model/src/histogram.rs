//! A histogram of latencies: exact enough for a percentile, and small enough to be sent every few seconds.
//!
//! Buckets are log-linear: each power of two of microseconds has 32 buckets of equal width. So a percentile
//! is at most 3 % above the truth, whatever its size. Counts are kept only for buckets in use, in order. Two
//! thousand latencies around one value are a few dozen numbers, and to merge the histograms of many ports
//! costs only the buckets in use.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Percentile, Span};

/// Buckets in each power of two.
const IN_EACH: u64 = 32;

/// How many latencies fell into each bucket.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
#[serde(from = "BTreeMap<u16, u32>", into = "BTreeMap<u16, u32>")]
pub struct LatencyHistogram {
    /// Count by bucket, in rising order. A `Vec` and no map, because an interval has thousands of histograms,
    /// and each is read from end to end.
    counts: Vec<(u16, u32)>,
}

impl LatencyHistogram {
    /// A histogram without latencies.
    pub const fn new() -> Self {
        Self { counts: Vec::new() }
    }

    /// Counts a latency.
    pub fn record(&mut self, latency: Span) {
        self.add(bucket_of(latency.as_micros()), 1);
    }

    /// Adds the counts of another histogram.
    pub fn merge(&mut self, other: &Self) {
        other.counts().for_each(|(bucket, count)| self.add(bucket, count));
    }

    /// How many latencies were counted.
    pub fn count(&self) -> u64 {
        self.counts().map(|(_, count)| u64::from(count)).sum()
    }

    /// The latency within which `percentile` percent of all latencies were: the upper end of its bucket.
    /// `None` if nothing was counted.
    pub fn percentile(&self, percentile: Percentile) -> Option<Span> {
        let rank = (self.count() * u64::from(percentile.tenths())).div_ceil(1000).max(1);
        let mut below = 0;
        self.counts().find_map(|(bucket, count)| {
            below += u64::from(count);
            (below >= rank).then(|| Span::from_micros(end_of(bucket)))
        })
    }

    /// The counts by bucket, in rising order.
    pub fn counts(&self) -> impl Iterator<Item = (u16, u32)> + '_ {
        self.counts.iter().copied()
    }

    /// The histogram with these counts, as [`LatencyHistogram::counts`] gives them. A bucket that does not
    /// exist counts as that of the longest latency.
    pub fn from_counts(counts: impl IntoIterator<Item = (u16, u32)>) -> Self {
        let mut histogram = Self::new();
        counts.into_iter().for_each(|(bucket, count)| histogram.add(bucket.min(LAST), count));
        histogram
    }

    fn add(&mut self, bucket: u16, count: u32) {
        if count == 0 {
            return;
        }
        match self.counts.binary_search_by_key(&bucket, |(bucket, _)| *bucket) {
            Ok(at) => self.counts[at].1 = self.counts[at].1.saturating_add(count),
            Err(at) => self.counts.insert(at, (bucket, count)),
        }
    }
}

impl From<BTreeMap<u16, u32>> for LatencyHistogram {
    fn from(counts: BTreeMap<u16, u32>) -> Self {
        Self::from_counts(counts)
    }
}

impl From<LatencyHistogram> for BTreeMap<u16, u32> {
    fn from(histogram: LatencyHistogram) -> Self {
        histogram.counts().collect()
    }
}

/// The bucket of 2^40 us, 12 days. Everything longer counts as that.
const LAST: u16 = bucket_of(1 << 40);

/// Below 32 us, each microsecond has a bucket. Above, the highest bit says which power of two, and the five
/// bits after it say which of its buckets.
#[allow(clippy::cast_possible_truncation)] // at most 1152
const fn bucket_of(micros: u64) -> u16 {
    let capped = if micros > 1 << 40 { 1 << 40 } else { micros };
    if capped < IN_EACH {
        return capped as u16;
    }
    let octave = (63 - capped.leading_zeros()) as u64 - 5;
    (octave * IN_EACH + (capped >> octave)) as u16
}

/// The first whole number of microseconds above all of a bucket.
fn end_of(bucket: u16) -> u64 {
    let bucket = u64::from(bucket);
    if bucket < 2 * IN_EACH {
        return bucket + 1;
    }
    let octave = bucket / IN_EACH - 1;
    (bucket - octave * IN_EACH + 1) << octave
}

#[cfg(test)]
mod tests {
    use super::*;

    fn p(tenths: u16) -> Percentile {
        Percentile::from_tenths(tenths).unwrap()
    }

    #[test]
    fn a_latency_lies_below_the_end_of_its_bucket_by_at_most_three_percent_or_a_microsecond() {
        for micros in
            (0..100).chain((2..40).flat_map(|power| [(1 << power) - 1, 1 << power, 3 << (power - 1)]))
        {
            let end = end_of(bucket_of(micros));
            assert!(micros < end && end <= micros + 1 + micros / 32, "{micros}: {end}");
        }
    }

    #[test]
    fn a_percentile_is_the_latency_within_which_so_many_were() {
        let mut histogram = LatencyHistogram::new();
        assert_eq!(histogram.percentile(p(500)), None);
        (1..=20).for_each(|micros| histogram.record(Span::from_micros(micros)));
        assert_eq!(histogram.percentile(p(500)), Some(Span::from_micros(11)));
        assert_eq!(histogram.percentile(p(999)), Some(Span::from_micros(21)));
        assert_eq!(histogram.percentile(p(1)), Some(Span::from_micros(2)));
    }

    #[test]
    fn merged_histograms_count_what_both_did_and_survive_being_sent() {
        let (mut one, mut other) = (LatencyHistogram::new(), LatencyHistogram::new());
        one.record(Span::from_millis(5));
        (0..3).for_each(|_| other.record(Span::from_millis(50)));
        one.merge(&other);
        assert_eq!(one.count(), 4);
        assert_eq!(LatencyHistogram::from_counts(one.counts()), one);
        assert_eq!(
            LatencyHistogram::from_counts([(u16::MAX, 1)]).percentile(p(500)).unwrap().as_micros(),
            end_of(LAST)
        );
    }
}
