//! `weir whatif FILE --trace VOLUME=TRACE`: would the promises of a proposed configuration hold? The answer
//! comes from simulated time, and from recorded loads of its volumes or of similar ones.
//!
//! Each pool with a traced volume is run twice with the very same requests: as proposed, and as it is today.
//! Volumes without a trace are idle. Several traces all start at once, and the run is over when the longest
//! trace is.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::anyhow;
use clap::Args;
use weir_lab::replay::{Outcome, Recording, simulate};
use weir_lab::what_if::{Answer, answer};
use weir_model::Span;

use crate::answer::Form;
use crate::config::Config;
use crate::failure::Failure;
use crate::simulated_pool::{SimulatedPool, simulated_pool};
use crate::traces::{self, print_remarks, replay_bar};

mod report;

use report::Row;

/// The proposal, and the load on it.
#[derive(Args, Debug)]
#[command(
    after_help = "Exit code: 0 if the promise of every traced volume holds as proposed, which is if it is kept in at \
                        least 99 % of its windows; 1 if one does not hold; 64 if a file or an argument is wrong."
)]
pub(crate) struct WhatIfArguments {
    /// The proposed configuration; the pools of the traced volumes are on simulated arrays
    file: PathBuf,
    /// The load of a volume: a trace as `weir replay` takes it, and how many times faster than recorded. Give
    /// this option once for each volume
    #[arg(long = "trace", value_name = "VOLUME=PATH[@SPEEDx]", required = true)]
    traces: Vec<TraceArgument>,
    /// The configuration of today, to compare with
    #[arg(long, value_name = "FILE")]
    base: Option<PathBuf>,
    /// How many times faster than recorded, for traces without an @SPEED of their own
    #[arg(long, default_value = "1x", value_parser = traces::speed)]
    speed: f64,
    /// End after this time [default: with the longest trace]
    #[arg(long, value_parser = traces::duration)]
    duration: Option<Span>,
    /// Count and list lines of traces that cannot be read, instead of ending at the first
    #[arg(long)]
    skip_broken: bool,
    #[command(flatten)]
    form: Form,
}

/// `VOLUME=PATH[@SPEEDx]`.
#[derive(Clone, PartialEq, Debug)]
struct TraceArgument {
    volume: String,
    path: PathBuf,
    speed: Option<f64>,
}

/// The result for a volume.
struct Judged {
    outcome: Outcome,
    answer: Answer,
    /// The name of its array.
    array: String,
}

/// The load of each volume, and the duration of the run.
struct Loads {
    recordings: BTreeMap<String, Recording>,
    duration: Span,
}

/// Runs the proposed configuration and today's.
///
/// # Errors
/// If a trace or a configuration is wrong, or a promise does not hold.
pub(crate) fn what_if(arguments: &WhatIfArguments) -> Result<(), Failure> {
    let proposed = Config::load(&arguments.file).map_err(Failure::usage)?;
    let base = arguments.base.as_deref().map(Config::load).transpose().map_err(Failure::usage)?;
    check_names(arguments, &proposed, base.as_ref())?;
    let loads = Loads::survey(arguments)?;
    let with = loads.run(&proposed, &arguments.file)?;
    let without = match (&base, &arguments.base) {
        (Some(base), Some(file)) => loads.run(base, file)?,
        _ => BTreeMap::new(),
    };
    let rows: Vec<Row> = loads
        .recordings
        .keys()
        .map(|volume| Row::new(volume, without.get(volume), with.get(volume)))
        .collect();
    arguments.form.print(&rows, |rows| report::Rows(rows).to_string())?;
    match rows.iter().filter(|row| row.fails()).count() {
        0 => Ok(()),
        count => Err(Failure::Runtime(anyhow!("{count} of {} promises would not hold", rows.len()))),
    }
}

fn check_names(arguments: &WhatIfArguments, proposed: &Config, base: Option<&Config>) -> Result<(), Failure> {
    let configs = || [Some(proposed), base].into_iter().flatten();
    let mut seen = BTreeSet::new();
    for TraceArgument { volume, .. } in &arguments.traces {
        if !configs().any(|config| config.volumes.contains_key(volume)) {
            let names: BTreeSet<&str> =
                configs().flat_map(|config| config.volumes.keys()).map(String::as_str).collect();
            let names: Vec<&str> = names.into_iter().collect();
            let message =
                format!("--trace: found no volume {volume:?}; accepted: one of {}", names.join(", "));
            return Err(Failure::usage(message));
        }
        if !seen.insert(volume) {
            return Err(Failure::usage(format!(
                "--trace: found volume {volume:?} twice; accepted: one trace each"
            )));
        }
    }
    Ok(())
}

