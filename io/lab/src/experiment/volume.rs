//! A volume in an experiment's file: its promise or target, and the load of its clients.

use std::num::NonZeroU32;

use serde::Deserialize;
use weir_model::{Iops, Span, Target};

use super::Loads;
use crate::quantities::{Bytes, Text};

/// A volume and its load.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VolumeSpec {
    /// The promise: latency up to a rate.
    pub slo: Option<SloSpec>,
    /// The target under Maestro's law.
    pub target: Option<Text<Target>>,
    /// How much that target counts; absent: 1.
    pub priority: Option<f64>,
    /// Changes of the priority during the run.
    #[serde(default)]
    pub changes: Vec<ChangeSpec>,
    /// The number of ports through which the volume's clients come; absent: one.
    pub ports: Option<NonZeroU32>,
    /// Each port is an application of its own, with an equal part of the target. So nothing follows the load
    /// from port to port.
    #[serde(default)]
    pub fixed_split: bool,
    /// The share of reads.
    pub reads: Option<f64>,
    /// Bytes of a request.
    pub request: Option<Text<Bytes>>,
    /// The load of the clients, one phase after the other.
    #[serde(default)]
    pub phases: Vec<PhaseSpec>,
    /// The time after which the phases start again.
    pub repeat: Option<Text<Span>>,
    /// Instead of phases: a rate that rises in steps.
    pub steps: Option<StepsSpec>,
    /// Instead of phases: a recorded load.
    pub trace: Option<TraceSpec>,
    /// Where the volume lies on the array: beginning and end as shares of the whole; absent: all of it.
    /// Volumes may overlap, because they store nothing, and the paper's loads are spread over the whole unit.
    pub region: Option<[f64; 2]>,
}

/// A promise.
#[derive(Clone, PartialEq, Debug)]
pub enum SloSpec {
    /// These points.
    Points(Vec<PointSpec>),
    /// The measured curve of this name.
    Curve(String),
}

/// A point of a promise.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PointSpec {
    /// Up to this rate,
    pub up_to: Text<Iops>,
    /// this latency for reads,
    pub read: Text<Span>,
    /// and this for writes.
    pub write: Text<Span>,
}

/// The load of the clients from an instant on.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PhaseSpec {
    /// When the phase begins.
    pub at: Text<Span>,
    /// The load at each port.
    pub load: Loads,
    /// Bytes of a request in this phase; absent: the volume's.
    pub request: Option<Text<Bytes>>,
}

/// A change of a volume's priority.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChangeSpec {
    /// When the priority changes.
    pub at: Text<Span>,
    /// The priority from then on.
    pub priority: f64,
}

/// A rate that rises in equal steps.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepsSpec {
    /// The first rate.
    pub from: Text<Iops>,
    /// The last rate.
    pub to: Text<Iops>,
    /// The difference between one rate and the next.
    pub by: Text<Iops>,
    /// How long each step lasts.
    pub each: Text<Span>,
    /// How much longer the first step lasts. Experiments set it to the warm-up of the runs.
    pub lead: Option<Text<Span>>,
}

/// A recorded load.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TraceSpec {
    /// The file, within the folder of traces.
    pub file: String,
    /// How many times faster than it was recorded the load is replayed.
    pub speed: f64,
    /// The time at the beginning of the recording that is left out.
    #[serde(default)]
    pub skip: Option<Text<Span>>,
    /// The time before the first request.
    #[serde(default)]
    pub delay: Option<Text<Span>>,
}
