//! For tests only: what is obviously right, to compare what is fast with, and a world to drive an engine in.
//!
//! - [`OracleEdf`]: the scheduler as a list that is searched from end to end;
//! - [`operations`]: what can be done to a scheduler, drawn at random, and a harness that does it and keeps
//!   its own account of what must come out;
//! - [`scheduler_conformance!`] and [`gate_conformance!`]: what every scheduler must obey, and what those
//!   with gates must;
//! - [`Rig`]: an engine, a device and clients in virtual time.
//!
//! It lies beside the crates that it serves and not in them, so that they carry no test doubles.

pub mod conformance;
pub mod operations;
mod oracle;
mod rig;
mod station;

pub use oracle::OracleEdf;
pub use rig::{Arrivals, Load, Rig};
pub use station::Station;
