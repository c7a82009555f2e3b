//! Judges a window of a volume that is promised a rate of requests or of bytes.
//!
//! A client that asks for less than it is promised gets less, and no law is to blame. So a window counts only
//! if a request of the volume waited for its reply in nearly all of it. Requests of all kinds count, as in
//! the law of promises.

use weir_model::{Instant, Iops, Span, Target, Verdict};

/// The least number of answers that a window should have: fewer say little.
const ANSWERS: f64 = 20.0;

/// In so many percent of a window that counts, a request waits.
const BUSY_PERCENT: u128 = 95;

/// What a volume asked for and got in the window that is running.
#[derive(Clone, Debug)]
pub(super) struct Service {
    outstanding: u32,
    /// Until when `busy` is complete.
    settled: Instant,
    /// How long a request waited.
    busy: Span,
    answered: u64,
    bytes: u64,
}

impl Service {
    /// From now on, for a volume that has so many requests.
    pub(super) const fn new(now: Instant, outstanding: u32) -> Self {
        Self { outstanding, settled: now, busy: Span::ZERO, answered: 0, bytes: 0 }
    }

    pub(super) fn on_arrival(&mut self, now: Instant) {
        self.settle(now);
        self.outstanding += 1;
    }

    pub(super) fn on_end(&mut self, now: Instant) {
        self.settle(now);
        self.outstanding -= 1;
    }

    /// A request of so many bytes was answered with success.
    pub(super) fn on_answer(&mut self, bytes: u32) {
        self.answered += 1;
        self.bytes += u64::from(bytes);
    }

    /// The verdict about a window that began then and may end now; `None`: it has to be longer.
    #[allow(clippy::cast_precision_loss)] // counts far below 2^53
    pub(super) fn verdict(&mut self, now: Instant, began: Instant, target: Target) -> Option<Verdict> {
        self.settle(now);
        let over = now.since(began);
        let is_busy = u128::from(self.busy.as_nanos()) * 100 >= u128::from(over.as_nanos()) * BUSY_PERCENT;
        let promised = |rate: f64| (rate * over.as_secs_f64()).floor();
        let is_met = match target {
            Target::Rate(rate) if self.is_too_short(rate, over) => return None,
            Target::Rate(rate) => self.answered as f64 >= promised(rate.get()),
            Target::Throughput(rate) => self.bytes as f64 >= promised(rate.get() as f64),
            Target::Latency(_) | Target::Percentile(..) => return Some(Verdict::Idle),
        };
        *self = Self::new(now, self.outstanding);
        Some(match (is_busy, is_met) {
            (false, _) => Verdict::Idle,
            (true, true) => Verdict::Met,
            (true, false) => Verdict::Missed,
        })
    }

    /// Whether too few answers are promised in that time. A window in which nothing was asked for is long
    /// enough.
    fn is_too_short(&self, rate: Iops, over: Span) -> bool {
        rate.get() * over.as_secs_f64() < ANSWERS && !self.busy.is_zero()
    }

    fn settle(&mut self, now: Instant) {
        if self.outstanding > 0 {
            self.busy += now.since(self.settled);
        }
        self.settled = now;
    }
}

#[cfg(test)]
mod tests {
    use weir_model::Bandwidth;

    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ORIGIN + Span::from_millis(millis)
    }

    fn rate(iops: f64) -> Target {
        Target::Rate(Iops::new(iops).unwrap())
    }

    /// A volume that had a request waiting for so many milliseconds of a second, and got 50 answers of 4 KiB.
    fn service(busy: u64) -> Service {
        let mut service = Service::new(at(0), 0);
        service.on_arrival(at(0));
        service.on_end(at(busy));
        (0..50).for_each(|_| service.on_answer(4096));
        service
    }

    #[test]
    fn a_rate_counts_only_while_something_waits() {
        let verdict = |busy, iops| service(busy).verdict(at(1_000), at(0), rate(iops));
        assert_eq!(verdict(1_000, 50.9), Some(Verdict::Met), "50 is all of it that is whole");
        assert_eq!(verdict(1_000, 51.0), Some(Verdict::Missed));
        assert_eq!(verdict(950, 51.0), Some(Verdict::Missed));
        assert_eq!(verdict(949, 51.0), Some(Verdict::Idle));
        assert_eq!(verdict(949, 50.0), Some(Verdict::Idle), "whatever it got");
    }

    #[test]
    fn a_throughput_is_counted_in_bytes() {
        let of = |bytes| Bandwidth::new(bytes).map(Target::Throughput).unwrap();
        assert_eq!(service(1_000).verdict(at(1_000), at(0), of(50 * 4096)), Some(Verdict::Met));
        assert_eq!(service(1_000).verdict(at(1_000), at(0), of(50 * 4096 + 1)), Some(Verdict::Missed));
    }

    #[test]
    fn a_window_is_as_long_as_twenty_answers_take_at_the_promised_rate() {
        let mut service = service(2_000);
        assert_eq!(service.verdict(at(1_000), at(0), rate(10.0)), None);
        assert_eq!(service.verdict(at(2_000), at(0), rate(10.0)), Some(Verdict::Met));
        assert_eq!(
            service.verdict(at(3_000), at(2_000), rate(10.0)),
            Some(Verdict::Idle),
            "nothing was asked"
        );
    }

    #[test]
    fn what_waits_at_the_end_of_a_window_waits_in_the_next() {
        let mut service = Service::new(at(0), 1);
        assert_eq!(service.verdict(at(1_000), at(0), rate(30.0)), Some(Verdict::Missed));
        assert_eq!(service.verdict(at(2_000), at(1_000), rate(30.0)), Some(Verdict::Missed));
    }
}