impl Loads {
    fn survey(arguments: &WhatIfArguments) -> Result<Self, Failure> {
        let (mut recordings, mut duration) = (BTreeMap::new(), Span::ZERO);
        for TraceArgument { volume, path, speed } in &arguments.traces {
            let recording = Recording {
                path: path.clone(),
                format: None,
                skip_broken: arguments.skip_broken,
                speed: speed.unwrap_or(arguments.speed),
                duration: arguments.duration,
            };
            let survey = traces::survey(&recording)?;
            print_remarks(path, &survey.remarks);
            duration = duration.max(survey.duration);
            recordings.insert(volume.clone(), recording);
        }
        Ok(Self { recordings, duration })
    }

    /// The result for each traced volume of the configuration.
    fn run(&self, config: &Config, file: &Path) -> Result<BTreeMap<String, Judged>, Failure> {
        let pool_of = |volume: &String| config.volumes.get(volume).map(|volume| volume.pool.value.as_str());
        let pools: BTreeSet<&str> = self.recordings.keys().filter_map(pool_of).collect();
        let mut outcomes = BTreeMap::new();
        for pool in pools {
            self.run_pool(config, pool, &mut outcomes).map_err(|failure| failure.in_file(file))?;
        }
        Ok(outcomes)
    }

    fn run_pool(
        &self,
        config: &Config,
        pool: &str,
        outcomes: &mut BTreeMap<String, Judged>,
    ) -> Result<(), Failure> {
        let SimulatedPool { array, scenario } = simulated_pool(config, pool)?;
        let bar = replay_bar(self.duration, format!("pool {pool}"));
        let (mut traces, mut accounts) = (Vec::new(), Vec::new());
        for (place, volume) in scenario.volumes.iter().enumerate() {
            let Some(recording) = self.recordings.get(&volume.name) else { continue };
            let (trace, account) = recording.requests(volume.size).map_err(Failure::usage)?;
            let bar = bar.clone();
            let watched = trace.inspect(move |request| bar.set_position(request.at.as_micros() / 1_000));
            traces.push((place, Box::new(watched) as weir_sim::Trace));
            accounts.push(account);
        }
        let volumes = scenario.volumes.clone();
        let found = simulate(scenario, traces, self.duration)?;
        bar.finish_and_clear();
        if let Some(failure) = accounts.iter().find_map(|account| account.remarks().failure) {
            return Err(Failure::usage(failure));
        }
        for (volume, outcome) in volumes.into_iter().zip(found) {
            let answer = answer(&volume.config, &outcome);
            outcomes.insert(volume.name, Judged { outcome, answer, array: array.clone() });
        }
        Ok(())
    }
}

impl FromStr for TraceArgument {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let accepted = || "accepted: VOLUME=PATH or VOLUME=PATH@SPEEDx, such as db=db.csv.gz@20x".to_owned();
        let (volume, path) = text.split_once('=').ok_or_else(accepted)?;
        if volume.is_empty() || path.is_empty() {
            return Err(accepted());
        }
        // A path may contain an @. Only a text that is a speed counts as one.
        let (path, speed) = match path.rsplit_once('@').map(|(path, text)| (path, traces::speed(text))) {
            Some((path, Ok(speed))) if !path.is_empty() => (path, Some(speed)),
            _ => (path, None),
        };
        Ok(Self { volume: volume.to_owned(), path: path.into(), speed })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_is_for_a_volume_and_may_have_a_speed_of_its_own() {
        let parse = |text: &str| {
            let TraceArgument { volume, path, speed } = text.parse()?;
            Ok::<_, String>((volume, path.display().to_string(), speed))
        };
        let argument = |volume: &str, path: &str, speed| Ok((volume.to_owned(), path.to_owned(), speed));
        assert_eq!(parse("db=/t/a.csv"), argument("db", "/t/a.csv", None));
        assert_eq!(parse("db=a.csv@20x"), argument("db", "a.csv", Some(20.0)));
        assert_eq!(parse("db=a@b.csv"), argument("db", "a@b.csv", None));
        assert_eq!(parse("db=a=b@0x"), argument("db", "a=b@0x", None));
        for wrong in ["db", "=a.csv", "db="] {
            assert!(parse(wrong).unwrap_err().contains("VOLUME=PATH"), "{wrong}");
        }
    }
}
