//! A volume in an experiment's file: what it is to get, and what its clients do.

use std::num::NonZeroU32;

use serde::Deserialize;
use weir_model::{Iops, Span, Target};

use super::{Bytes, Loads, Text};

/// A volume and its load.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VolumeSpec {
    /// What it is promised.
    pub slo: Option<SloSpec>,
    /// What it is to get under Maestro's law.
    pub target: Option<Text<Target>>,
    /// How much it counts that it does; 1.
    pub priority: Option<f64>,
    /// What changes in that, and when.
    #[serde(default)]
    pub changes: Vec<ChangeSpec>,
    /// Through how many ports its clients come; one.
    pub ports: Option<NonZeroU32>,
    /// The share of reads.
    pub reads: Option<f64>,
    /// Bytes of a request.
    pub request: Option<Text<Bytes>>,
    /// What its clients do, from when on.
    #[serde(default)]
    pub phases: Vec<PhaseSpec>,
    /// After how long the phases begin anew.
    pub repeat: Option<Text<Span>>,
    /// Instead of phases: a rate that rises in steps.
    pub steps: Option<StepsSpec>,
    /// Instead of phases: a recorded load.
    pub trace: Option<TraceSpec>,
    /// From where to where on the array it lies, as shares of the whole; all of it, if it does not say.
    /// Volumes may lie on top of each other: they store nothing, and the paper's loads are spread over the
    /// whole unit.
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

/// What clients do from an instant on.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PhaseSpec {
    /// From when on.
    pub at: Text<Span>,
    /// What, at each port.
    pub load: Loads,
    /// Bytes of a request from then on; those of the volume.
    pub request: Option<Text<Bytes>>,
}

/// What changes in what a volume is to get.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChangeSpec {
    /// When.
    pub at: Text<Span>,
    /// How much it counts from then on.
    pub priority: f64,
}

/// A rate that rises in equal steps.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepsSpec {
    /// The first rate.
    pub from: Text<Iops>,
    /// The last.
    pub to: Text<Iops>,
    /// What lies between one and the next.
    pub by: Text<Iops>,
    /// How long each lasts.
    pub each: Text<Span>,
    /// How much longer the first one lasts: as long as the warm-up of the runs.
    pub lead: Option<Text<Span>>,
}

/// A recorded load.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TraceSpec {
    /// The file, within the folder of traces.
    pub file: String,
    /// How many times faster than it was recorded it is replayed.
    pub speed: f64,
    /// How much of the recording is left out at its beginning.
    #[serde(default)]
    pub skip: Option<Text<Span>>,
    /// How long to wait before the first request.
    #[serde(default)]
    pub delay: Option<Text<Span>>,
}
