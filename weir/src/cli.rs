//! The command line: verbs and their arguments.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use tracing_subscriber::filter::LevelFilter;

use crate::failure::Failure;
use crate::verbs::demo::DemoArguments;
use crate::verbs::explain::ExplainArguments;
use crate::verbs::grants::GrantsArguments;
use crate::verbs::lab::LabArguments;
use crate::verbs::load::LoadArguments;
use crate::verbs::record::RecordArguments;
use crate::verbs::replay::ReplayArguments;
use crate::verbs::set::SetArguments;
use crate::verbs::sim::SimArguments;
use crate::verbs::what_if::WhatIfArguments;
use crate::verbs::{
    check, controller, demo, explain, grants, lab, load, record, replay, serve, set, sim, status, what_if,
};
use crate::{ask, log};

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
    /// Print every value of a configuration file, of a gateway or a controller, and where it comes from
    Check {
        /// The configuration file
        file: PathBuf,
    },
    /// Serve the volumes of a configuration file until stopped (SIGTERM); SIGHUP reloads it
    Serve {
        /// The configuration file
        file: PathBuf,
    },
    /// Share an array out among the gateways that serve it, until stopped (SIGTERM); SIGHUP reloads the file
    Controller {
        /// The configuration file of the controller
        file: PathBuf,
    },
    /// Serve as `serve` does, and record what every pool was told and decided, to be replayed
    Record(RecordArguments),
    /// Print what a running server's volumes were promised and get
    Status {
        /// Its configuration file, the URL of its metrics address, or its control socket
        #[arg(default_value = ask::USUAL_METRICS)]
        source: String,
    },
    /// The same, live, every second
    Top {
        /// Its configuration file, the URL of its metrics address, or its control socket
        #[arg(default_value = ask::USUAL_METRICS)]
        source: String,
        /// Stop after so many tables
        #[arg(long)]
        times: Option<u64>,
    },
    /// Change a target, a priority or a limit of what is served, without a reload
    Set(SetArguments),
    /// Print what was decided about a volume in the last control intervals, and why
    Explain(ExplainArguments),
    /// Put a load on any NBD server, open or closed loop, and print what it got
    Load(LoadArguments),
    /// Replay a recorded load on a pool with a simulated array, or the decisions that `weir record` wrote
    Replay(Replayed),
    /// Print what volumes were let do, and when, by the recordings of `weir record`
    Grants(GrantsArguments),
    /// Would the promises of a proposed configuration hold under recorded loads?
    #[command(name = "whatif")]
    WhatIf(WhatIfArguments),
    /// Run the papers' experiments again in simulated time, and check their claims
    Lab(LabArguments),
    /// Simulate storage, under the engine that serves real disks
    Sim(SimArguments),
    /// Show what weir is for, on this machine's disk: a database beside a backup, without control and with it
    Demo(DemoArguments),
}

/// What is replayed.
#[derive(Args, Debug)]
struct Replayed {
    /// Replay these decisions, nothing else: a recording of `weir record`, or its directory. The engine is told what it was
    /// told then; at the first decision that differs, the exit status is 1
    #[arg(long, value_name = "PATH", exclusive = true)]
    decisions: Option<PathBuf>,
    #[command(flatten)]
    load: Option<ReplayArguments>,
}

/// Does what the command line says.
pub(crate) fn run(cli: Cli) -> Result<(), Failure> {
    let _log = log::start(cli.log)?;
    match cli.verb {
        Verb::Check { file } => check::check(&file),
        Verb::Serve { file } => on_runtime(serve::serve(&file, None)),
        Verb::Controller { file } => on_runtime(controller::controller(&file)),
        Verb::Record(arguments) => on_runtime(record::record(arguments)),
        Verb::Status { source } => on_runtime(status::status(&source)),
        Verb::Set(arguments) => on_runtime(set::set(arguments)),
        Verb::Explain(arguments) => on_runtime(explain::explain(arguments)),
        Verb::Top { source, times } => on_runtime(status::top(&source, times)),
        Verb::Replay(Replayed { decisions: Some(path), .. }) => replay::decisions::replay_decisions(&path),
        Verb::Replay(Replayed { load, .. }) => {
            on_runtime(replay::replay(load.expect("clap asks for a trace where there are no decisions")))
        }
        Verb::Grants(arguments) => grants::grants(&arguments),
        Verb::WhatIf(arguments) => what_if::what_if(&arguments),
        Verb::Lab(arguments) => lab::lab(arguments),
        Verb::Load(arguments) => on_runtime(load::load(arguments)),
        Verb::Sim(arguments) => sim::sim(&arguments),
        Verb::Demo(arguments) => on_runtime(demo::until_interrupted(arguments)),
    }
}

/// Runs a verb that waits. One thread is enough for it: requests have threads of their own.
fn on_runtime(verb: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let done = tokio::task::LocalSet::new().block_on(&runtime, verb);
    // A call that blocks for ever is not waited for.
    runtime.shutdown_background();
    done
}
