//! How promised volumes fared when they came back from a silence.
//!
//! What background volumes did in the silence shows in the seconds after it. A queue at the device shows in
//! the first one. A cache that was filled shows later: the first writes of a burst still find room in it. So
//! the worst of the first three seconds counts, or of fewer if the volumes fall silent before.

/// Periods of a second.
const SECOND: u32 = 20;
/// Periods that count.
const COUNTS: u32 = 3 * SECOND;

/// The time since a silence.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub(super) struct Comeback {
    periods: u32,
    worst: f64,
}

impl Comeback {
    /// Ends a period, with the strain of the last second; `None`: the volumes are silent again. The worst
    /// strain of a second, once all that counts is over.
    pub(super) fn step(&mut self, last_second: Option<f64>) -> Option<f64> {
        self.periods += 1;
        if self.periods.is_multiple_of(SECOND) {
            self.worst = self.worst.max(last_second.unwrap_or(0.0));
        }
        // Behind another gateway, volumes are known to be back before it is known how they fare.
        let is_silent = last_second.is_none() && self.periods > SECOND;
        (is_silent || self.periods >= COUNTS).then_some(self.worst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The strain of each second; then silence.
    fn after(seconds: &[f64]) -> f64 {
        let mut comeback = Comeback::default();
        let periods = seconds.iter().flat_map(|strain| [Some(*strain); SECOND as usize]);
        periods.chain([None]).find_map(|strain| comeback.step(strain)).unwrap()
    }

    #[test]
    fn a_cache_that_was_filled_in_a_silence_shows_after_the_first_second() {
        assert!((after(&[0.5, 3.0, 0.5]) - 3.0).abs() < 1e-9);
    }

    #[test]
    fn trouble_after_three_seconds_is_not_the_fault_of_the_silence() {
        assert!((after(&[0.5, 0.6, 0.7, 9.0]) - 0.7).abs() < 1e-9);
    }

    #[test]
    fn a_return_of_which_nothing_is_known_yet_is_not_over() {
        let mut comeback = Comeback::default();
        assert_eq!(comeback.step(None), None);
        assert!((0..SECOND).all(|_| comeback.step(Some(2.0)).is_none()));
        assert_eq!(comeback.step(None), Some(2.0));
    }

    #[test]
    fn a_burst_of_a_second_is_judged_when_it_is_over() {
        assert!((after(&[2.0]) - 2.0).abs() < 1e-9);
    }
}
