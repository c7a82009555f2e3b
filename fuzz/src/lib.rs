//! What outside data can do, tried by machine.
//!
//! Every parser, and every state machine that is told what a peer says, is a [`Target`]: a function of a
//! [`Script`], the messages, lines or calls that somebody might send. It panics if what it drives panics,
//! takes too much, accepts what the specification forbids, or says something else when it is asked the same
//! in another way.
//!
//! Two things find scripts. [`drive()`] mutates seeds on the stable compiler, for a number of messages, and
//! is what `cargo test` runs. The program `weir-fuzz`, which `make fuzz` builds with the feature `libfuzzer`,
//! lets libFuzzer mutate them by the branches that they take.
//!
//! **Why no framework.** Bolero joins both under one macro, and would bring thirteen crates of which six are
//! second versions of ones that are here; what it runs under `cargo test` does not see branches either.
//! libFuzzer needs one crate and no nightly compiler: what it asks of rustc, `-C passes=sancov-module`, is
//! stable.
//!
//! What was found lies in `found/`, a folder for each target, and is tried first.

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
