//! weir: storage quality of service. The one binary; see `cli.rs` for what it can do.
//!
//! The program is this library and a `main` that calls it, so that a fuzzer can try the code that reads an
//! operator's text. [`fuzzing`] is the only part that another crate may call.

#![warn(clippy::print_stdout, clippy::print_stderr)] // `say.rs` has the reason

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
mod say;
mod server;
mod simulated_pool;
mod terminal;
mod traces;
mod transfers;
mod verbs;

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;

use failure::Failure;

/// Runs the command line, and returns the exit code.
pub fn main() -> ExitCode {
    let cli = match cli::Cli::try_parse() {
        Ok(cli) => cli,
        Err(answer) => {
            // Help and version are answers too; they go to standard output, and are no failure.
            let printed = answer.print();
            if answer.use_stderr() {
                return ExitCode::from(failure::EX_USAGE);
            }
            return exit_code(printed.map_err(|error| say::unwritten(error).into()));
        }
    };
    let done = cli::run(cli);
    // What has no line end was not written yet.
    exit_code(done.and_then(|()| Ok(say::out().flush()?)))
}

fn exit_code(done: Result<(), Failure>) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
