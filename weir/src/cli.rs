//! The command line: verbs and their arguments.

use std::path::PathBuf;

use clap::{Args, CommandFactory, Parser, Subcommand};
use clap_complete::Shell;
use tracing_subscriber::filter::LevelFilter;

use crate::answer::Form;
use crate::failure::Failure;
use crate::log;
use crate::verbs::demo::DemoArguments;
use crate::verbs::doc::DocArguments;
use crate::verbs::explain::ExplainArguments;
use crate::verbs::grants::GrantsArguments;
use crate::verbs::lab::LabArguments;
use crate::verbs::load::LoadArguments;
use crate::verbs::node::NodeArguments;
use crate::verbs::nodes::NodesArguments;
use crate::verbs::record::RecordArguments;
use crate::verbs::replay::ReplayArguments;
use crate::verbs::set::SetArguments;
use crate::verbs::sim::SimArguments;
use crate::verbs::status::{StatusArguments, TopArguments};
use crate::verbs::throttle::ThrottleArguments;
use crate::verbs::transfers::TransfersArguments;
use crate::verbs::what_if::WhatIfArguments;
use crate::verbs::why::WhyArguments;
use crate::verbs::{
    check, controller, demo, doc, explain, generate, grants, lab, load, node, nodes, objects, record, replay,
    serve, set, sim, status, throttle, transfers, what_if, why,
};

/// Volumes with a guaranteed latency, on storage that is shared.
#[derive(Parser, Debug)]
#[command(version, about)]
pub(crate) struct Cli {
    /// The least level that is logged to standard error: off, error, warn, info, debug, trace [default: info;
    /// of `weir demo` error, as lines would come between its tables]
    #[arg(long, global = true)]
    log: Option<LevelFilter>,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// Check the configuration file of a gateway, a controller, a packet-delay agent or a coordinator of
    /// transfers: print every value in force and where it comes from
    Check {
        /// The configuration file
        file: PathBuf,
        #[command(flatten)]
        form: Form,
    },
    /// Serve the volumes of a configuration file until stopped (SIGTERM); SIGHUP reloads it
    Serve {
        /// The configuration file
        file: PathBuf,
    },
    /// Divide an array among the gateways that serve it, until stopped (SIGTERM); SIGHUP reloads the file
    Controller {
        /// The configuration file of the controller
        file: PathBuf,
    },
    /// Serve as `serve` does, and record every event and decision of each pool, for `weir replay --decisions`
    Record(RecordArguments),
    /// Print what each volume of a running server was promised, and what it gets
    Status(StatusArguments),
    /// Print the table of `weir status` live, every second
    Top(TopArguments),
    /// Change targets, priorities and limits of volumes and pools that are served, all or none
    Set(SetArguments),
    /// Print what the control law decided about a volume in the last control intervals, and why
    Explain(ExplainArguments),
    /// Print where the time of a volume's requests went: limits, waiting and on whose behalf, the device
    Why(WhyArguments),
    /// Guard the readers of this host's iSCSI targets: delay the packets of initiators that write too much
    Throttle(ThrottleArguments),
    /// Store a file on storage nodes, at a rate: wait until a node can serve it, and write it there
    Put(objects::PutArguments),
    /// Read an object from the node that can serve it now
    Get(objects::GetArguments),
    /// Print the objects that are stored
    Ls(objects::ListArguments),
    /// Print what is known of an object, and where its replicas are
    Stat(objects::StatArguments),
    /// Remove objects from all nodes
    Rm(objects::RemoveArguments),
    /// Read each replica of an object, and compare it with what was stored
    Verify(objects::RepairArguments),
    /// Verify an object, and write the replicas anew that are bad or missing
    Repair(objects::RepairArguments),
    /// Make an object of a file that a node has already
    Import(objects::ImportArguments),
    /// Serve a coordinator of bulk transfers, or list, show and cancel its transfers
    Transfers(TransfersArguments),
    /// Print the storage nodes, what they do and what they can do; or measure one
    Nodes(NodesArguments),
    /// Serve what a storage node's host sees of its block devices, for the coordinator of transfers
    Node(NodeArguments),
    /// Load any NBD server, in an open or a closed loop, and print rates and latencies
    Load(LoadArguments),
    /// Replay a recorded load on a simulated array or a server, or the decisions that `weir record` wrote
    Replay(Replayed),
    /// Print the bounds that each volume was granted over time, from recordings of `weir record`
    Grants(GrantsArguments),
    /// Say whether the promises of a proposed configuration would hold under recorded loads
    #[command(name = "whatif")]
    WhatIf(WhatIfArguments),
    /// Run the papers' experiments again in simulated time, and check their claims
    Lab(LabArguments),
    /// Run the engine that serves real disks on simulated storage
    Sim(SimArguments),
    /// Print a page of the manual, or the list of its pages
    Doc(DocArguments),
    /// Print the completions of weir's arguments for a shell
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Write the manual pages of all verbs (section 1) to a directory, for a package
    Man {
        /// The directory; weir makes it if there is none
        directory: PathBuf,
    },
    /// Show what weir is for, on this machine's disk: a database beside a backup, without control and with it
    Demo(DemoArguments),
}

