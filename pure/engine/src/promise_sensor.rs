//! What the law of promises has to know of a volume.
//!
//! A request belongs to the window in which it came, as in the judge of promises. So the sensor adds up, for
//! each of the last windows, how long its requests have taken ([`Tally`]), and does not look at requests one
//! by one.

use std::collections::VecDeque;

use weir_control::{PromisedObservation, WindowSeen};
use weir_model::{Instant, Span};

use crate::tally::Tally;

/// Windows that are kept. A request that came before them counts in the oldest one.
const KEPT: usize = 16;

/// The sensor of a volume.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct PromiseSensor {
    began: Instant,
    outstanding: u32,
    at_device: u32,
    /// Until when the sums below are complete.
    settled: Instant,
    spent: Span,
    busy: Span,
    /// How long its requests were at the device, in sum, and how many the device has finished.
    at_device_for: Span,
    finished: u32,
    arrived: u32,
    answered: u32,
    answered_bytes: u64,
    /// The latency that a percentile of the requests may not exceed.
    limit: Option<Span>,
    /// Answers later than that.
    late: u32,
    /// Requests without an answer that were late when the last period ended.
    known_late: u32,
    /// The length of a window.
    length: Span,
    /// The oldest first. Windows in which nothing came are not here.
    windows: VecDeque<Window>,
}

/// The requests that came in a window.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
struct Window {
    /// How many windows came before it since the origin of time.
    number: u64,
    tally: Tally,
}

impl PromiseSensor {
    /// The sensor of a volume that has so many requests. These belong to no window.
    pub(crate) const fn new(now: Instant, length: Span, outstanding: u32, at_device: u32) -> Self {
        Self {
            began: now,
            outstanding,
            at_device,
            settled: now,
            spent: Span::ZERO,
            busy: Span::ZERO,
            at_device_for: Span::ZERO,
            finished: 0,
            arrived: 0,
            answered: 0,
            answered_bytes: 0,
            limit: None,
            late: 0,
            known_late: 0,
            length,
            windows: VecDeque::new(),
        }
    }

    pub(crate) const fn limit(&self) -> Option<Span> {
        self.limit
    }

    pub(crate) const fn set_limit(&mut self, limit: Option<Span>) {
        self.limit = limit;
    }

    pub(crate) fn on_submit(&mut self, now: Instant) {
        self.settle(now);
        self.outstanding += 1;
        self.arrived += 1;
        let number = self.number(now);
        if self.windows.back().is_none_or(|window| window.number != number) {
            self.open(number);
        }
        if let Some(window) = self.windows.back_mut() {
            window.tally.on_arrival(now);
        }
    }

    pub(crate) fn on_issue(&mut self, now: Instant) {
        self.settle(now);
        self.at_device += 1;
    }

    pub(crate) fn on_complete(&mut self, now: Instant) {
        self.settle(now);
        self.at_device -= 1;
        self.finished += 1;
    }

    /// A request that came then is over.
    pub(crate) fn on_end(&mut self, now: Instant, came: Instant) {
        self.settle(now);
        self.outstanding -= 1;
        let number = self.number(came);
        // A request that came before all windows that are kept is in the oldest one.
        let place = self.windows.partition_point(|window| window.number < number);
        let is_known = |window: &&mut Window| came >= self.began && window.tally.outstanding > 0;
        if let Some(window) = self.windows.get_mut(place).filter(is_known) {
            window.tally.on_end(now, came);
        }
    }

    /// A request was answered with success.
    pub(crate) fn on_answer(&mut self, bytes: u32, latency: Span) {
        self.answered += 1;
        self.answered_bytes += u64::from(bytes);
        self.late += u32::from(self.limit.is_some_and(|limit| latency > limit));
    }

    /// Ends a period. So many requests without an answer are late now.
    pub(crate) fn take(&mut self, now: Instant, late_now: u32) -> PromisedObservation {
        self.settle(now);
        let late = i64::from(std::mem::take(&mut self.late)) + i64::from(late_now);
        let late = late - i64::from(std::mem::replace(&mut self.known_late, late_now));
        let number = self.number(now);
        let is_over = |window: &Window| window.number < number && window.tally.outstanding == 0;
        let ended = if self.windows.front().is_some_and(is_over) { self.windows.pop_front() } else { None };
        let of = |number: u64| self.windows.iter().rev().find(|window| window.number == number);
        let seen = |window: Option<&Window>| window.map_or_else(WindowSeen::default, |it| it.seen(now));
        PromisedObservation {
            current: seen(of(number)),
            previous: seen(number.checked_sub(1).and_then(of)),
            ended: ended.map(|window| window.seen(now)),
            spent: std::mem::take(&mut self.spent),
            busy: std::mem::take(&mut self.busy),
            at_device_for: std::mem::take(&mut self.at_device_for),
            finished: std::mem::take(&mut self.finished),
            arrived: std::mem::take(&mut self.arrived),
            answered: std::mem::take(&mut self.answered),
            answered_bytes: std::mem::take(&mut self.answered_bytes),
            late: i32::try_from(late).unwrap_or(i32::MAX),
            outstanding: self.outstanding,
            at_device: self.at_device,
            ..PromisedObservation::default()
        }
    }

