//! weir: storage quality of service. The one binary; see `cli.rs` for what it can do.

mod cli;
mod compose;
mod config;
mod demo;
mod failure;
mod load;
mod serve;
mod server;
mod status;
mod table;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    match cli::run(cli::Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
