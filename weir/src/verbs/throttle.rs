//! `weir throttle`: guards the readers of this host's iSCSI targets by delaying the packets of heavy writers.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use weir_agent::actuator::Actuator;
use weir_agent::guard;
use weir_model::Span;
use weir_status::ThrottleStatus;

use crate::answer::Form;
use crate::config::{Source, threshold_argument, units};
use crate::failure::Failure;
use crate::named::{ServerArgument, Usual};
use crate::say;
use crate::terminal::{self, printable};
use crate::verbs::status::Answer;

mod run;
mod tune;

use tune::TuneArguments;

/// What to guard, or what to ask a running agent.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct ThrottleArguments {
    /// The configuration file of the agent; SIGHUP reloads it
    #[arg(conflicts_with = "target_latency")]
    file: Option<PathBuf>,
    /// How long the reads of a resource may wait, such as 15ms; everything else is found
    #[arg(long, value_name = "TIME", value_parser = threshold_argument, allow_hyphen_values = true)]
    target_latency: Option<Span>,
    /// Say what would be delayed, and change nothing
    #[arg(long)]
    dry_run: bool,
    #[command(subcommand)]
    ask: Option<Ask>,
}

/// The refusal of a start that has no threshold.
const NOTHING_TO_GUARD: &str = "throttle: found neither a file nor a threshold; accepted: --target-latency TIME, such as 15ms, or the \
     configuration file of the agent (weir throttle --help)";

#[derive(Subcommand, Debug)]
enum Ask {
    /// Print the resources that a running agent guards, and whom it delays
    Status {
        #[command(flatten)]
        server: ServerArgument,
        #[command(flatten)]
        form: Form,
    },
    /// Print what the agent measured and decided at a resource in the last two seconds, and whom it delays
    Explain {
        /// The name of the resource
        resource: String,
        #[command(flatten)]
        server: ServerArgument,
        #[command(flatten)]
        form: Form,
    },
    /// Record how the reads of a resource answer a delay of its writers, and propose gains for the law
    Tune(TuneArguments),
    /// Remove all delays and queues that an agent left on this host
    Remove,
    /// Watch the agent that started this process, and remove its delays when it ends or hangs
    #[command(hide = true)]
    Guard {
        /// The process number of the agent
        agent: u32,
    },
}

/// Delays, or asks.
///
/// # Errors
/// If the agent cannot work here, or there is none that answers.
pub(crate) async fn throttle(arguments: ThrottleArguments) -> Result<(), Failure> {
    let ThrottleArguments { file, target_latency, dry_run, ask } = arguments;
    match (ask, file, target_latency) {
        (Some(Ask::Status { server, form }), ..) => status(&server, form).await,
        (Some(Ask::Explain { resource, server, form }), ..) => explain(&resource, &server, form).await,
        (Some(Ask::Tune(arguments)), ..) => tune::tune(&arguments),
        (Some(Ask::Remove), ..) => remove(),
        (Some(Ask::Guard { agent }), ..) => watch(agent),
        (None, _, Some(threshold)) => {
            let text = format!("[throttle]\nthreshold = \"{}\"\n", units::show_span(threshold));
            run::run(|| Ok(Source::of_arguments(text)), dry_run).await
        }
        (None, Some(file), None) => run::run(|| Source::read(&file), dry_run).await,
        (None, None, None) => Err(Failure::usage(NOTHING_TO_GUARD)),
    }
}

async fn status(server: &ServerArgument, form: Form) -> Result<(), Failure> {
    form.print(&asked(server).await?, |status| weir_table::throttle(status, terminal::width()))
}

/// What an agent reports about itself.
async fn asked(server: &ServerArgument) -> Result<ThrottleStatus, Failure> {
    let server = server.to_ask(Usual::AGENT)?;
    match Answer::of(&server).await? {
        Answer::Throttle(status) => Ok(status),
        other => {
            Err(Failure::usage(format!("{server}: found {}; accepted: a packet-delay agent", other.kind())))
        }
    }
}

async fn explain(resource: &str, server: &ServerArgument, form: Form) -> Result<(), Failure> {
    let status = asked(server).await?;
    let names = || {
        let names: Vec<_> = status.resources.iter().map(|resource| resource.name.as_str()).collect();
        if names.is_empty() { "nothing, as there is no resource".to_owned() } else { names.join(", ") }
    };
    let found = status.resources.iter().find(|found| found.name == resource);
    let found = found.ok_or_else(|| {
        Failure::usage(printable(&format!("resource {resource}: not guarded here; accepted: {}", names())))
    })?;
    form.print(found, |found| weir_table::explained_resource(&status, found, terminal::width()))
}

fn remove() -> Result<(), Failure> {
    let refused = |error| Failure::usage(format!("throttle remove: {error}"));
    let mut actuator = Actuator::open().map_err(refused)?;
    actuator.remove().map_err(refused)?;
    Ok(writeln!(say::out(), "weir: {}", said_of_removed(actuator.removed()))?)
}

/// What to tell of the interfaces that had an agent's root queue. A table never outlives its agent.
fn said_of_removed(interfaces: &BTreeSet<String>) -> String {
    if interfaces.is_empty() {
        return "nothing to remove: no interface of this host has an agent's root queue".to_owned();
    }
    let names: Vec<_> = interfaces.iter().map(String::as_str).collect();
    format!("removed an agent's root queue, with all delays, from: {}", names.join(", "))
}

fn watch(agent: u32) -> Result<(), Failure> {
    let ending = guard::run(io::stdin().as_fd(), agent)
        .map_err(|error| Failure::usage(format!("the agent's guard: {error}")))?;
    if ending == guard::Ending::AgentSilent {
        say::on_stderr(format_args!(
            "weir: the agent said nothing for {} s: it was killed, and all delays are removed",
            guard::SILENCE.as_secs()
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_removal_says_what_it_has_removed_or_that_there_was_nothing() {
        let removed =
            |names: &[&str]| said_of_removed(&names.iter().map(|name| (*name).to_owned()).collect());
        assert_eq!(
            removed(&["eth1", "eth0"]),
            "removed an agent's root queue, with all delays, from: eth0, eth1"
        );
        assert_eq!(removed(&[]), "nothing to remove: no interface of this host has an agent's root queue");
    }
}
