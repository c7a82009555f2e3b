//! Fuzzing: mutated messages, files and calls for all code that reads outside data.
//!
//! Every parser, and every state machine that takes a peer's messages, is a [`Target`]: a function of a
//! [`Script`]. A script is a list of messages, lines or calls that a peer might send. The target panics if
//! the code that it drives panics, takes too much memory, or accepts what the specification forbids. It also
//! panics if that code answers the same input differently when it comes in other portions.
//!
//! There are two drivers. [`drive()`], which `cargo test` runs, mutates seeds on the stable compiler, for a
//! number of messages. The program `weir-fuzz`, which `make fuzz` builds with the feature `libfuzzer`, lets
//! libFuzzer mutate seeds by the branches that they take.
//!
//! **Why no framework.** Bolero joins both drivers under one macro. But it would bring thirteen crates, and
//! six of these are second versions of crates that weir has. Its driver under `cargo test` does not see
//! branches either. libFuzzer needs one crate and no nightly compiler. Its flag, `-C passes=sancov-module`,
//! is stable.
//!
//! `found/` keeps the scripts that broke a target, in a folder for each target. They are tried first.

mod drive;
mod mutate;
mod script;
mod seen;
pub mod targets;
pub mod transcripts;

pub use drive::{Effort, drive, replay};
pub use mutate::mutate;
pub use script::Script;
pub use seen::Seen;
pub use targets::Target;