    fn settle(&mut self, now: Instant) {
        let since = now.since(self.settled);
        self.spent += since.saturating_mul(u64::from(self.outstanding));
        self.at_device_for += since.saturating_mul(u64::from(self.at_device));
        if self.outstanding > 0 {
            self.busy += since;
        }
        self.settled = now;
    }

    const fn number(&self, at: Instant) -> u64 {
        at.as_nanos() / self.length.as_nanos()
    }

    /// Opens a window, and adds the oldest to the next one if there are too many.
    fn open(&mut self, number: u64) {
        if self.windows.len() == KEPT
            && let Some(oldest) = self.windows.pop_front()
            && let Some(next) = self.windows.front_mut()
        {
            next.tally.add(&oldest.tally);
        }
        self.windows.push_back(Window { number, ..Window::default() });
    }
}

impl Window {
    fn seen(&self, now: Instant) -> WindowSeen {
        let number = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        let (arrived, outstanding) = (number(self.tally.count), number(self.tally.outstanding));
        WindowSeen { arrived, outstanding, spent: self.tally.spent(now) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Span = Span::from_secs(1);

    const fn ms(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    fn sensor() -> PromiseSensor {
        PromiseSensor::new(Instant::ORIGIN, SECOND, 0, 0)
    }

    const fn window(arrived: u32, outstanding: u32, millis: u64) -> WindowSeen {
        WindowSeen { arrived, outstanding, spent: Span::from_millis(millis) }
    }

    #[test]
    fn a_request_counts_in_the_window_in_which_it_came_and_with_its_age() {
        let mut sensor = sensor();
        sensor.on_submit(ms(900));
        sensor.on_submit(ms(950));
        sensor.on_submit(ms(1_010));
        sensor.on_end(ms(1_020), ms(900));
        let seen = sensor.take(ms(1_050), 0);
        assert_eq!(seen.previous, window(2, 1, 120 + 100));
        assert_eq!(seen.current, window(1, 1, 40));
        assert_eq!((seen.ended, seen.outstanding, seen.arrived), (None, 2, 3));
        sensor.on_end(ms(1_060), ms(950));
        assert_eq!(sensor.take(ms(1_100), 0).ended, Some(window(2, 0, 120 + 110)));
    }

    #[test]
    fn the_time_of_a_period_is_the_sum_over_its_requests() {
        let mut sensor = sensor();
        sensor.on_submit(ms(10));
        sensor.on_submit(ms(20));
        sensor.on_end(ms(30), ms(10));
        sensor.on_end(ms(35), ms(20));
        let seen = sensor.take(ms(50), 0);
        assert_eq!((seen.spent, seen.busy), (Span::from_millis(20 + 15), Span::from_millis(25)));
        let next = sensor.take(ms(100), 0);
        assert_eq!((next.spent, next.busy, next.arrived), (Span::ZERO, Span::ZERO, 0));
    }

    #[test]
    fn a_request_that_is_late_before_it_is_answered_counts_once() {
        let mut sensor = sensor();
        sensor.set_limit(Some(Span::from_millis(10)));
        sensor.on_submit(ms(0));
        assert_eq!(sensor.take(ms(50), 1).late, 1);
        sensor.on_end(ms(60), ms(0));
        sensor.on_answer(4096, Span::from_millis(60));
        assert_eq!(sensor.take(ms(100), 0).late, 0);
    }

    #[test]
    fn requests_that_hang_for_long_are_kept_in_few_windows() {
        let mut sensor = sensor();
        (0..100).for_each(|second| sensor.on_submit(ms(second * 1_000)));
        assert_eq!(sensor.windows.len(), KEPT);
        assert_eq!(sensor.windows.iter().map(|window| window.tally.outstanding).sum::<u64>(), 100);
        (0..100).for_each(|second| sensor.on_end(ms(100_000), ms(second * 1_000)));
        assert!(sensor.windows.iter().all(|window| window.tally.outstanding == 0));
    }

    #[test]
    fn a_request_that_came_before_the_sensor_belongs_to_no_window() {
        let mut sensor = PromiseSensor::new(ms(500), SECOND, 1, 1);
        sensor.on_submit(ms(550));
        sensor.on_end(ms(600), ms(100));
        let seen = sensor.take(ms(650), 0);
        assert_eq!((seen.current, seen.outstanding), (window(1, 1, 100), 1));
        let mut sensor = PromiseSensor::new(ms(500), SECOND, 1, 1);
        sensor.on_submit(ms(500));
        sensor.on_end(ms(600), ms(500));
        sensor.on_submit(ms(610));
        sensor.on_end(ms(620), ms(500));
        sensor.on_end(ms(630), ms(610));
        assert_eq!(sensor.take(ms(650), 0).current.outstanding, 0, "two came at one instant, one is known");
    }
}
