//! Bulk transfers: the set-up of an experiment with storage nodes, and what became of its transfers.
//!
//! A [`BulkScenario`] says which nodes there are, which transfers are asked for, and which policy places them
//! in each run. [`simulate`] runs it in simulated time; a [`BulkRecord`] is what it leaves.

mod record;
mod scenario;
mod simulated;

pub use record::{BulkRecord, BulkTransfer};
pub use scenario::{BulkRunSpec, BulkScenario, ExternalSpec, HostSpec, NodeSpec, RequestsSpec};
pub(crate) use simulated::simulate;
