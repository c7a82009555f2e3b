//! Experiments, from a readable file to a figure and a verdict; and recorded loads, read from files.
//!
//! An experiment goes through four stages, [`run`] -> [`study`] -> [`plot`] -> [`check`]. Each stage works
//! from the files that the stage before it left. [`report`] puts all experiments on one page.

pub mod ablation;
mod array_file;
pub mod bulk;
pub mod check;
mod claims;
pub mod curve;
pub mod delay;
pub mod experiment;
mod facade;
mod float;
pub mod guarantee;
mod json_lines;
pub mod library;
mod maestro;
pub mod margins;
mod packet_delay;
pub mod plot;
pub mod quantities;
pub mod replay;
pub mod report;
pub mod run;
pub mod study;
pub mod trace;
mod transfers;
pub mod what_if;

pub use array_file::{ArraySpec, ArraySpecError, DiskSpec, LayoutSpec, OrderSpec, RaidSpec, StationSpec};
