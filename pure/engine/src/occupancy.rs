//! How many requests are at the device: the highest number in a control period, and the number beside the
//! requests that the device finished in the period.
//!
//! The law holds a latency against the second number. A request that is finished now came to the device a
//! latency ago, so the number of requests there now says nothing about it. By Little's law, the number beside
//! the finished requests is the time that all of them spent at the device, divided by the time in which the
//! device was busy.
//!
//! The idle time does not count, because a burst would look like a trickle. Example: 40 requests come at once
//! and finish one after the other within 10 ms of a period of 50 ms. Over the busy time there were 20 on
//! average; over the whole period, 4.

use weir_model::{Instant, Span};

/// The sensor.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Occupancy {
    now: u32,
    peak: u32,
    /// The time that the requests finished in this period spent at the device, in sum.
    spent: Span,
    /// The time in this period in which the device had requests, up to `busy_since`.
    busy: Span,
    /// Since when, in this period, the device has had requests without a break.
    busy_since: Option<Instant>,
}

/// What the sensor saw in a period.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub(crate) struct Occupied {
    pub(crate) peak: u32,
    pub(crate) beside_finished: f64,
}

impl Occupancy {
    /// A device with nothing to do.
    pub(crate) const fn new() -> Self {
        Self { now: 0, peak: 0, spent: Span::ZERO, busy: Span::ZERO, busy_since: None }
    }

    /// Requests at the device now.
    pub(crate) const fn count(&self) -> u32 {
        self.now
    }

    pub(crate) fn on_issue(&mut self, now: Instant) {
        self.busy_since.get_or_insert(now);
        self.now += 1;
        self.peak = self.peak.max(self.now);
    }

    /// The device has finished a request that it had since `issued`.
    pub(crate) fn on_complete(&mut self, now: Instant, issued: Instant) {
        self.now -= 1;
        self.spent += now.since(issued);
        if self.now == 0 {
            self.end_busy(now);
        }
    }

    /// Ends a period.
    pub(crate) fn take(&mut self, now: Instant) -> Occupied {
        self.end_busy(now);
        let busy = self.busy.as_secs_f64();
        let beside_finished = if busy > 0.0 { self.spent.as_secs_f64() / busy } else { 0.0 };
        let peak = self.peak;
        let busy_since = (self.now > 0).then_some(now);
        *self = Self { now: self.now, peak: self.now, busy_since, ..Self::new() };
        Occupied { peak, beside_finished }
    }

    fn end_busy(&mut self, now: Instant) {
        if let Some(since) = self.busy_since.take() {
            self.busy += now.since(since);
        }
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
        let mut occupancy = Occupancy::new();
        (0..10).for_each(|_| occupancy.on_issue(at(0)));
        assert_eq!(occupancy.take(at(50)), Occupied { peak: 10, beside_finished: 0.0 });
        // Ten that spent 100 ms each: all ten were there with one another, most of the time in the period
        // before.
        (0..9).for_each(|_| occupancy.on_complete(at(100), at(0)));
        assert_eq!(occupancy.take(at(100)), Occupied { peak: 10, beside_finished: 18.0 });
        occupancy.on_complete(at(120), at(100));
        assert_eq!(occupancy.take(at(150)), Occupied { peak: 1, beside_finished: 1.0 });
        assert_eq!(occupancy.take(at(200)), Occupied { peak: 0, beside_finished: 0.0 });
    }

    #[test]
    fn a_burst_counts_for_as_long_as_it_lasts_and_not_as_a_trickle_over_the_period() {
        let mut occupancy = Occupancy::new();
        (0..40).for_each(|_| occupancy.on_issue(at(0)));
        // One after the other, all within 10 of 50 ms: half of them on average.
        for i in 1..=40 {
            occupancy.on_complete(Instant::from_nanos(i * 250_000), at(0));
        }
        let beside = occupancy.take(at(50)).beside_finished;
        assert!((20.0..=21.0).contains(&beside), "{beside}");
    }
}
