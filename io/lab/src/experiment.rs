//! An experiment as its file says it: a claim of a paper, the set-up that shows it, and what must hold.
//!
//! A claim that is reproduced by a program cannot be read without the program. So the set-up and the paper's
//! numbers are data, in a file that a reader of the paper understands; only what is to be computed from what
//! was recorded is code, one file for each claim (`facade/`, `maestro/`). Units are text, as in a gateway's
//! configuration.
//!
//! A run can be repeated with one value changed ([`SweepSpec`]): the file is read again with that value in
//! its place, so that everything in it can be varied without a word for it here.

mod error;
mod library;
mod load;
mod resolve;
mod slo;
mod sweep;
mod units;
mod volume;

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use serde::Deserialize;
use weir_model::{Iops, QueueDepth, Span};

use crate::ArraySpec;

pub use error::ExperimentError;
pub use library::Library;
pub use load::{Load, Loads};
pub use resolve::{Resolved, resolve_curve, resolve_run};
pub use sweep::NamedRun;
pub use units::{Bytes, FromText, Text};
pub use volume::{ChangeSpec, PhaseSpec, PointSpec, SloSpec, StepsSpec, TraceSpec, VolumeSpec};

/// An experiment: one claim of a paper.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// What it is called; also its file's name, and which figures are computed.
    pub id: String,
    /// Where the claim stands.
    pub paper: PaperSpec,
    /// The claim, in a sentence.
    pub claim: String,
    /// What must hold for it to be reproduced, in a sentence; [`Experiment::expect`] is the same in numbers.
    pub must: String,
    /// In what the set-up differs from the paper's, or what the paper leaves open, a sentence each.
    #[serde(default)]
    pub deviations: Vec<String>,
    /// How the pool is treated where a run is controlled.
    #[serde(default)]
    pub engine: EngineSpec,
    /// The arrays, by name.
    pub array: BTreeMap<String, ArraySpec>,
    /// Latency against rate, measured before the runs.
    #[serde(default)]
    pub curve: BTreeMap<String, CurveSpec>,
    /// The volumes and their loads, by name.
    pub volume: BTreeMap<String, VolumeSpec>,
    /// What is run, by name.
    pub run: BTreeMap<String, RunSpec>,
    /// What is drawn.
    pub plot: PlotSpec,
    /// What the paper found, and what must be found here.
    pub expect: Vec<Expectation>,
    /// The file as it was written.
    #[serde(skip)]
    pub text: String,
}

/// Where a claim stands.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PaperSpec {
    /// The paper's short name.
    pub name: String,
    /// The section, such as `4.1`.
    pub section: String,
    /// The figure or table.
    pub figure: String,
}

/// How a pool is treated: the values of the law where they are not its defaults, which are the paper's.
#[derive(Clone, PartialEq, Default, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EngineSpec {
    /// The control period.
    pub period: Option<Text<Span>>,
    /// By what share a queue depth grows that was felt and did no harm.
    pub growth: Option<f64>,
    /// The queue depth at first.
    pub initial_depth: Option<u32>,
    /// The share of the array's time that requests without a target get where others keep it full, from 0 to
    /// 0.5.
    pub background_share: Option<f64>,
    /// How many requests may be at the array at a time, under Maestro's law.
    pub total_concurrency: Option<NonZeroU32>,
    /// How often Maestro's law decides.
    pub control_interval: Option<Text<Span>>,
    /// The window over which means are taken, with control and without.
    pub slo_window: Option<Text<Span>>,
}

/// Latency against rate on an array of one's own, without control.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CurveSpec {
    /// The array.
    pub array: String,
    /// The rates, rising.
    pub rates: Vec<Text<Iops>>,
    /// How long each is measured.
    pub each: Text<Span>,
    /// How long before that each is applied.
    pub warm_up: Text<Span>,
    /// The share of reads.
    pub reads: f64,
    /// Bytes of a request.
    pub request: Text<Bytes>,
}

/// One run.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunSpec {
    /// What it is, in a few words, for the head of its column in a figure.
    pub says: String,
    /// The law.
    pub control: ControlSpec,
    /// The array.
    pub array: String,
    /// The volumes; all of them, if it does not say.
    pub volumes: Option<Vec<String>>,
    /// How long it lasts.
    pub duration: Text<Span>,
    /// What is left out at its beginning.
    pub warm_up: Text<Span>,
    /// Disks that fail.
    #[serde(default)]
    pub failures: Vec<FailureSpec>,
    /// With which values it is repeated.
    pub sweep: Option<SweepSpec>,
}

/// A law.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ControlSpec {
    /// None.
    None,
    /// Façade's.
    Facade,
    /// Maestro's.
    Maestro,
}

/// A disk that fails.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FailureSpec {
    /// When.
    pub at: Text<Span>,
    /// Of which logical unit, from zero.
    pub unit: usize,
    /// Which disk, from zero.
    pub disk: usize,
}

/// One key of the file, and the values that it has in turn.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SweepSpec {
    /// The key with its full path, such as `array.fc60.disks`.
    pub key: String,
    /// The values.
    pub values: Vec<toml::Value>,
}

/// What is drawn.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlotSpec {
    /// The kind of figure.
    pub kind: PlotKind,
    /// The runs, side by side; of a sweep, by the name of the run.
    pub runs: Vec<String>,
    /// The volumes; all of them, if it does not say.
    pub volumes: Option<Vec<String>>,
    /// Whether latency is drawn on a logarithmic axis.
    #[serde(default)]
    pub log_latency: bool,
    /// How much time is drawn, from the end of the warm-up on; all of it, if it does not say.
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
    /// The share of each port in what is allotted, over time, a column for each run.
    Ports,
    /// The share of the intervals with at most a latency, and with at most a throughput, a line for each run.
    Cdf,
}

/// What the paper found, and what must be found here.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expectation {
    /// The figure's name.
    pub figure: String,
    /// What it says, in words.
    pub says: String,
    /// What the paper found, in words and with its unit.
    pub paper: String,
    /// The unit of the figure and of the bounds.
    pub unit: String,
    /// The least that must be found.
    pub at_least: Option<f64>,
    /// The most.
    pub at_most: Option<f64>,
    /// Both.
    pub between: Option<[f64; 2]>,
}

impl EngineSpec {
    /// The depth at first, if the file says one.
    pub fn initial_depth(&self) -> Option<QueueDepth> {
        self.initial_depth.map(QueueDepth::new)
    }
}

#[cfg(test)]
mod tests;
