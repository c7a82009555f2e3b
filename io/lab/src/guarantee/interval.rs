//! Where a figure lies, by drawing its parts anew.

use rand::RngExt;
use serde::Serialize;
use weir_sim::Seed;

/// How many times the parts are drawn.
const RESAMPLED: usize = 1_000;

/// A figure, and where it lies with 95 % certainty.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize)]
pub struct Interval {
    /// The figure.
    pub value: f64,
    /// The 2.5th percentile, if other parts had been drawn.
    pub low: f64,
    /// The 97.5th.
    pub high: f64,
}

impl Interval {
    /// The figure of all `parts`, and where it lies if as many parts are drawn of them anew.
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    pub(super) fn of<T>(parts: &[T], figure: impl Fn(&mut dyn Iterator<Item = &T>) -> f64) -> Self {
        let value = figure(&mut parts.iter());
        if parts.is_empty() {
            return Self { value, low: value, high: value };
        }
        let mut random = Seed(1).stream("which parts are drawn anew");
        let mut drawn: Vec<f64> = (0..RESAMPLED)
            .map(|_| figure(&mut (0..parts.len()).map(|_| &parts[random.random_range(0..parts.len())])))
            .collect();
        drawn.sort_by(f64::total_cmp);
        let at = |part: f64| drawn[((RESAMPLED - 1) as f64 * part) as usize];
        Self { value, low: at(0.025), high: at(0.975) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_of_a_sum_holds_the_sum_and_is_as_wide_as_its_parts_differ() {
        let sum = |parts: &mut dyn Iterator<Item = &f64>| parts.sum();
        let same = Interval::of(&[1.0; 30], sum);
        assert_eq!((same.value, same.low, same.high), (30.0, 30.0, 30.0));
        // Thirty parts of zero or two: 30 with a standard deviation of 5.5.
        let parts: Vec<f64> = (0..30).map(|part| f64::from(part % 2) * 2.0).collect();
        let differ = Interval::of(&parts, sum);
        assert!((17.0..23.0).contains(&differ.low) && (37.0..43.0).contains(&differ.high), "{differ:?}");
        assert_eq!(Interval::of(&[], sum), Interval::default());
    }
}
