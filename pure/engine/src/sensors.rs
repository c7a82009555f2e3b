//! Sensors for what a volume gets and what it asks for. A sensor counts, and decides nothing.

use weir_control::Latency;
use weir_model::{Direction, Offered, Span};

/// The mean latency since it was taken last.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct LatencySensor {
    sum: Latency,
    count: u64,
}

impl LatencySensor {
    pub(crate) fn record(&mut self, latency: Latency) {
        self.sum.total += latency.total;
        self.sum.at_device += latency.at_device;
        self.count += 1;
    }

    pub(crate) const fn count(&self) -> u64 {
        self.count
    }

    /// The mean; `None` if nothing was recorded.
    pub(crate) fn mean(&self) -> Option<Latency> {
        let mean = |sum: Span| sum.as_nanos().checked_div(self.count).map(Span::from_nanos);
        Some(Latency { total: mean(self.sum.total)?, at_device: mean(self.sum.at_device)? })
    }

    /// The mean until now. The sensor starts anew.
    pub(crate) fn take_mean(&mut self) -> Option<Latency> {
        std::mem::take(self).mean()
    }
}

/// Counts reads and writes.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct RateSensor {
    reads: u64,
    writes: u64,
}

impl RateSensor {
    pub(crate) fn record(&mut self, direction: Direction) {
        match direction {
            Direction::Read => self.reads += 1,
            Direction::Write => self.writes += 1,
        }
    }

    /// Adds what another sensor has counted.
    pub(crate) const fn add(&mut self, other: Self) {
        self.reads += other.reads;
        self.writes += other.writes;
    }

    /// What the sensor has counted, as a load over a span.
    pub(crate) const fn over(&self, over: Span) -> Offered {
        Offered { reads: self.reads, writes: self.writes, over }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_is_of_what_came_since_it_was_taken() {
        let mut sensor = LatencySensor::default();
        assert_eq!(sensor.take_mean(), None);
        for millis in [2, 4] {
            sensor.record(Latency { total: Span::from_millis(millis), at_device: Span::from_millis(1) });
        }
        let mean = Latency { total: Span::from_millis(3), at_device: Span::from_millis(1) };
        assert_eq!(sensor.take_mean(), Some(mean));
        assert_eq!(sensor.take_mean(), None);
    }

    #[test]
    fn reads_and_writes_are_counted_apart() {
        let mut sensor = RateSensor::default();
        for direction in [Direction::Read, Direction::Write, Direction::Read] {
            sensor.record(direction);
        }
        let offered = sensor.over(Span::from_secs(2));
        assert_eq!((offered.reads, offered.writes, offered.over), (2, 1, Span::from_secs(2)));
    }
}
