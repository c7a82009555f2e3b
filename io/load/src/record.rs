//! The measurements: one tally for each second, added to the total when the second is over.
//!
//! A reply is recorded once, into the tally of its second. The total changes only between seconds. The
//! warm-up has a tally like any other, which is thrown away. Time is an argument.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use serde::Serialize;
use weir_model::{Instant, Span};

use crate::slots::Class;

/// How long an [`Interval`] is.
const INTERVAL: Span = Span::from_secs(1);
/// Significant decimal digits of a latency.
const DIGITS: u8 = 3;

/// One second of a run. Latencies are of the reads and writes that were answered in it without an error;
/// `None` if there were none.
#[derive(Clone, PartialEq, Serialize, Debug)]
pub struct Interval {
    /// Its end, in seconds since the end of the warm-up. The last interval ends with the last reply.
    pub t_s: f64,
    /// Reads and writes that arrived in it (open loop), or were sent in it (closed loop).
    pub offered: u64,
    /// Reads and writes answered without an error.
    pub completed: u64,
    /// Requests answered with an error, flushes included.
    pub errors: u64,
    /// Mean latency.
    pub mean_us: Option<f64>,
    /// Median latency.
    pub p50_us: Option<f64>,
    /// The 99th percentile of the latencies.
    pub p99_us: Option<f64>,
    /// The longest latency.
    pub max_us: Option<f64>,
}

/// Counts and latencies over some time.
#[derive(Clone, Debug)]
pub(crate) struct Tally {
    /// Latencies in nanoseconds, by [`Class`].
    latencies: [Histogram<u64>; 3],
    pub(crate) offered: u64,
    pub(crate) errors: BTreeMap<u32, u64>,
    pub(crate) late: u64,
    pub(crate) latest: Span,
    pub(crate) last_reply: Option<Instant>,
}

impl Tally {
    fn new() -> Self {
        let histogram = || Histogram::new(DIGITS).expect("three digits are allowed");
        Self {
            latencies: [histogram(), histogram(), histogram()],
            offered: 0,
            errors: BTreeMap::new(),
            late: 0,
            latest: Span::ZERO,
            last_reply: None,
        }
    }

    /// The latencies of one kind of request, in nanoseconds.
    pub(crate) const fn latencies(&self, class: Class) -> &Histogram<u64> {
        &self.latencies[class as usize]
    }

    fn add(&mut self, other: &Self) {
        for (sum, part) in self.latencies.iter_mut().zip(&other.latencies) {
            if !part.is_empty() {
                sum.add(part).expect("a histogram that grows by itself takes any other");
            }
        }
        for (error, count) in &other.errors {
            *self.errors.entry(*error).or_default() += count;
        }
        self.offered += other.offered;
        self.late += other.late;
        self.latest = self.latest.max(other.latest);
        self.last_reply = other.last_reply.or(self.last_reply);
    }

    fn clear(&mut self) {
        for histogram in self.latencies.iter_mut().filter(|histogram| !histogram.is_empty()) {
            histogram.reset();
        }
        self.errors.clear();
        self.offered = 0;
        self.late = 0;
        self.latest = Span::ZERO;
        self.last_reply = None;
    }

    fn interval(&self, t_s: f64) -> Interval {
        let (reads, writes) = (self.latencies(Class::Read), self.latencies(Class::Write));
        let sum;
        let both = match (reads.is_empty(), writes.is_empty()) {
            (_, true) => reads,
            (true, false) => writes,
            (false, false) => {
                let mut reads = reads.clone();
                reads.add(writes).expect("a histogram that grows by itself takes any other");
                sum = reads;
                &sum
            }
        };
        let some = |value: f64| (!both.is_empty()).then_some(value);
        Interval {
            t_s,
            offered: self.offered,
            completed: both.len(),
            errors: self.errors.values().sum(),
            mean_us: some(both.mean() / 1e3),
            p50_us: some(micros(both.value_at_quantile(0.5))),
            p99_us: some(micros(both.value_at_quantile(0.99))),
            max_us: some(micros(both.max())),
        }
    }
}

/// All measurements of a run.
#[derive(Debug)]
pub(crate) struct Recorder {
    /// When the warm-up ends.
    measured_from: Instant,
    /// The present second, or the warm-up.
    current: Tally,
    current_end: Instant,
    warming_up: bool,
    /// The number of requests offered before the present second.
    offered_before: u64,
    /// The tally of all seconds that are over.
    total: Tally,
    intervals: Vec<Interval>,
}

impl Recorder {
    /// A recorder that counts from `measured_from` on.
    pub(crate) fn new(measured_from: Instant) -> Self {
        Self {
            measured_from,
            current: Tally::new(),
            current_end: measured_from,
            warming_up: true,
            offered_before: 0,
            total: Tally::new(),
            intervals: Vec::new(),
        }
    }

    /// The end of the present second, if it has come. The caller must then call [`Recorder::close`].
    #[inline]
    pub(crate) fn due(&self, now: Instant) -> Option<Instant> {
        (now >= self.current_end).then_some(self.current_end)
    }

    /// The end of the present second.
    pub(crate) const fn due_at(&self) -> Instant {
        self.current_end
    }

