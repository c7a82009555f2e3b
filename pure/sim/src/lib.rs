//! Storage in simulated time: the real engine between made-up clients and a made-up array.
//!
//! The papers were measured on arrays that nobody has any more. This crate models those arrays well enough to
//! examine the papers' results again, in seconds, on any machine. The scheduler, the laws and the engine are
//! those that serve real disks. Each model's `//!` says what it models, what it does not, and which published
//! figures calibrate it.
//!
//! - [`Array`]: logical units of disks, flash disks or stations. A driver tells it what happens and asks what
//!   follows, so a clock can drive it, too.
//! - [`Scenario`]: the description of a run, as plain values. [`World`] runs it, and tells an [`Observer`]
//!   what happens.
//! - [`Seed`]: every random draw comes from a stream that is known by its name. So the seed and the scenario
//!   give the run.
//! - [`cluster`]: a controller and several gateways before one array, with faults of clocks, links and
//!   processes.
//! - [`transfers`]: bulk transfers to storage nodes.
//! - [`swarm`]: random scenarios. Checkers watch these and every other run, and end it with a [`Violation`].
//!
//! # A run
//!
//! Eight readers share a disk that serves one request at a time, in 5 ms: 200 requests a second.
//!
//! ```
//! use std::num::NonZeroU32;
//! use weir_engine::{EngineConfig, Event, VolumeConfig};
//! use weir_model::{Instant, Span};
//! use weir_sim::{
//!     ArrayOptions, Arrivals, Locality, MemberOptions, Observer, Phase, Scenario, StationOptions, VolumeScenario,
//!     Workload, World,
//! };
//!
//! struct Answered(u32);
//!
//! impl Observer for Answered {
//!     fn on_event(&mut self, _now: Instant, event: &Event) {
//!         self.0 += u32::from(matches!(event, Event::Finished { ok: true, .. }));
//!     }
//! }
//!
//! let service_time = Span::from_millis(5);
//! let disk = StationOptions { servers: NonZeroU32::MIN, service_time, exponential: false };
//! let readers = Workload {
//!     flush_every: None,
//!     arrivals: Arrivals::Closed { threads: 8, think: Span::ZERO },
//!     reads: 1.0,
//!     sizes: vec![(4096, 1.0)],
//!     locality: Locality::Uniform,
//! };
//! let volume = VolumeScenario {
//!     name: "db".to_owned(),
//!     config: VolumeConfig::default(),
//!     start: 0,
//!     size: 1 << 30,
//!     phases: vec![Phase { at: Span::ZERO, workload: Some(readers) }],
//!     repeat: None,
//!     changes: vec![],
//! };
//! let scenario = Scenario {
//!     seed: 1,
//!     duration: Span::from_secs(10),
//!     engine: EngineConfig::default(),
//!     array: ArrayOptions::bare(MemberOptions::Station(disk), 1 << 30),
//!     volumes: vec![volume],
//!     faults: vec![],
//! };
//! scenario.check()?;
//! let mut answered = Answered(0);
//! World::new(scenario).run(&mut answered)?;
//! assert_eq!(answered.0, 2_000);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod array;
mod cache;
mod check;
pub mod cluster;
mod disk;
mod event_queue;
pub mod iscsi;
mod link;
mod member;
mod member_io;
mod raid;
mod random;
mod scenario;
mod ssd;
mod station;
pub mod swarm;
pub mod transfers;
mod unit;
mod workload;
mod world;

pub use array::{Array, ArrayError, ArrayOptions, Command, Finished, Layout, Utilisation};
pub use cache::CacheOptions;
pub use check::{Breach, Violation};
pub use disk::{Disk, DiskError, DiskKind, DiskOptions, DiskOrder, SeekTimes, Zone};
pub use event_queue::EventQueue;
pub use link::LinkOptions;
pub use member::{Member, MemberError, MemberOptions};
pub use member_io::{MemberIo, Started};
pub use raid::RaidLevel;
pub use random::{Prng, Seed};
pub use scenario::{
    Arrivals, Fault, FaultKind, Locality, Phase, Problem, Scenario, ScenarioError, TraceRequest,
    VolumeScenario, Workload,
};
pub use ssd::{Ssd, SsdError, SsdOptions};
pub use station::{Station, StationOptions};
pub use unit::{DiskOperations, UnitError, UnitOptions};
pub use workload::Trace;
pub use world::{Fingerprint, Observer, Outcome, Spread, World};
