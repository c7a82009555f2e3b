//! The results of an application under Maestro's law, and the bounds that it was granted. An application is a
//! volume with all of its ports as one.
//!
//! - An **interval** is an SLO window. Experiments make it as long as the control interval, also in runs
//!   without control.
//! - `y`, the **normalised performance** (Maestro §3.2.1), is the performance that the clients got relative
//!   to the target: throughput over target, or target over mean latency. It is computed from the answers, not
//!   from the law's own statements. If nothing was answered in an interval although requests waited, its `y`
//!   is zero. If no requests came, the interval has no `y`.
//! - The **shortfall** is `1 - y`.
//! - The **allocation** is the sum of the bounds in force at the ports.

use weir_model::Target;

use super::{mean, percent};
use crate::float::float;
use crate::run::{Record, Window};

/// An application in a run.
#[derive(Clone, Debug)]
pub struct Application<'r> {
    record: &'r Record,
    /// The places of its ports among the volumes.
    ports: Vec<usize>,
}

/// An interval of an application, all ports together.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Interval {
    /// When it ended, in seconds after the start of the run.
    pub end: f64,
    /// Bytes a second that were answered.
    pub throughput: f64,
    /// Mean latency of the answered requests, in milliseconds.
    pub latency_ms: Option<f64>,
    /// `y`.
    pub performance: Option<f64>,
    /// The allocation in force during the interval; zero without control.
    pub allocation: f64,
}

impl<'r> Application<'r> {
    /// The volume of this name.
    pub fn of(record: &'r Record, volume: &str) -> Option<Self> {
        let is_port = |name: &str| {
            name.strip_prefix(volume).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let names = record.header.volumes.iter().enumerate();
        let ports: Vec<usize> = names.filter(|(_, name)| is_port(name)).map(|(place, _)| place).collect();
        (!ports.is_empty()).then_some(Self { record, ports })
    }

    /// The target.
    pub fn target(&self) -> Option<Target> {
        self.record.header.targets[self.ports[0]]
    }

    /// Its intervals after the warm-up, in order of time.
    pub fn intervals(&self) -> Vec<Interval> {
        let warm_up_us = self.record.header.warm_up_us;
        let mut waiting = vec![0_u64; self.ports.len()];
        let mut begins_us = 0;
        let mut intervals = Vec::new();
        for number in 0..self.record.windows[self.ports[0]].len() {
            let windows: Vec<&Window> =
                self.ports.iter().filter_map(|port| self.record.windows[*port].get(number)).collect();
            for (waiting, window) in waiting.iter_mut().zip(&windows) {
                *waiting = (*waiting + window.offered).saturating_sub(window.completed);
            }
            let end_us = windows[0].end_us;
            if end_us > warm_up_us {
                intervals.push(self.interval(begins_us, &windows, waiting.iter().sum()));
            }
            begins_us = end_us;
        }
        intervals
    }

    /// The intervals that lie completely between these instants, in seconds after the start of the run.
    pub fn between(&self, from: f64, to: f64) -> Vec<Interval> {
        let mut begin = seconds(self.record.header.warm_up_us);
        let mut within = Vec::new();
        for interval in self.intervals() {
            if begin >= from && interval.end <= to {
                within.push(interval);
            }
            begin = interval.end;
        }
        within
    }

    /// The bound at each of its ports at an instant, in seconds after the start of the run.
    pub fn bounds_at(&self, at: f64) -> Vec<f64> {
        let in_force = |port: &usize| {
            let bounds = &self.record.bounds[*port];
            let next = bounds.partition_point(|bound| seconds(bound.at_us) <= at);
            next.checked_sub(1).map_or(0.0, |last| f64::from(bounds[last].requests))
        };
        self.ports.iter().map(in_force).collect()
    }

    fn interval(&self, begins_us: u64, windows: &[&Window], waiting: u64) -> Interval {
        let end = seconds(windows[0].end_us);
        let over = end - seconds(begins_us);
        let bytes: u64 = windows.iter().map(|window| window.bytes).sum();
        let answered: u64 = windows.iter().map(|window| window.completed).sum();
        let spent_us =
            windows.iter().filter_map(|window| Some(float(window.mean_us?) * float(window.completed)));
        let latency_ms = (answered > 0).then(|| spent_us.sum::<f64>() / float(answered) / 1e3);
        let performance = match self.target() {
            None | Some(Target::Percentile(..)) => None,
            Some(_) if answered == 0 => (waiting > 0).then_some(0.0),
            Some(Target::Throughput(target)) => Some(float(bytes) / over / float(target.get())),
            Some(Target::Rate(target)) => Some(float(answered) / over / target.get()),
            Some(Target::Latency(target)) => latency_ms.map(|ms| target.as_secs_f64() * 1e3 / ms),
        };
        // The law's decision at the end of an interval is for the next one.
        let allocation = self.bounds_at(f64::midpoint(seconds(begins_us), end)).iter().sum();
        Interval { end, throughput: float(bytes) / over, latency_ms, performance, allocation }
    }
}

/// Mean `y` of some intervals.
pub fn performance(intervals: &[Interval]) -> Option<f64> {
    mean(intervals.iter().filter_map(|interval| interval.performance))
}

/// Mean throughput of some intervals, in bytes a second.
pub fn throughput(intervals: &[Interval]) -> Option<f64> {
    mean(intervals.iter().map(|interval| interval.throughput))
}

/// Mean of the absolute differences of `y` between two applications, interval by interval.
pub fn difference(a: &[Interval], b: &[Interval]) -> Option<f64> {
    mean(a.iter().zip(b).filter_map(|(a, b)| Some((a.performance? - b.performance?).abs())))
}

/// The mean shortfall of an application, divided by that of `other`. `None` if `other` does not fall short.
pub fn shortfall_ratio(of: &[Interval], other: &[Interval]) -> Option<f64> {
    let (of, other) = (1.0 - performance(of)?, 1.0 - performance(other)?);
    (other > 0.0).then(|| of / other)
}

/// Percent of the intervals with a `y` whose `y` is at least `least`.
pub fn share_at_least(intervals: &[Interval], least: f64) -> Option<f64> {
    let values = intervals.iter().filter_map(|interval| interval.performance);
    percent(values.clone().filter(|y| *y >= least).count(), values.count())
}

/// The median.
pub fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

fn seconds(us: u64) -> f64 {
    float(us) / 1e6
}

#[cfg(test)]
mod tests;
