//! An experiment as its file describes it: a claim of a paper, the set-up that shows the claim, and the
//! bounds that must hold.
//!
//! The set-up and the paper's numbers are data, in a file that a reader of the paper understands. If a
//! program held them, a reader would have to read the program to know the claim. Only the computation from
//! the records is code, one file for each claim (`facade/`, `maestro/`). Units are text, as in a gateway's
//! configuration.
//!
//! A run can be repeated with one value changed ([`SweepSpec`]). The program then reads the file again with
//! that value in its place. So every value of the file can be varied, and no code here is needed for it. In
//! the same way, an experiment is run again with another law ([`Variant`]).

mod error;
mod include;
mod law;
mod load;
mod resolve;
mod slo;
mod sweep;
mod variant;
mod volume;

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use serde::Deserialize;
use weir_engine::Completion;
use weir_model::{Iops, QueueDepth, Span};

use crate::ArraySpec;
use crate::bulk::BulkScenario;
use crate::delay::Scenario;
use crate::quantities::{Bytes, Text};

pub use error::ExperimentError;
pub use include::MachineSpec;
#[cfg(test)]
pub(crate) use include::includes;
pub(crate) use include::{Included, is_machine};
pub use law::{LawSpec, ScaledSpec};
pub use load::{Load, Loads};
pub use resolve::{Resolved, resolve_curve, resolve_run};
pub use sweep::NamedRun;
pub use variant::{ValueSpec, Variant, Variation, WithoutSpec};
pub use volume::{ChangeSpec, PhaseSpec, PointSpec, SloSpec, StepsSpec, TraceSpec, VolumeSpec};

/// An experiment: one claim of a paper.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// The name of the experiment, also of its file. It selects the function that computes the figures.
    pub id: String,
    /// The place in the paper where the claim stands.
    pub paper: PaperSpec,
    /// The claim, in words.
    pub claim: String,
    /// The condition for the claim to be reproduced, in words; [`Experiment::expect`] is the same in numbers.
    pub must: String,
    /// The differences from the paper's set-up, and the points that the paper leaves open: a text for each.
    #[serde(default)]
    pub deviations: Vec<String>,
    /// The files with the paper's machine, beside this file.
    #[serde(default)]
    pub include: Vec<String>,
    /// What these files say of the machine, by its name.
    #[serde(default)]
    pub machine: BTreeMap<String, MachineSpec>,
    /// The settings of the law in runs with control.
    #[serde(default)]
    pub engine: EngineSpec,
    /// The set-up before an iSCSI target. An experiment has either this, or `bulk`, or arrays, volumes and
    /// runs.
    pub delay: Option<Scenario>,
    /// The storage nodes and the transfers.
    pub bulk: Option<BulkScenario>,
    /// The arrays, by name.
    #[serde(default)]
    pub array: BTreeMap<String, ArraySpec>,
    /// Curves of latency against rate, measured before the runs.
    #[serde(default)]
    pub curve: BTreeMap<String, CurveSpec>,
    /// The volumes and their loads, by name.
    #[serde(default)]
    pub volume: BTreeMap<String, VolumeSpec>,
    /// The runs, by name.
    #[serde(default)]
    pub run: BTreeMap<String, RunSpec>,
    /// Keys, with values that they take when the numbers of the set-up are varied, beside a tenth more and
    /// less.
    #[serde(default)]
    pub vary: Vec<SweepSpec>,
    /// The numbers of the set-up on which the claim hangs most, as varying all of them has shown.
    #[serde(default)]
    pub hangs_on: Vec<String>,
    /// The negative control, if a run without the law would say nothing.
    pub without: Option<WithoutSpec>,
    /// The figure to draw.
    pub plot: PlotSpec,
    /// The paper's findings, and the bounds that must hold here.
    pub expect: Vec<Expectation>,
    /// The text of the file, and of the files that it includes.
    #[serde(skip)]
    pub text: String,
}

/// The place of a claim in a paper.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PaperSpec {
    /// The paper's short name.
    pub name: String,
    /// The section, such as `4.1`.
    pub section: String,
    /// The figure or table.
    pub figure: String,
    /// The numbers of the set-up that the paper gives, by their paths in the file; `*` stands for any text.
    /// All others are ours.
    #[serde(default)]
    pub numbers: Vec<String>,
}

/// The settings of a law. A setting that is absent has the law's default.
#[derive(Clone, PartialEq, Default, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EngineSpec {
    /// The control period.
    pub period: Option<Text<Span>>,
    /// The share by which the queue depth grows after a period in which the device's queue reached it without
    /// harm.
    pub growth: Option<f64>,
    /// The queue depth at the start.
    pub initial_depth: Option<u32>,
    /// The share of the array's time that requests without a target get while requests with a target keep the
    /// array full; from 0 to 0.5.
    pub background_share: Option<f64>,
    /// How many requests may be at the array at a time, under Maestro's law.
    pub total_concurrency: Option<NonZeroU32>,
    /// How often Maestro's law decides.
    pub control_interval: Option<Text<Span>>,
    /// The length of an SLO window, over which means are taken; the same with control and without.
    pub slo_window: Option<Text<Span>>,
    /// Whether Façade's and Maestro's laws have their completions; absent: all of them, as in a pool.
    pub law: Option<LawSpec>,
    /// The completions of a law that is literal otherwise.
    #[serde(default)]
    pub completions: Vec<Text<Completion>>,
    /// The completions that a complete law is without.
    #[serde(default)]
    pub but_for: Vec<Text<Completion>>,
    /// A constant of the law that is another one.
    pub scaled: Option<ScaledSpec>,
}

