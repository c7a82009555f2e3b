//! The result of a run: for machines as JSON by serde, where the last word of a name is the unit; and for
//! people.

use std::collections::BTreeMap;
use std::fmt;

use hdrhistogram::Histogram;
use serde::Serialize;
use weir_model::Span;
use weir_nbd::client::RemoteExport;
use weir_nbd::wire::error;

use crate::record::{Tally, micros};
use crate::slots::Class;
use crate::{Arrival, Interval, LoadSpec, Pace, Pattern};

/// The result of a run. The warm-up is in none of the numbers, except for `unsent` and `unanswered`.
#[derive(Clone, PartialEq, Serialize, Debug)]
pub struct Report {
    /// The URI of the export.
    pub target: String,
    /// The size of the export.
    pub export_bytes: u64,
    /// Whether structured replies were used.
    pub structured_replies: bool,
    /// `closed`, or the spread of an open loop's arrivals: `constant`, `poisson`, `bursts`.
    pub pace: &'static str,
    /// The requests a second of an open loop; `None` in a closed loop.
    pub target_rate_iops: Option<f64>,
    /// Connections.
    pub connections: u32,
    /// The bound on the requests outstanding on a connection.
    pub depth: u32,
    /// Reads in a hundred requests.
    pub read_percent: u8,
    /// Bytes of a request.
    pub block_bytes: u32,
    /// `random` or `sequential`.
    pub pattern: &'static str,
    /// The seed of the random numbers.
    pub seed: u64,
    /// From the end of the warm-up to the end of the run, or to the last reply if that came later.
    pub elapsed_s: f64,
    /// Reads and writes that arrived (open loop), or were sent (closed loop).
    pub offered: u64,
    /// Reads and writes answered without an error.
    pub completed: u64,
    /// Requests answered with an error, flushes included.
    pub errors: u64,
    /// Their number by the name of the error.
    pub errors_by_name: BTreeMap<String, u64>,
    /// Requests that were sent more than a millisecond after their intended time; open loop only.
    pub late: u64,
    /// The longest such delay.
    pub late_max_us: f64,
    /// Requests that had arrived, and were not sent before the run ended.
    pub unsent: u64,
    /// Requests that were sent, and not answered before the run ended.
    pub unanswered: u64,
    /// `completed` a second.
    pub rate_iops: f64,
    /// Bytes a second of `completed`, in units of 2^20.
    pub bandwidth_mib_s: f64,
    /// Reads, if there were any.
    pub read: Option<Summary>,
    /// Writes, if there were any.
    pub write: Option<Summary>,
    /// Flushes, if there were any; they count in none of the rates above.
    pub flush: Option<Summary>,
    /// The seconds of the run, one after the other.
    pub intervals: Vec<Interval>,
}

/// Requests of one kind that were answered without an error.
#[derive(Clone, PartialEq, Serialize, Debug)]
pub struct Summary {
    /// The number of requests.
    pub completed: u64,
    /// Requests a second.
    pub rate_iops: f64,
    /// Bytes a second, in units of 2^20; zero for flushes.
    pub bandwidth_mib_s: f64,
    /// Their latencies.
    pub latency: Latency,
}

/// A distribution of latencies, to three significant digits. In an open loop, a latency counts from the
/// intended arrival.
#[derive(Clone, Copy, PartialEq, Serialize, Debug)]
pub struct Latency {
    /// The mean.
    pub mean_us: f64,
    /// The median.
    pub p50_us: f64,
    /// The 90th percentile.
    pub p90_us: f64,
    /// The 99th percentile.
    pub p99_us: f64,
    /// The 99.9th percentile.
    pub p99_9_us: f64,
    /// The longest.
    pub max_us: f64,
}

/// The measurements of a run, from which the report is made.
pub(crate) struct Measured {
    pub(crate) total: Tally,
    pub(crate) intervals: Vec<Interval>,
    pub(crate) elapsed: Span,
    pub(crate) unsent: u64,
    pub(crate) unanswered: u64,
}

impl Report {
    pub(crate) fn new(spec: &LoadSpec, export: &RemoteExport, measured: Measured) -> Self {
        let Measured { total, intervals, elapsed, unsent, unanswered } = measured;
        let elapsed_s = elapsed.as_secs_f64();
        let summary = |class, bytes| Summary::new(total.latencies(class), elapsed_s, bytes);
        let read = summary(Class::Read, spec.block_bytes);
        let write = summary(Class::Write, spec.block_bytes);
        let sum = |value: fn(&Summary) -> f64| read.iter().chain(&write).map(value).sum();
        let (pace, target_rate_iops) = match spec.pace {
            Pace::Closed => ("closed", None),
            Pace::Open { rate, arrivals: Arrival::Constant } => ("constant", Some(rate.get())),
            Pace::Open { rate, arrivals: Arrival::Poisson } => ("poisson", Some(rate.get())),
            Pace::Open { rate, arrivals: Arrival::Bursts } => ("bursts", Some(rate.get())),
        };
        Self {
            target: spec.target.to_string(),
            export_bytes: export.size,
            structured_replies: export.structured_replies,
            pace,
            target_rate_iops,
            connections: spec.connections,
            depth: spec.depth,
            read_percent: spec.read_percent,
            block_bytes: spec.block_bytes,
            pattern: match spec.pattern {
                Pattern::Random => "random",
                Pattern::Sequential => "sequential",
            },
            seed: spec.seed,
            elapsed_s,
            offered: total.offered,
            completed: read.iter().chain(&write).map(|summary| summary.completed).sum(),
            errors: total.errors.values().sum(),
            errors_by_name: total.errors.iter().map(|(error, count)| (error_name(*error), *count)).collect(),
            late: total.late,
            late_max_us: micros(total.latest.as_nanos()),
            unsent,
            unanswered,
            rate_iops: sum(|summary| summary.rate_iops),
            bandwidth_mib_s: sum(|summary| summary.bandwidth_mib_s),
            flush: summary(Class::Flush, 0),
            read,
            write,
            intervals,
        }
    }
}

