//! For tests only: naive oracles, with which fast code is compared, and a world to drive an engine in.
//!
//! - [`OracleEdf`]: the scheduler as a list that is searched from end to end;
//! - [`operations`]: random operations on a scheduler, and a harness that does them and keeps an account of
//!   its own of the results;
//! - [`scheduler_conformance!`] and [`gate_conformance!`]: the rules of every scheduler, and those of
//!   schedulers with gates;
//! - [`Rig`]: an engine, a device and clients in virtual time.
//!
//! It is a crate of its own, so that the crates that it serves carry no test doubles.

pub mod conformance;
pub mod operations;
mod oracle;
mod rig;
mod station;

pub use oracle::OracleEdf;
pub use rig::{Arrivals, Load, Rig};
pub use station::Station;
