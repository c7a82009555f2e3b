//! How many requests are at the device: how many there were at most in a control period, and how many beside those that
//! were finished in it.
//!
//! The second number is what a latency is to be held against. Latency follows occupancy by itself: those that are
//! answered now were given to the device a latency ago, and what is there now, more or less, says nothing about them.
//! By Little's law the time that all of them spent there, over the length of the period, is how many there were with them.

use weir_model::{Instant, Span};

/// The sensor.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Occupancy {
    now: u32,
    peak: u32,
    /// Of those finished in this period, in sum.
    spent: Span,
    since: Instant,
}

/// What a period was like.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub(crate) struct Occupied {
    pub(crate) peak: u32,
    pub(crate) beside_finished: f64,
}

impl Occupancy {
    /// A device with nothing to do.
    pub(crate) const fn new(now: Instant) -> Self {
        Self { now: 0, peak: 0, spent: Span::ZERO, since: now }
    }

    /// Requests at the device now.
    pub(crate) const fn count(&self) -> u32 {
        self.now
    }

    pub(crate) fn on_issue(&mut self) {
        self.now += 1;
        self.peak = self.peak.max(self.now);
    }

    pub(crate) fn on_complete(&mut self, spent: Span) {
        self.now -= 1;
        self.spent += spent;
    }

    /// Ends a period.
    pub(crate) fn take(&mut self, now: Instant) -> Occupied {
        let over = now.since(self.since).as_secs_f64();
        let beside_finished = if over > 0.0 { self.spent.as_secs_f64() / over } else { 0.0 };
        let peak = self.peak;
        *self = Self { now: self.now, peak: self.now, spent: Span::ZERO, since: now };
        Occupied { peak, beside_finished }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn a_period_has_the_highest_number_and_the_number_beside_those_that_were_finished() {
        let mut occupancy = Occupancy::new(at(0));
        (0..10).for_each(|_| occupancy.on_issue());
        assert_eq!(occupancy.take(at(50)), Occupied { peak: 10, beside_finished: 0.0 });
        // Ten that spent 100 ms each, finished within 50 ms: 20 on average were there with them.
        (0..10).for_each(|_| occupancy.on_complete(Span::from_millis(100)));
        assert_eq!(occupancy.take(at(100)), Occupied { peak: 10, beside_finished: 20.0 });
        assert_eq!(occupancy.take(at(150)), Occupied { peak: 0, beside_finished: 0.0 });
    }
}
