//! weir: storage quality of service. The one binary; see `cli.rs` for what it can do.
//!
//! The program is this library and a `main` that calls it, so that a fuzzer can try the code that reads an
//! operator's text. [`fuzzing`] is the only part that another crate may call.

mod ask;
mod cli;
mod compose;
mod config;
mod daemon;
mod descriptors;
mod failure;
#[doc(hidden)]
pub mod fuzzing;
mod lease_link;
mod log;
mod server;
mod simulated_pool;
mod terminal;
mod traces;
mod verbs;

use std::process::ExitCode;

use clap::Parser;

/// Runs the command line, and returns the exit code.
pub fn main() -> ExitCode {
    let cli = match cli::Cli::try_parse() {
        Ok(cli) => cli,
        Err(answer) => {
            // Help and version are answers too; they go to standard output, and are no failure.
            let _ = answer.print();
            return if answer.use_stderr() { ExitCode::from(failure::EX_USAGE) } else { ExitCode::SUCCESS };
        }
    };
    match cli::run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
