//! The moving average of the paper: over the last ten measurements of a node's rate (§III-B, *ma10*).
//!
//! A second without a byte counts as zero, and so do the seconds before the first measurement. Otherwise an
//! idle node would keep the rate of its last transfer for ever.

use std::collections::VecDeque;

/// How many measurements are averaged.
const COUNT: usize = 10;

/// The average of the last ten measurements.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct MovingAverage {
    last: VecDeque<u64>,
}

impl MovingAverage {
    /// Another measurement.
    pub fn push(&mut self, measured: u64) {
        if self.last.len() == COUNT {
            self.last.pop_front();
        }
        self.last.push_back(measured);
    }

    /// The last measurement; zero before the first.
    pub fn last(&self) -> u64 {
        self.last.back().copied().unwrap_or(0)
    }

    /// The average, in the unit of the measurements.
    pub fn get(&self) -> u64 {
        self.last.iter().fold(0_u64, |sum, one| sum.saturating_add(*one)) / COUNT as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_average_is_over_the_last_ten_and_zeros_count() {
        let mut average = MovingAverage::default();
        average.push(100);
        assert_eq!(average.get(), 10, "nine seconds before it had no byte");
        (0..10).for_each(|_| average.push(30));
        assert_eq!(average.get(), 30);
        (0..5).for_each(|_| average.push(0));
        assert_eq!(average.get(), 15);
    }

    #[test]
    fn rates_that_cannot_be_do_not_overflow() {
        let mut average = MovingAverage::default();
        (0..30).for_each(|_| average.push(u64::MAX));
        assert_eq!(average.get(), u64::MAX / 10);
        (0..10).for_each(|_| average.push(5));
        assert_eq!(average.get(), 5);
    }
}
