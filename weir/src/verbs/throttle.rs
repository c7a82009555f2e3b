//! `weir throttle`: guards the readers of this host's iSCSI targets by delaying the packets of heavy writers.

use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use weir_agent::actuator::Actuator;
use weir_agent::guard;
use weir_api::STATUS_PATH;
use weir_model::Span;
use weir_status::ThrottleStatus;

use crate::ask;
use crate::config::{Source, threshold_argument, units};
use crate::failure::Failure;
use crate::terminal::printable;

mod run;
mod tune;

use tune::TuneArguments;

/// What to guard, or what to ask a running agent.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct ThrottleArguments {
    /// The configuration file of the agent; SIGHUP reloads it
    #[arg(required_unless_present = "target_latency", conflicts_with = "target_latency")]
    file: Option<PathBuf>,
    /// How long the reads of a resource may wait, such as 15ms; everything else is found
    #[arg(long, value_name = "TIME", value_parser = threshold_argument)]
    target_latency: Option<Span>,
    /// Say what would be delayed, and change nothing
    #[arg(long)]
    dry_run: bool,
    #[command(subcommand)]
    ask: Option<Ask>,
}

#[derive(Subcommand, Debug)]
enum Ask {
    /// Print the resources that a running agent guards, and whom it delays
    Status {
        /// The agent: its configuration file, or the URL of its metrics address
        #[arg(default_value = ask::USUAL_THROTTLE)]
        source: String,
    },
    /// Print what the agent measured and decided at a resource in the last two seconds, and whom it delays
    Explain {
        /// The name of the resource
        resource: String,
        /// The agent: its configuration file, or the URL of its metrics address
        #[arg(default_value = ask::USUAL_THROTTLE)]
        source: String,
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
        (Some(Ask::Status { source }), ..) => status(&source).await,
        (Some(Ask::Explain { resource, source }), ..) => explain(&resource, &source).await,
        (Some(Ask::Tune(arguments)), ..) => tune::tune(&arguments),
        (Some(Ask::Remove), ..) => remove(),
        (Some(Ask::Guard { agent }), ..) => watch(agent),
        (None, _, Some(threshold)) => {
            let text = format!("[throttle]\nthreshold = \"{}\"\n", units::show_span(threshold));
            run::run(|| Ok(Source::of_arguments(text)), dry_run).await
        }
        (None, file, None) => {
            let file = file.unwrap_or_default(); // required without a target latency
            run::run(|| Source::read(&file), dry_run).await
        }
    }
}

async fn status(source: &str) -> Result<(), Failure> {
    let status: ThrottleStatus = ask::get(&ask::to_ask(source)?, STATUS_PATH).await?;
    Ok(writeln!(io::stdout(), "{}", printable(&weir_table::throttle(&status)))?)
}

async fn explain(resource: &str, source: &str) -> Result<(), Failure> {
    let status: ThrottleStatus = ask::get(&ask::to_ask(source)?, STATUS_PATH).await?;
    let names = || {
        let names: Vec<_> = status.resources.iter().map(|resource| resource.name.as_str()).collect();
        if names.is_empty() { "nothing, as there is no resource".to_owned() } else { names.join(", ") }
    };
    let found = status.resources.iter().find(|found| found.name == resource);
    let found = found.ok_or_else(|| {
        Failure::usage(printable(&format!("resource {resource}: not guarded here; accepted: {}", names())))
    })?;
    Ok(writeln!(io::stdout(), "{}", printable(&weir_table::explained_resource(&status, found)))?)
}

fn remove() -> Result<(), Failure> {
    let removed = Actuator::open().and_then(|mut actuator| actuator.remove());
    removed.map_err(|error| Failure::usage(format!("throttle remove: {error}")))?;
    Ok(writeln!(io::stdout(), "weir: no delay and no queue of an agent is left on this host")?)
}

fn watch(agent: u32) -> Result<(), Failure> {
    let ending = guard::run(io::stdin().as_fd(), agent)
        .map_err(|error| Failure::usage(format!("the agent's guard: {error}")))?;
    if ending == guard::Ending::AgentSilent {
        eprintln!(
            "weir: the agent said nothing for {} s: it was killed, and all delays are removed",
            guard::SILENCE.as_secs()
        );
    }
    Ok(())
}