impl Summary {
    #[allow(clippy::cast_precision_loss)] // exact up to 2^53 requests
    fn new(latencies: &Histogram<u64>, elapsed_s: f64, bytes: u32) -> Option<Self> {
        let completed = latencies.len();
        if completed == 0 {
            return None;
        }
        let rate_iops = if elapsed_s > 0.0 { completed as f64 / elapsed_s } else { 0.0 };
        let quantile = |quantile| micros(latencies.value_at_quantile(quantile));
        Some(Self {
            completed,
            rate_iops,
            bandwidth_mib_s: rate_iops * f64::from(bytes) / f64::from(1 << 20),
            latency: Latency {
                mean_us: latencies.mean() / 1e3,
                p50_us: quantile(0.5),
                p90_us: quantile(0.9),
                p99_us: quantile(0.99),
                p99_9_us: quantile(0.999),
                max_us: micros(latencies.max()),
            },
        })
    }
}

/// The protocol's name of an error (NBD protocol, "Error values").
pub(crate) fn error_name(number: u32) -> String {
    let name = match number {
        error::PERM => "EPERM",
        error::IO => "EIO",
        error::NOMEM => "ENOMEM",
        error::INVAL => "EINVAL",
        error::NOSPC => "ENOSPC",
        error::OVERFLOW => "EOVERFLOW",
        error::NOTSUP => "ENOTSUP",
        error::SHUTDOWN => "ESHUTDOWN",
        other => return format!("error {other}"),
    };
    name.to_owned()
}

/// The report in a few lines for people.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rate = self.target_rate_iops.map_or_else(String::new, |rate| format!(" {rate} IO/s"));
        let connections = if self.connections == 1 { "connection" } else { "connections" };
        writeln!(
            f,
            "{}: {}{rate}, {} {connections}, depth {}, {} of {}, {} % reads, seed {}",
            self.target,
            if self.target_rate_iops.is_some() { self.pace } else { "closed loop" },
            self.connections,
            self.depth,
            self.pattern,
            Bytes(self.block_bytes),
            self.read_percent,
            self.seed,
        )?;
        writeln!(
            f,
            "{:.3} s: {} completed, {:.0} IO/s, {:.1} MiB/s, {} errors{}",
            self.elapsed_s,
            self.completed,
            self.rate_iops,
            self.bandwidth_mib_s,
            self.errors,
            errors_in_brackets(&self.errors_by_name),
        )?;
        if self.target_rate_iops.is_some() {
            let worst = Micros(self.late_max_us);
            writeln!(
                f,
                "{} offered, {} sent late (at most {worst}), {} never sent",
                self.offered, self.late, self.unsent
            )?;
        }
        if self.unanswered > 0 {
            writeln!(f, "{} not answered in time", self.unanswered)?;
        }
        write!(f, "{:8}{:>11}", "", "IO/s")?;
        for title in ["mean", "p50", "p90", "p99", "p99.9", "max"] {
            write!(f, "{title:>11}")?;
        }
        for (name, summary) in [("read", &self.read), ("write", &self.write), ("flush", &self.flush)] {
            let Some(Summary { rate_iops, latency, .. }) = summary else { continue };
            write!(f, "\n{name:8}{rate_iops:>11.0}")?;
            let Latency { mean_us, p50_us, p90_us, p99_us, p99_9_us, max_us } = *latency;
            for value in [mean_us, p50_us, p90_us, p99_us, p99_9_us, max_us] {
                write!(f, "{:>11}", Micros(value).to_string())?;
            }
        }
        Ok(())
    }
}

fn errors_in_brackets(errors: &BTreeMap<String, u64>) -> String {
    if errors.is_empty() {
        return String::new();
    }
    let each: Vec<String> = errors.iter().map(|(name, count)| format!("{count} {name}")).collect();
    format!(" ({})", each.join(", "))
}

/// A latency in the unit that suits it.
struct Micros(f64);

impl fmt::Display for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            us if us < 1e3 => write!(f, "{us:.1} us"),
            us if us < 1e6 => write!(f, "{:.2} ms", us / 1e3),
            us => write!(f, "{:.2} s", us / 1e6),
        }
    }
}

/// A size in the largest unit that divides it.
struct Bytes(u32);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            n if n > 0 && n % (1 << 20) == 0 => write!(f, "{} MiB", n >> 20),
            n if n > 0 && n % (1 << 10) == 0 => write!(f, "{} KiB", n >> 10),
            n => write!(f, "{n} B"),
        }
    }
}

#[cfg(test)]
mod tests;