/// Latency against rate on an array that serves only this load, without control. The load is either
/// requests at each rate, or a recorded load; the latter's windows are sorted by their rates.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CurveSpec {
    /// The array.
    pub array: String,
    /// The rates, rising.
    pub rates: Vec<Text<Iops>>,
    /// The recorded load. It has its own mix and sizes, and those below do not count.
    pub trace: Option<TraceSpec>,
    /// How long each rate is measured.
    pub each: Text<Span>,
    /// How long each rate is applied before it is measured.
    pub warm_up: Text<Span>,
    /// The share of the array's NVRAM, 0 to 1, that holds writes when a rate begins; absent: none.
    pub nvram_filled: Option<f64>,
    /// The share of reads.
    pub reads: f64,
    /// Bytes of a request.
    pub request: Text<Bytes>,
}

/// One run.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunSpec {
    /// A few words about the run, for the head of its column in a figure.
    pub says: String,
    /// The law.
    pub control: ControlSpec,
    /// The array.
    pub array: String,
    /// The volumes; absent: all of them.
    pub volumes: Option<Vec<String>>,
    /// How long the run lasts.
    pub duration: Text<Span>,
    /// The time at the beginning of the run that is left out of the figures.
    pub warm_up: Text<Span>,
    /// The share of the array's NVRAM, 0 to 1, that holds writes when the run begins, as after a long time
    /// under load; absent: none.
    pub nvram_filled: Option<f64>,
    /// Disks that fail during the run.
    #[serde(default)]
    pub failures: Vec<FailureSpec>,
    /// The key and the values with which the run is repeated.
    pub sweep: Option<SweepSpec>,
}

/// A law.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ControlSpec {
    /// No law.
    None,
    /// Façade's law.
    Facade,
    /// Maestro's law.
    Maestro,
    /// The law of promises.
    Promise,
}

/// A disk that fails.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FailureSpec {
    /// When the disk fails.
    pub at: Text<Span>,
    /// Its logical unit, from zero.
    pub unit: usize,
    /// The disk within that unit, from zero.
    pub disk: usize,
}

/// One key of the file, and the values that it takes one after the other.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SweepSpec {
    /// The key with its full path, such as `array.fc60.disks`.
    pub key: String,
    /// The values.
    pub values: Vec<toml::Value>,
}

/// The figure to draw.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlotSpec {
    /// The kind of figure.
    pub kind: PlotKind,
    /// The runs, side by side. A sweep stands here with the name of its run.
    pub runs: Vec<String>,
    /// The volumes; absent: all of them.
    pub volumes: Option<Vec<String>>,
    /// Whether latency is drawn on a logarithmic axis.
    #[serde(default)]
    pub log_latency: bool,
    /// How much time is drawn, from the end of the warm-up on; absent: all of it.
    pub until: Option<Text<Span>>,
}

/// A kind of figure.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PlotKind {
    /// Latency and throughput over time, a column for each run.
    Time,
    /// Latency over rate, a column for each run.
    Rate,
    /// Latency over the value of a sweep, a line for each run.
    Sweep,
    /// Normalised performance and allocation over time, a column for each run.
    Performance,
    /// The share of each port in the sum of all bounds, over time, a column for each run.
    Ports,
    /// The share of the intervals with at most a given latency, or at most a given throughput; a line for
    /// each run.
    Cdf,
    /// Read wait, delay and throughput before an iSCSI target over time, a column for each run.
    Delay,
    /// Throughput over the delay, a line for each run.
    Curve,
    /// The rate of each transfer over its number, a panel for each run.
    Bulk,
}

/// The paper's finding, and the bounds that a figure must keep here.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expectation {
    /// The figure's name.
    pub figure: String,
    /// The meaning of the figure, in words.
    pub says: String,
    /// The paper's finding, in words and with its unit.
    pub paper: String,
    /// The unit of the figure and of the bounds.
    pub unit: String,
    /// The least value that holds.
    pub at_least: Option<f64>,
    /// The greatest value that holds.
    pub at_most: Option<f64>,
    /// The least and the greatest value that hold.
    pub between: Option<[f64; 2]>,
    /// The figure that is the noise of this one. If the bound lies within it, the claim is not shown.
    pub noise: Option<String>,
    /// Whether the figure is of what the law granted, and not of what clients got. Another law grants each
    /// volume nothing, so the bound does not count there.
    #[serde(default)]
    pub granted: bool,
    /// The reason, if it is known that the bound does not hold here. The claim is then not reproduced, which
    /// is a result; a bound that does not hold without a reason is a failure.
    pub not_reproduced: Option<String>,
}

impl Experiment {
    /// What the file says of each run, by the runs' names.
    pub fn says(&self) -> BTreeMap<&str, &str> {
        let before_target = self.delay.iter().flat_map(|scenario| &scenario.run);
        let before_target = before_target.map(|(name, run)| (name.as_str(), run.says.as_str()));
        let others = self.run.iter().map(|(name, run)| (name.as_str(), run.says.as_str()));
        let bulk = self.bulk.iter().flat_map(|scenario| &scenario.run);
        let bulk = bulk.map(|(name, run)| (name.as_str(), run.says.as_str()));
        others.chain(before_target).chain(bulk).collect()
    }
}

impl EngineSpec {
    /// The queue depth at the start, if the file sets one.
    pub fn initial_depth(&self) -> Option<QueueDepth> {
        self.initial_depth.map(QueueDepth::new)
    }
}

#[cfg(test)]
mod tests;
