//! A sensor for what a volume uses of its port: how much it asks for and gets, and how many of its requests
//! wait and are at the device.

use weir_control::{Grant, PortObservation};
use weir_model::{Instant, Span};

/// The sensor.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct UsageSensor {
    since: Instant,
    at_device: MeanNumber,
    outstanding: MeanNumber,
    /// Whether latencies are kept one by one, because the target is a percentile.
    keeps_latencies: bool,
    seen: PortObservation,
}

/// The mean over time of a number that changes.
#[derive(Clone, Copy, PartialEq, Debug)]
struct MeanNumber {
    now: u32,
    changed: Instant,
    /// Its sum over time until it changed last, in nanoseconds.
    sum: u128,
}

impl UsageSensor {
    /// The sensor of a volume with so many requests outstanding, and so many of them at the device.
    pub(crate) fn new(now: Instant, outstanding: u32, at_device: u32) -> Self {
        Self {
            since: now,
            at_device: MeanNumber::new(now, at_device),
            outstanding: MeanNumber::new(now, outstanding),
            keeps_latencies: false,
            seen: PortObservation::default(),
        }
    }

    /// Sets whether latencies are kept one by one.
    pub(crate) const fn keep_latencies(&mut self, keep: bool) {
        self.keeps_latencies = keep;
    }

    /// A request was submitted; `bytes` if it reads or writes.
    pub(crate) fn on_submit(&mut self, now: Instant, bytes: Option<u32>) {
        self.outstanding.add(now, 1);
        if let Some(bytes) = bytes {
            self.seen.arrived += 1;
            self.seen.arrived_bytes += u64::from(bytes);
        }
    }

    pub(crate) fn on_issue(&mut self, now: Instant) {
        self.at_device.add(now, 1);
    }

    pub(crate) fn on_complete(&mut self, now: Instant) {
        self.at_device.add(now, -1);
    }

    /// A request is over: answered, or aborted.
    pub(crate) fn on_end(&mut self, now: Instant) {
        self.outstanding.add(now, -1);
    }

    /// A read or write was answered with success.
    pub(crate) fn on_answer(&mut self, bytes: u32, latency: Span) {
        self.seen.answered += 1;
        self.seen.answered_bytes += u64::from(bytes);
        self.seen.latency_sum += latency;
        if self.keeps_latencies {
            self.seen.latencies.record(latency);
        }
    }

    /// What the sensor saw until now. It starts anew.
    pub(crate) fn take(
        &mut self,
        now: Instant,
        oldest: Option<Span>,
        grant: Option<Grant>,
    ) -> PortObservation {
        let seen = std::mem::take(&mut self.seen);
        let over = now.since(std::mem::replace(&mut self.since, now));
        PortObservation {
            over,
            oldest,
            at_device: self.at_device.take_mean(now, over),
            outstanding: self.outstanding.take_mean(now, over),
            bound: grant.map(|grant| grant.concurrency),
            ..seen
        }
    }
}

impl MeanNumber {
    const fn new(now: Instant, number: u32) -> Self {
        Self { now: number, changed: now, sum: 0 }
    }

    fn add(&mut self, now: Instant, change: i32) {
        self.settle(now);
        self.now = self.now.checked_add_signed(change).expect("only what came can go");
    }

    fn settle(&mut self, now: Instant) {
        self.sum += u128::from(now.since(self.changed).as_nanos()) * u128::from(self.now);
        self.changed = now;
    }

    #[allow(clippy::cast_precision_loss)] // a mean to a part in 2^53
    fn take_mean(&mut self, now: Instant, over: Span) -> f64 {
        self.settle(now);
        let sum = std::mem::take(&mut self.sum);
        if over.is_zero() { f64::from(self.now) } else { sum as f64 / over.as_nanos() as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn numbers_are_means_over_time_and_what_is_there_counts_on_in_the_next_interval() {
        let mut sensor = UsageSensor::new(at(0), 0, 0);
        sensor.on_submit(at(0), Some(4096));
        sensor.on_submit(at(50), None);
        sensor.on_issue(at(50));
        let seen = sensor.take(at(100), None, None);
        assert_eq!((seen.outstanding, seen.at_device), (1.5, 0.5));
        assert_eq!((seen.arrived, seen.arrived_bytes, seen.over), (1, 4096, Span::from_millis(100)));
        sensor.on_complete(at(150));
        sensor.on_end(at(150));
        sensor.on_answer(4096, Span::from_millis(150));
        let seen = sensor.take(at(200), None, None);
        assert_eq!((seen.outstanding, seen.at_device), (1.5, 0.5));
        assert_eq!((seen.answered, seen.latency_sum, seen.latencies.count()), (1, Span::from_millis(150), 0));
    }
}