    /// Ends the present second. `offered` is the total number of reads and writes offered before its end.
    pub(crate) fn close(&mut self, offered: u64) {
        self.close_at(self.current_end, offered);
    }

    fn close_at(&mut self, end: Instant, offered: u64) {
        self.current.offered = offered - self.offered_before;
        self.offered_before = offered;
        if self.warming_up {
            self.warming_up = false;
        } else {
            let t_s = end.since(self.measured_from).as_secs_f64();
            self.intervals.push(self.current.interval(t_s));
            self.total.add(&self.current);
        }
        self.current.clear();
        self.current_end = end + INTERVAL;
    }

    /// Records the answer to a request without an error.
    #[inline]
    pub(crate) fn completed(&mut self, now: Instant, class: Class, latency: Span) {
        self.current.latencies[class as usize]
            .record(latency.as_nanos())
            .expect("a histogram that grows by itself takes any value");
        self.current.last_reply = Some(now);
    }

    /// Records the answer to a request with an NBD error.
    pub(crate) fn failed(&mut self, now: Instant, error: u32) {
        *self.current.errors.entry(error).or_default() += 1;
        self.current.last_reply = Some(now);
    }

    /// Records a request that was sent late.
    pub(crate) fn late(&mut self, lateness: Span) {
        self.current.late += 1;
        self.current.latest = self.current.latest.max(lateness);
    }

    /// The seconds that are over.
    pub(crate) fn intervals(&self) -> &[Interval] {
        &self.intervals
    }

    /// Ends the measurement. Returns the total, every second, and how long it took. The load ended at `end`,
    /// or with the last reply if that came later or if `end` is `None`.
    pub(crate) fn finish(mut self, end: Option<Instant>, offered: u64) -> (Tally, Vec<Interval>, Span) {
        let latest = |tally: &Tally| tally.last_reply;
        let last_reply = latest(&self.current).or(latest(&self.total));
        let end = end.max(last_reply).unwrap_or(self.measured_from);
        if !self.warming_up && end > self.current_end - INTERVAL {
            self.close_at(end, offered);
        }
        (self.total, self.intervals, end.saturating_since(self.measured_from))
    }
}

#[allow(clippy::cast_precision_loss)] // exact up to 2^53 ns, 104 days
pub(crate) fn micros(nanos: u64) -> f64 {
    nanos as f64 / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: f64) -> Instant {
        Instant::ORIGIN + Span::from_secs_f64(seconds)
    }

    #[test]
    fn what_happens_in_the_warm_up_does_not_count() {
        let mut recorder = Recorder::new(at(2.0));
        recorder.completed(at(1.0), Class::Read, Span::from_millis(900));
        recorder.failed(at(1.5), 5);
        recorder.late(Span::from_millis(5));
        assert_eq!(recorder.due(at(2.0)), Some(at(2.0)));
        recorder.close(10);
        recorder.completed(at(2.5), Class::Read, Span::from_millis(1));
        let (total, intervals, elapsed) = recorder.finish(Some(at(2.75)), 13);
        assert_eq!((total.latencies(Class::Read).len(), total.offered, total.late), (1, 3, 0));
        assert!(total.errors.is_empty());
        assert_eq!(elapsed, Span::from_millis(750));
        assert_eq!(intervals.len(), 1);
    }

    #[test]
    fn every_second_has_a_row_also_one_in_which_nothing_was_answered() {
        let mut recorder = Recorder::new(Instant::ORIGIN);
        recorder.close(0);
        for ms in [1, 1, 1, 9] {
            recorder.completed(at(0.5), Class::Read, Span::from_millis(ms));
        }
        recorder.completed(at(0.6), Class::Write, Span::from_millis(3));
        recorder.failed(at(0.7), 28);
        recorder.close(7);
        recorder.close(9);
        recorder.completed(at(2.25), Class::Flush, Span::from_millis(40));
        let (total, rows, _) = recorder.finish(None, 9);
        assert_eq!(rows.iter().map(|row| row.t_s).collect::<Vec<_>>(), [1.0, 2.0, 2.25]);
        assert_eq!(rows.iter().map(|row| row.offered).collect::<Vec<_>>(), [7, 2, 0]);
        assert_eq!((rows[0].completed, rows[0].errors), (5, 1));
        assert!((rows[0].mean_us.unwrap() - 3_000.0).abs() < 3.0);
        assert!((rows[0].max_us.unwrap() - 9_000.0).abs() < 9.0);
        assert_eq!((rows[1].completed, rows[1].p99_us), (0, None));
        assert_eq!((rows[2].completed, rows[2].max_us), (0, None), "flushes are no reads or writes");
        assert_eq!(total.latencies(Class::Flush).len(), 1);
    }

    #[test]
    fn replies_after_the_end_belong_to_the_last_row_and_count_as_time() {
        let mut recorder = Recorder::new(Instant::ORIGIN);
        recorder.close(0);
        recorder.completed(at(1.5), Class::Read, Span::from_millis(600));
        let (_, rows, elapsed) = recorder.finish(Some(at(1.0)), 1);
        assert_eq!((rows.len(), rows[0].t_s), (1, 1.5));
        assert_eq!(elapsed, Span::from_millis(1500));
    }
}