/// The kind of replay.
#[derive(Args, Debug)]
struct Replayed {
    /// A recording of `weir record`, or its directory. The engine gets the recorded events again. If it
    /// decides differently this time, weir prints the first difference, and the exit status is 1
    #[arg(long, value_name = "PATH", conflicts_with = "ReplayArguments")]
    decisions: Option<PathBuf>,
    #[command(flatten)]
    form: Form,
    #[command(flatten)]
    load: Option<ReplayArguments>,
}

impl Cli {
    /// What is logged. The demonstration prints tables, and a line between them would only be in the way.
    fn level(&self) -> LevelFilter {
        let usual = if matches!(self.verb, Verb::Demo(_)) { LevelFilter::ERROR } else { LevelFilter::INFO };
        self.log.unwrap_or(usual)
    }
}

/// Runs the verb of the command line.
pub(crate) fn run(cli: Cli) -> Result<(), Failure> {
    let _log = log::start(cli.level())?;
    match cli.verb {
        Verb::Check { file, form } => check::check(&file, form),
        Verb::Serve { file } => on_runtime(serve::serve(&file, None)),
        Verb::Controller { file } => on_runtime(controller::controller(&file)),
        Verb::Record(arguments) => on_runtime(record::record(arguments)),
        Verb::Status(arguments) => on_runtime(status::status(arguments)),
        Verb::Set(arguments) => on_runtime(set::set(arguments)),
        Verb::Explain(arguments) => on_runtime(explain::explain(arguments)),
        Verb::Why(arguments) => on_runtime(why::why(arguments)),
        Verb::Top(arguments) => on_runtime(status::top(arguments)),
        Verb::Replay(Replayed { decisions: Some(path), form, .. }) => {
            replay::decisions::replay_decisions(&path, form)
        }
        Verb::Replay(Replayed { load, form, .. }) => on_runtime(replay::replay(
            load.expect("clap asks for a trace where there are no decisions"),
            form,
        )),
        Verb::Grants(arguments) => grants::grants(&arguments),
        Verb::WhatIf(arguments) => what_if::what_if(&arguments),
        Verb::Lab(arguments) => lab::lab(arguments),
        Verb::Throttle(arguments) => on_runtime(throttle::throttle(arguments)),
        Verb::Put(arguments) => on_runtime(objects::put(arguments)),
        Verb::Get(arguments) => on_runtime(objects::get(arguments)),
        Verb::Ls(arguments) => on_runtime(objects::list(arguments)),
        Verb::Stat(arguments) => on_runtime(objects::stat(arguments)),
        Verb::Rm(arguments) => on_runtime(objects::remove(arguments)),
        Verb::Verify(arguments) => on_runtime(objects::verify(arguments)),
        Verb::Repair(arguments) => on_runtime(objects::repair(arguments)),
        Verb::Import(arguments) => on_runtime(objects::import(arguments)),
        Verb::Transfers(arguments) => on_runtime(transfers::transfers(arguments)),
        Verb::Nodes(arguments) => on_runtime(nodes::nodes(arguments)),
        Verb::Node(arguments) => on_runtime(node::node(arguments)),
        Verb::Load(arguments) => on_runtime(load::load(arguments)),
        Verb::Sim(arguments) => sim::sim(&arguments),
        Verb::Doc(arguments) => doc::doc(&arguments),
        Verb::Completions { shell } => generate::completions(Cli::command(), shell),
        Verb::Man { directory } => generate::man(Cli::command(), &directory),
        Verb::Demo(arguments) => on_runtime(demo::demo(arguments)),
    }
}

/// Runs an async verb. One thread is enough for it, because requests have threads of their own.
fn on_runtime(verb: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let done = tokio::task::LocalSet::new().block_on(&runtime, verb);
    // Does not wait for a call that blocks for ever.
    runtime.shutdown_background();
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_of_the_log_comes_between_the_tables_of_the_demonstration_unless_it_is_asked_for() {
        let level = |words: &str| Cli::try_parse_from(words.split(' ')).map(|cli| cli.level()).ok();
        assert_eq!(level("weir demo"), Some(LevelFilter::ERROR));
        assert_eq!(level("weir demo --log info"), Some(LevelFilter::INFO));
        assert_eq!(level("weir status"), Some(LevelFilter::INFO));
    }
}
