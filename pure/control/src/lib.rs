//! The control laws, a file each.
//!
//! A law is a pure step: from what the sensors saw in the last period, and its own state, to a setting. It knows
//! neither sensors nor actuators, so that the same law runs on a pool that serves disks, in a simulation, and in
//! a test that has nothing but a formula for a plant.

mod arbiter;
mod depth_feedback;
mod hindered;
mod interval;
mod maestro;
mod observation;
mod port_allocator;
pub mod program;
mod rate_split;
mod requirement;
mod shares;
mod slope;
mod total_probe;
mod usage;

pub use depth_feedback::{
    DepthFeedback, DepthFeedbackConfig, DepthSetting, Latency, PoolObservation, VolumeObservation,
};

pub use maestro::{ApplicationSetting, ArraySetting, BoundBy, Case, Fit, Grant, Maestro, Reasoning};
pub use observation::{ApplicationObservation, ArrayObservation, Limits, PortObservation};
pub use total_probe::{ProbeObservation, TotalProbe};

use weir_model::Instant;

/// A law: one step for each control period.
pub trait Controller {
    /// What it has to know about the last period.
    type Observation;
    /// What it decides for the next.
    type Setting;

    /// The setting after `seen`. `now` does not go back from one call to the next.
    fn step(&mut self, now: Instant, seen: &Self::Observation) -> Self::Setting;
}
