//! The description of a run, as plain values: the pool, its array, its volumes, their clients, and the
//! faults.
//!
//! Everything that happens in a run follows from these values. So a run can be written down, changed in one
//! place, and run again. Instants are spans after the start.

mod problem;

use std::num::NonZeroU32;

use weir_engine::{EngineConfig, VolumeConfig};
use weir_model::{IoKind, Iops, Span};

use crate::array::options::ArrayOptions;

pub use problem::{Problem, ScenarioError};

/// A run of one pool.
#[derive(Clone, PartialEq, Debug)]
pub struct Scenario {
    /// The seed from which every random draw follows.
    pub seed: u64,
    /// How long it runs.
    pub duration: Span,
    /// The configuration of the pool's engine.
    pub engine: EngineConfig,
    /// The array that the volumes are stored on.
    pub array: ArrayOptions,
    /// The volumes that share it, with their clients.
    pub volumes: Vec<VolumeScenario>,
    /// The faults, and when they happen.
    pub faults: Vec<Fault>,
}

/// A volume and its clients.
#[derive(Clone, PartialEq, Debug)]
pub struct VolumeScenario {
    /// Its name, which also names its streams of random numbers.
    pub name: String,
    /// Its configuration.
    pub config: VolumeConfig,
    /// Its first byte on the array.
    pub start: u64,
    /// Its number of bytes.
    pub size: u64,
    /// What its clients do, and from when on, in the order of time. If the first phase is not at zero, the
    /// volume begins idle.
    pub phases: Vec<Phase>,
    /// After this time the phases begin anew.
    pub repeat: Option<Span>,
    /// Changes of its configuration, and when they happen.
    pub changes: Vec<(Span, VolumeConfig)>,
}

/// What a volume's clients do from an instant on.
#[derive(Clone, PartialEq, Debug)]
pub struct Phase {
    /// From when on, after the start or the last repetition.
    pub at: Span,
    /// What they do; `None`: they ask for nothing.
    pub workload: Option<Workload>,
}

/// What clients ask for.
#[derive(Clone, PartialEq, Debug)]
pub struct Workload {
    /// When requests come.
    pub arrivals: Arrivals,
    /// The share of reads, 0 to 1; the rest are writes.
    pub reads: f64,
    /// The sizes of requests in bytes, and how often each comes (weights).
    pub sizes: Vec<(u32, f64)>,
    /// Where they go.
    pub locality: Locality,
    /// After so many writes comes a flush, in the place of a request; `None`: never.
    pub flush_every: Option<NonZeroU32>,
}

/// When requests come.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Arrivals {
    /// This many a second, as from many independent users.
    Poisson(Iops),
    /// This many a second, at equal distances, the first when the phase begins.
    Constant(Iops),
    /// From a number of threads: each asks again as soon as its request is answered, and the think time has
    /// passed. After an error, a thread waits for at least 10 ms.
    Closed {
        /// How many threads there are.
        threads: u32,
        /// The time between an answer and the next request.
        think: Span,
    },
}

/// Where requests go. In random loads, each offset is a multiple of the request's size; in runs, only the
/// first offset of a run is.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Locality {
    /// Anywhere; each place is equally likely.
    Uniform,
    /// Some places more often than others: by Zipf's law with this exponent above zero, with the places in
    /// random order.
    Zipf(f64),
    /// Runs of this many requests one after the other, each run from a random place. There is one run at a
    /// time, whatever the number of clients. A run that reaches the volume's end is over.
    Runs(u32),
}

/// A fault.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Fault {
    /// When it happens.
    pub at: Span,
    /// What happens.
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
    /// The array begins no operation for this long.
    Stall(Span),
    /// The clients of a volume stop, and its queued requests are aborted. The volume is removed once its
    /// requests at the array are answered.
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
