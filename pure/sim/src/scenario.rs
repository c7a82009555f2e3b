//! What a run is made of, as plain values: the pool, its array, its volumes, who loads them and what goes
//! wrong.
//!
//! Everything that happens in a run follows from these values, so that a run can be written down, changed in
//! one place and run again. Instants are spans after the start.

mod problem;

use weir_engine::{EngineConfig, VolumeConfig};
use weir_model::{IoKind, Iops, Span};

use crate::array::options::ArrayOptions;

pub use problem::{Problem, ScenarioError};

/// A run of one pool.
#[derive(Clone, PartialEq, Debug)]
pub struct Scenario {
    /// From which every draw follows.
    pub seed: u64,
    /// How long it runs.
    pub duration: Span,
    /// How the pool is treated.
    pub engine: EngineConfig,
    /// What it is stored on.
    pub array: ArrayOptions,
    /// Who shares it.
    pub volumes: Vec<VolumeScenario>,
    /// What goes wrong, and when.
    pub faults: Vec<Fault>,
}

/// A volume and its clients.
#[derive(Clone, PartialEq, Debug)]
pub struct VolumeScenario {
    /// What it is called; also names its streams of random numbers.
    pub name: String,
    /// How it is treated.
    pub config: VolumeConfig,
    /// Its first byte on the array.
    pub start: u64,
    /// Its number of bytes.
    pub size: u64,
    /// What its clients do, from when on. In order of time, the first at zero unless it begins idle.
    pub phases: Vec<Phase>,
    /// After this time the phases begin anew.
    pub repeat: Option<Span>,
    /// What changes in its treatment, and when.
    pub changes: Vec<(Span, VolumeConfig)>,
}

/// What a volume's clients do from an instant on.
#[derive(Clone, PartialEq, Debug)]
pub struct Phase {
    /// From when on, after the start or the last repetition.
    pub at: Span,
    /// What they do; `None`: nothing.
    pub workload: Option<Workload>,
}

/// What clients ask for.
#[derive(Clone, PartialEq, Debug)]
pub struct Workload {
    /// When requests come.
    pub arrivals: Arrivals,
    /// The share of reads, 0 to 1; the rest are writes.
    pub reads: f64,
    /// How long they are: bytes, and how often each size comes (weights).
    pub sizes: Vec<(u32, f64)>,
    /// Where they go.
    pub locality: Locality,
}

/// When requests come.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Arrivals {
    /// As from many independent users: so many a second.
    Poisson(Iops),
    /// At equal distances: so many a second, the first when the phase begins.
    Constant(Iops),
    /// Each as soon as one before is answered and this time has passed; so many clients. After an error a
    /// client waits for 10 ms at least.
    Closed {
        /// How many are outstanding or thinking.
        threads: u32,
        /// The time between an answer and the next request.
        think: Span,
    },
}

/// Where requests go. The first offset, and in random loads each, is a multiple of the request's size.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Locality {
    /// Anywhere, each place as likely.
    Uniform,
    /// Some places more often than others: Zipf with this exponent above zero, the places in random order.
    Zipf(f64),
    /// Runs of so many requests one after the other, each run from a random place. One run at a time,
    /// whatever the number of clients; one that reaches the volume's end is over.
    Runs(u32),
}

/// Something that goes wrong.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Fault {
    /// When.
    pub at: Span,
    /// What.
    pub what: FaultKind,
}

/// What can go wrong.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum FaultKind {
    /// A disk of a logical unit fails.
    DiskFails {
        /// The unit, from zero.
        unit: usize,
        /// The disk, from zero.
        disk: usize,
    },
    /// The failed disk of a unit is replaced and rebuilt.
    Rebuild {
        /// The unit, from zero.
        unit: usize,
    },
    /// The array serves nothing for so long.
    Stall(Span),
    /// A volume stops being loaded, what it has queued is aborted, and it is removed once everything that is
    /// at the array is answered.
    VolumeRemoved {
        /// The volume, from zero.
        volume: usize,
    },
}

/// One request of a recorded load.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TraceRequest {
    /// When it came, after the first.
    pub at: Span,
    /// What it does.
    pub kind: IoKind,
    /// First byte, of the traced device.
    pub offset: u64,
    /// Number of bytes.
    pub length: u32,
}
