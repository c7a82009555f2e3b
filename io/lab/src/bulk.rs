//! Bulk transfers: the set-up of an experiment with storage nodes, and what became of its transfers.
//!
//! A [`BulkScenario`] says which nodes there are, which transfers are asked for, and which policy places them
//! in each run. A [`Bench`] runs it, in simulated time or on real nodes. A [`BulkRecord`] is what it leaves,
//! and one evaluation serves both.

mod record;
mod scenario;
mod simulated;

pub use record::{BulkRecord, BulkTransfer};
pub use scenario::{BulkRunSpec, BulkScenario, ExternalSpec, HostSpec, NodeSpec, RequestsSpec};

/// A place where transfers can be run.
pub trait Bench: Sync {
    /// What it is, for the head of a record: `simulated`, or the nodes.
    fn name(&self) -> String;

    /// Runs the run of that name. In simulated time, the seed gives the run. On real nodes, it gives only the
    /// shares of the transfers and the sway of the nodes.
    ///
    /// # Errors
    /// If it cannot be set up.
    fn transfer(&self, scenario: &BulkScenario, run: &str, seed: u64) -> anyhow::Result<BulkRecord>;
}
