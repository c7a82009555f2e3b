//! The control laws, a room each: Façade's and Maestro's; and the allocator of an array, which is Maestro's
//! law with the total that it shares out.
//!
//! A law is a pure step: from what the sensors saw in the last period, and its own state, to a setting. It
//! knows neither sensors nor actuators, so that the same law runs on a pool that serves disks, in a
//! simulation, and in a test that has nothing but a formula for a plant.
//!
//! Within the crate a file uses files below it only: a face uses its room, and no file of the room uses the
//! face.

mod array_law;
mod facade;
mod law;
mod maestro;
mod total;
mod total_probe;

pub use array_law::ArrayLaw;
pub use facade::{
    DepthFeedback, DepthFeedbackConfig, DepthSetting, Latency, PoolObservation, VolumeObservation,
};
pub use law::Law;
pub use maestro::{
    ApplicationObservation, ApplicationSetting, ArrayObservation, ArraySetting, BoundBy, Case, Fit, Grant,
    Limits, Maestro, PortObservation, Reasoning, program,
};
pub use total::TotalConcurrency;
