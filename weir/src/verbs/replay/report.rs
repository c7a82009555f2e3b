//! The report of a replay, for machines (the unit is the last word of a name) and for people. It is the same
//! for both kinds of time.

use std::fmt;

use comfy_table::presets;
use hdrhistogram::Histogram;
use serde::Serialize;
use weir_lab::replay::Outcome;
use weir_table::latency;

use super::Plan;
use crate::terminal;

/// The report of a replay.
#[derive(Serialize, Debug)]
pub(super) struct Report {
    trace: String,
    format: &'static str,
    speed: f64,
    volume: String,
    /// `sim`: simulated time. `real`: a gateway of its own. `server`: a running server.
    against: &'static str,
    elapsed_s: f64,
    offered: u64,
    offered_iops: f64,
    completed: u64,
    rate_iops: f64,
    errors: u64,
    unanswered: u64,
    late: u64,
    late_max_us: f64,
    read: Option<Latency>,
    write: Option<Latency>,
    both: Option<Latency>,
    windows_met: u64,
    windows_missed: u64,
    windows_out_of_contract: u64,
    /// The share of the windows with a promise in which the promise was kept.
    slo_attainment: Option<f64>,
}

/// Latencies of requests that were answered without an error.
#[derive(Serialize, Debug)]
struct Latency {
    completed: u64,
    rate_iops: f64,
    mean_us: f64,
    p50_us: f64,
    p95_us: f64,
    p99_us: f64,
    p99_9_us: f64,
    max_us: f64,
}

impl Report {
    pub(super) fn new(plan: &Plan, against: &'static str, outcome: &Outcome) -> Self {
        let elapsed_s = outcome.elapsed.as_secs_f64();
        let latency = |histogram| Latency::new(histogram, elapsed_s);
        Self {
            trace: plan.recording.path.display().to_string(),
            format: plan.survey.format.name(),
            speed: plan.recording.speed,
            volume: plan.volume.clone(),
            against,
            elapsed_s,
            offered: outcome.offered,
            offered_iops: outcome.offered_iops(),
            completed: outcome.completed(),
            rate_iops: outcome.rate_iops(),
            errors: outcome.errors,
            unanswered: outcome.unanswered,
            late: outcome.late,
            late_max_us: outcome.late_max.as_secs_f64() * 1e6,
            read: latency(&outcome.read_ns),
            write: latency(&outcome.write_ns),
            both: latency(&outcome.both_ns()),
            windows_met: outcome.windows.met,
            windows_missed: outcome.windows.missed,
            windows_out_of_contract: outcome.windows.out_of_contract,
            slo_attainment: outcome.windows.attainment(),
        }
    }
}

impl Latency {
    #[allow(clippy::cast_precision_loss)] // exact up to 2^53
    fn new(histogram: &Histogram<u64>, elapsed_s: f64) -> Option<Self> {
        let completed = histogram.len();
        let quantile = |quantile| histogram.value_at_quantile(quantile) as f64 / 1e3;
        (completed > 0).then(|| Self {
            completed,
            rate_iops: if elapsed_s > 0.0 { completed as f64 / elapsed_s } else { 0.0 },
            mean_us: histogram.mean() / 1e3,
            p50_us: quantile(0.5),
            p95_us: quantile(0.95),
            p99_us: quantile(0.99),
            p99_9_us: quantile(0.999),
            max_us: histogram.max() as f64 / 1e3,
        })
    }

    fn row(&self, name: &str) -> Vec<String> {
        let latencies = [self.mean_us, self.p50_us, self.p95_us, self.p99_us, self.p99_9_us, self.max_us];
        let rate = format!("{:.1}", self.rate_iops);
        [name.to_owned(), self.completed.to_string(), rate]
            .into_iter()
            .chain(latencies.map(latency))
            .collect()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = match self.against {
            "sim" => "in simulated time",
            "real" => "in real time, through a gateway of its own",
            _ => "in real time, through a server",
        };
        writeln!(f, "{} ({}) at {}x on volume {}, {time}", self.trace, self.format, self.speed, self.volume)?;
        writeln!(
            f,
            "{} offered in {:.3} s, {:.1} IO/s; {} errors, {} not answered; {} sent late (at most {})",
            self.offered,
            self.elapsed_s,
            self.offered_iops,
            self.errors,
            self.unanswered,
            self.late,
            latency(self.late_max_us),
        )?;
        let head = ["", "requests", "IO/s", "mean", "p50", "p95", "p99", "p99.9", "max"];
        let kinds = [("read", &self.read), ("write", &self.write), ("both", &self.both)];
        let rows = kinds.iter().filter_map(|(name, latency)| Some(latency.as_ref()?.row(name)));
        let (style, width) = (presets::UTF8_HORIZONTAL_ONLY, terminal::width());
        writeln!(f, "{}", weir_table::table(style, &head, rows, |column| column == 0, &[4, 7, 1], width))?;
        let judged = self.windows_met + self.windows_missed;
        match self.slo_attainment {
            Some(share) => write!(f, "SLO met in {:.2} % of {judged} windows", share * 100.0)?,
            None => f.write_str("SLO: no window was judged")?,
        }
        write!(f, "; out of contract in {}", self.windows_out_of_contract)
    }
}
