//! The command line: verbs and their arguments.

use std::io::{IsTerminal, Write};
use std::path::PathBuf;

use clap::{Parser, Subcommand};
use tracing_subscriber::filter::LevelFilter;

use crate::config::{Config, check_report};
use crate::demo::DemoArguments;
use crate::failure::Failure;
use crate::load::LoadArguments;
use crate::{demo, load, serve, status};

/// Volumes with a guaranteed latency, on storage that is shared.
#[derive(Parser, Debug)]
#[command(version, about)]
pub(crate) struct Cli {
    /// What is logged to standard error: off, error, warn, info, debug, trace
    #[arg(long, global = true, default_value = "info")]
    log: LevelFilter,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// Print every value of a configuration file, and where it comes from
    Check {
        /// The configuration file
        file: PathBuf,
    },
    /// Serve the volumes of a configuration file until stopped (SIGTERM); SIGHUP reloads it
    Serve {
        /// The configuration file
        file: PathBuf,
    },
    /// Print what a running server's volumes were promised and get
    Status {
        /// Its configuration file, or the URL of its metrics address
        #[arg(default_value = "http://127.0.0.1:9810")]
        source: String,
    },
    /// The same, live, every second
    Top {
        /// Its configuration file, or the URL of its metrics address
        #[arg(default_value = "http://127.0.0.1:9810")]
        source: String,
        /// Stop after so many tables
        #[arg(long)]
        times: Option<u64>,
    },
    /// Put a load on any NBD server, open or closed loop, and print what it got
    Load(LoadArguments),
    /// Show what weir is for, on this machine's disk: a database beside a backup, without control and with it
    Demo(DemoArguments),
}

/// Does what the command line says.
pub(crate) fn run(cli: Cli) -> Result<(), Failure> {
    tracing_subscriber::fmt()
        .with_max_level(cli.log)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .init();
    match cli.verb {
        Verb::Check { file } => {
            let config = Config::load(&file).map_err(Failure::usage)?;
            Ok(write!(std::io::stdout(), "{}", check_report(&config))?)
        }
        Verb::Serve { file } => on_runtime(serve::serve(&file)),
        Verb::Status { source } => status::status(&source),
        Verb::Top { source, times } => on_runtime(status::top(&source, times)),
        Verb::Load(arguments) => on_runtime(load::load(arguments)),
        Verb::Demo(arguments) => on_runtime(demo::until_interrupted(arguments)),
    }
}

/// Runs a verb that waits. One thread is enough for it: requests have threads of their own.
fn on_runtime(verb: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    tokio::task::LocalSet::new().block_on(&runtime, verb)
}
