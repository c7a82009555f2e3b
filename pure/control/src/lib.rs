//! The control laws, a room each: Façade's, Maestro's and the one-sided PID of packet delay. `ArrayLaw`, the
//! allocator of an array, is Maestro's law together with the total that it shares out.
//!
//! A law is a pure step. It takes what the sensors saw in the last period, and its own state, and returns a
//! setting. It knows neither sensors nor actuators. So the same law runs on a pool that serves disks, in a
//! simulation, and in a test whose plant is a formula.
//!
//! Within the crate, a file uses only files below it: the file `x.rs` uses the files of the folder `x/`, and
//! none of these uses `x.rs`.

mod array_law;
mod completions;
mod facade;
mod law;
mod maestro;
mod pid;
mod pid_tuning;
mod promise;
mod total;
mod total_probe;

pub use array_law::ArrayLaw;
pub use completions::{Completed, Completion, Completions, Constant};
pub use facade::{
    DepthFeedback, DepthFeedbackConfig, DepthSetting, Latency, PoolObservation, VolumeObservation,
};
pub use law::Law;
pub use maestro::{
    ApplicationObservation, ApplicationSetting, ArrayObservation, ArraySetting, BoundBy, Case, Fit, Grant,
    Limits, Maestro, PortObservation, Reasoning, program,
};
pub use pid::{OneSidedPid, OneSidedPidConfig, PidProblem, ReadWait, ThrottleDelay, WaitObservation};
pub use pid_tuning::{NoPlant, Plant, Predicted, StepResponse};
pub use promise::{
    Allowance, Because, PromiseObservation, PromisedObservation, Promises, Shortfall, Standing, Standings,
    Strain, WindowSeen, WorstOff,
};
pub use total::TotalConcurrency;
