//! Packet delay: the set-up of an experiment before an iSCSI target, and what was measured there.
//!
//! A [`Scenario`] says what is set up: a disk, initiators with their loads, and who is delayed when. A
//! [`Bench`] sets it up and returns what it [`Measured`]. The bench is a model in simulated time, or a kernel
//! with a real target. Both return the same facts, so one evaluation serves both, and their figures stand
//! beside each other in the same tables.

mod measured;
mod scenario;

pub use measured::{Burst, DelayChange, Job, Measured, MeasuredHeader, Sample, Tcp};
pub use scenario::{
    CurveSpec, Direction, DiskSpec, FixedDelay, InitiatorSpec, LinkSpec, Members, Pattern, PidSpec, RunSpec,
    SAMPLE, Scenario, ThrottleSpec,
};

/// A place where a scenario can be run.
pub trait Bench: Sync {
    /// What it is, for the head of a record: `simulated`, or the kernel.
    fn name(&self) -> String;

    /// Whether it is a real kernel.
    fn is_real(&self) -> bool;

    /// Sets up the run of that name, and measures it. In simulated time, the seed gives the run. On a kernel,
    /// it is only the number of the repetition.
    ///
    /// # Errors
    /// If it cannot be set up.
    fn measure(&self, scenario: &Scenario, run: &str, seed: u64) -> anyhow::Result<Measured>;
}
