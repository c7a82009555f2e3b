//! `weir replay TRACE --pool FILE`: a recorded load on a pool with a simulated array, in simulated or in real
//! time.
//!
//! The two replays are made for comparison: the same requests, engine and array, and the same figures in the
//! same table. In simulated time an hour takes seconds, and only the array and the engine take any time. In
//! real time the requests go through sockets and threads to a gateway and its array. The array then answers
//! by the clock.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use weir_lab::replay::{Outcome, Recording, Survey, simulate};
use weir_lab::trace::Format;
use weir_load::Target;
use weir_model::Span;

use crate::answer::Form;
use crate::config::Config;
use crate::failure::Failure;
use crate::simulated_pool::{SimulatedPool, simulated_pool};
use crate::traces::{self, print_remarks, replay_bar};

pub(crate) mod decisions;
mod real;
mod report;

use report::Report;

/// The recorded load, and the pool for it.
#[derive(Args, Debug)]
pub(crate) struct ReplayArguments {
    /// The trace, compressed with gzip or zstd or not: CSV with t_us,op,offset,length; MSR Cambridge CSV; SPC
    /// ASCII; blkparse text; fio iolog version 2 or 3
    trace: PathBuf,
    /// A configuration file, with the volume on a simulated array, unless there is a --server: backend =
    /// "array:NAME:/path"
    #[arg(long, value_name = "FILE")]
    pool: PathBuf,
    /// The volume that is loaded [default: the only one]
    #[arg(long, value_name = "NAME")]
    volume: Option<String>,
    /// How many times faster than recorded
    #[arg(long, default_value = "1x", value_parser = traces::speed)]
    speed: f64,
    /// In simulated time, or in real time through a gateway of its own. That gateway's volumes are empty at
    /// first, and gone afterwards
    #[arg(long, value_enum, default_value = "sim")]
    against: Against,
    /// Replay in real time through this server instead, which serves FILE: nbd://HOST:PORT/VOLUME or
    /// nbd+unix:///VOLUME?socket=PATH. The volume is overwritten
    #[arg(long, value_name = "URI", conflicts_with = "volume")]
    server: Option<Target>,
    /// The format of the trace: csv, msr, spc, blkparse, iolog [default: recognised]
    #[arg(long, value_parser = traces::format)]
    format: Option<Format>,
    /// End the replay after this time [default: with the trace]
    #[arg(long, value_parser = traces::duration)]
    duration: Option<Span>,
    /// Count and list lines that cannot be read, instead of ending at the first
    #[arg(long)]
    skip_broken: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
enum Against {
    /// Simulated time
    Sim,
    /// Real time
    Real,
}

/// A replay that can begin.
struct Plan {
    recording: Recording,
    survey: Survey,
    config: Config,
    volume: String,
    /// Bytes of the volume.
    size: u64,
}

/// Runs the replay.
///
/// # Errors
/// If the trace or the configuration is wrong, or the gateway fails.
pub(crate) async fn replay(arguments: ReplayArguments, form: Form) -> Result<(), Failure> {
    let plan = plan(&arguments)?;
    let (against, outcome) = match &arguments.server {
        Some(server) => ("server", real::against_server(&plan, server, &arguments.pool).await?),
        None if arguments.against == Against::Real => ("real", real::against_own_gateway(&plan).await?),
        None => ("sim", simulated(&plan)?),
    };
    print_remarks(&plan.recording.path, &plan.survey.remarks);
    form.print(&Report::new(&plan, against, &outcome), ToString::to_string)
}

fn plan(arguments: &ReplayArguments) -> Result<Plan, Failure> {
    let file = &arguments.pool;
    let config = Config::load(file).map_err(Failure::usage)?;
    let volume = match &arguments.server {
        Some(server) => Some(server.export().to_owned()),
        None => arguments.volume.clone(),
    };
    let volume = chosen(&config, volume).map_err(|failure| failure.in_file(file))?;
    if arguments.server.is_none() {
        // An error here shows before the trace is read, which may take long.
        simulated_pool(&config, &config.volumes[&volume].pool.value)
            .map_err(|failure| failure.in_file(file))?;
    }
    let Some(size) = config.volumes[&volume].size.value else {
        let message =
            format!("volume.{volume}.size: found nothing; accepted: the size to fold the trace into");
        return Err(Failure::usage(message).in_file(file));
    };
    let size = size.as_u64();
    let recording = Recording {
        path: arguments.trace.clone(),
        format: arguments.format,
        skip_broken: arguments.skip_broken,
        speed: arguments.speed,
        duration: arguments.duration,
    };
    let survey = traces::survey(&recording)?;
    Ok(Plan { recording, survey, config, volume, size })
}

fn chosen(config: &Config, name: Option<String>) -> Result<String, Failure> {
    let names = || config.volumes.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
    match name {
        Some(name) if config.volumes.contains_key(&name) => Ok(name),
        Some(name) => Err(Failure::usage(format!("found no volume {name:?}; accepted: one of {}", names()))),
        None if config.volumes.len() == 1 => Ok(names()),
        None => {
            Err(Failure::usage(format!("found several volumes; accepted: --volume with one of {}", names())))
        }
    }
}

fn simulated(plan: &Plan) -> Result<Outcome, Failure> {
    let pool = &plan.config.volumes[&plan.volume].pool.value;
    let SimulatedPool { scenario, .. } = simulated_pool(&plan.config, pool)?;
    let place = scenario.volumes.iter().position(|volume| volume.name == plan.volume);
    let place = place.expect("the volume is in its pool");
    let (trace, account) = plan.recording.requests(plan.size).map_err(Failure::usage)?;
    let bar = plan.bar();
    let watched = {
        let bar = bar.clone();
        trace.inspect(move |request| bar.set_position(request.at.as_micros() / 1_000))
    };
    let outcomes = simulate(scenario, vec![(place, Box::new(watched))], plan.survey.duration)?;
    bar.finish_and_clear();
    match account.remarks().failure {
        Some(failure) => Err(Failure::usage(failure)),
        None => Ok(outcomes.into_iter().nth(place).expect("there is an outcome for each volume")),
    }
}

impl Plan {
    fn bar(&self) -> indicatif::ProgressBar {
        replay_bar(self.survey.duration, format!("replaying {}", self.recording.path.display()))
    }
}
