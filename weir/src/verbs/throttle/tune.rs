//! `weir throttle tune`: records how the reads of a resource answer a step of the delay, and proposes gains.

use std::fmt::{self, Display, Formatter};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::thread;

use anyhow::Context;
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use weir_agent::agent::Agent;
use weir_agent::sensors::Roots;
use weir_clock::Clock;
use weir_control::{OneSidedPidConfig, Plant, Predicted, StepResponse, ThrottleDelay};
use weir_lab::plot::{TuningFigure, tuning};
use weir_model::Span;
use weir_throttle::{Settings, Tuning, TuningProgress};

use crate::answer::Form;
use crate::config::{threshold_argument, units};
use crate::failure::Failure;

/// How many periods of the law are predicted: 10 s.
const PREDICTED: u32 = 100;

/// What to record, and for which threshold.
#[derive(Args, Debug)]
pub(super) struct TuneArguments {
    /// The name of the resource, as in `weir throttle status`; its readers and writers must be at work
    resource: String,
    /// How long the reads of the resource may wait, for the prediction
    #[arg(long, value_name = "TIME", value_parser = threshold_argument, allow_hyphen_values = true)]
    target_latency: Span,
    /// The delay of the writers' packets for 15 s, a multiple of 0.5ms
    #[arg(long, value_name = "TIME", default_value = "5ms", value_parser = step, allow_hyphen_values = true)]
    step: Span,
    /// The file of the figure
    #[arg(long, value_name = "FILE", default_value = "tune.svg")]
    figure: PathBuf,
    #[command(flatten)]
    form: Form,
}

/// How the reads answered, and the gains that follow.
#[derive(Serialize)]
struct Proposal {
    resource: String,
    step_ms: f64,
    wait_before_ms: f64,
    /// By how much a delay shortens the wait, in milliseconds for each millisecond.
    gain: f64,
    dead_time_ms: f64,
    lag_ms: f64,
    explained_percent: f64,
    proportional_gain: f64,
    integral_time_ms: f64,
    figure: String,
}

/// Records, and prints the proposal. If this process ends early, its guard removes the delay.
///
/// # Errors
/// If the agent cannot work here, the resource is not there, or its reads do not answer the delay.
pub(super) fn tune(arguments: &TuneArguments) -> Result<(), Failure> {
    let TuneArguments { resource, target_latency, step, figure, form } = arguments;
    let law = OneSidedPidConfig { ceiling: *step, ..OneSidedPidConfig::default() };
    // No other resource is to be delayed meanwhile, and no read waits for so long.
    let settings = Settings { law, ..Settings::new(Span::from_secs(60)) };
    let wrong = |error: &dyn Display| Failure::usage(format!("throttle tune: {error}"));
    // Opened first, so that nobody measures for a file that cannot be written.
    let file = FigureFile::open(figure).map_err(|error| wrong(&error))?;
    let recorded = record(resource, *step, settings).map_err(|error| wrong(&error))?;
    let plant = Plant::fit(&recorded).map_err(|error| wrong(&format!("{resource}: {error}")))?;
    let gains = plant
        .gains(&OneSidedPidConfig::default())
        .map_err(|error| wrong(&format!("{resource}: the plant hardly answers a delay: {error}")))?;
    let predicted = plant.predict(gains, *target_latency, PREDICTED).map_err(|error| wrong(&error))?;
    let drawn = drawing(resource, &recorded, &plant, *target_latency, &predicted);
    file.write(&tuning(&drawn)?)
        .with_context(|| format!("the figure {} cannot be written", figure.display()))?;
    let proposal = Proposal {
        resource: resource.clone(),
        step_ms: millis(*step),
        wait_before_ms: millis(plant.before),
        gain: plant.gain,
        dead_time_ms: millis(plant.dead_time),
        lag_ms: millis(plant.lag),
        explained_percent: plant.explained * 100.0,
        proportional_gain: gains.proportional_gain,
        integral_time_ms: millis(gains.integral_time).max(1.0),
        figure: figure.display().to_string(),
    };
    form.print(&proposal, ToString::to_string)
}

impl Display for Proposal {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { resource, step_ms, wait_before_ms, gain, figure, .. } = self;
        writeln!(f, "{resource}: how its reads answered {step_ms}ms of delay")?;
        writeln!(f, "  wait without a delay: {wait_before_ms:.2} ms")?;
        writeln!(f, "  wait that a delay of 1 ms takes away: {gain:.2} ms")?;
        writeln!(
            f,
            "  dead time {:.0} ms, lag {:.0} ms; the model explains {:.0} % of how the wait varied",
            self.dead_time_ms, self.lag_ms, self.explained_percent
        )?;
        writeln!(f, "gains by SIMC (Skogestad 2003), for [throttle] of the agent's file:")?;
        writeln!(f, "proportional_gain = {:.3}", self.proportional_gain)?;
        writeln!(f, "integral_time = \"{:.0}ms\"", self.integral_time_ms)?;
        writeln!(f, "what was recorded, and the response that is predicted: {figure}")
    }
}

/// Turns of an agent until all is recorded. On a terminal, a bar shows the progress.
fn record(resource: &str, step: Span, settings: Settings) -> anyhow::Result<StepResponse> {
    let (clock, period) = (Clock::new(), settings.law.period);
    let mut agent = Agent::start(clock.now(), settings, Roots::default(), Some(super::run::guard))?;
    let mut tuning = Tuning::new(resource.to_owned(), step, period);
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} {elapsed} {wide_msg}")?;
    let bar = ProgressBar::new(0).with_style(style);
    let mut next = clock.now();
    let recorded = loop {
        match agent.turn_of_tuning(clock.now(), &mut tuning) {
            Ok(TuningProgress::Waiting) => bar.set_message("waits for writers"),
            Ok(TuningProgress::Recording { done, of }) => {
                bar.set_length(of as u64);
                bar.set_position(done as u64);
                bar.set_message("records");
            }
            Ok(TuningProgress::Done(recorded)) => break Ok(recorded),
            Err(error) => break Err(error),
        }
        next = (next + period).max(clock.now());
        thread::sleep(next.saturating_since(clock.now()).into());
    };
    bar.finish_and_clear();
    agent.stop()?;
    Ok(recorded?)
}

fn drawing(
    resource: &str,
    recorded: &StepResponse,
    plant: &Plant,
    threshold: Span,
    predicted: &[Predicted],
) -> TuningFigure {
    let StepResponse { period, step, before, after } = recorded;
    let begin = -period.as_secs_f64() * before.iter().fold(0.0, |count, _| count + 1.0);
    let at = |place: f64| begin + (place + 1.0) * period.as_secs_f64();
    let places = std::iter::successors(Some(0.0), |place| Some(place + 1.0));
    let waits = places.clone().zip(before.iter().chain(after));
    let waits = waits.map(|(place, wait)| (at(place), wait.map(millis))).collect();
    let fitted = (1..=after.len() as u64).map(|number| {
        let end = period.saturating_mul(number);
        (end.as_secs_f64(), millis(plant.mean_wait(*step, *period, end)))
    });
    let of = |value: fn(&Predicted) -> Span| {
        let points = places.clone().zip(predicted);
        points.map(|(place, at)| ((place + 1.0) * period.as_secs_f64(), millis(value(at)))).collect()
    };
    TuningFigure {
        title: format!("{resource}: a step of {}", units::show_span(*step)),
        recorded: waits,
        fitted: [(begin, millis(plant.before)), (0.0, millis(plant.before))]
            .into_iter()
            .chain(fitted)
            .collect(),
        threshold: millis(threshold),
        wait: of(|at| at.wait),
        delay: of(|at| at.delay.span()),
    }
}

/// The file of the figure. One that is new goes with this unless the figure is written.
struct FigureFile {
    file: File,
    /// The path of a file that is new and has no figure yet.
    empty: Option<PathBuf>,
}

impl FigureFile {
    /// Opens the file, and leaves what is in it alone.
    ///
    /// # Errors
    /// If it cannot be written, in words for the operator.
    fn open(path: &Path) -> Result<Self, String> {
        let new = File::create_new(path);
        let is_new = new.is_ok();
        // A file that is there, or a reason that says more than that something is there.
        let file = new.or_else(|_| File::options().write(true).open(path));
        let file = file.map_err(|error| {
            format!("--figure: found {}: {error}; accepted: a file that can be written", path.display())
        })?;
        Ok(Self { file, empty: is_new.then(|| path.to_owned()) })
    }

    fn write(mut self, svg: &str) -> io::Result<()> {
        if self.file.metadata()?.is_file() {
            self.file.set_len(0)?; // a pipe has no length
        }
        self.file.write_all(svg.as_bytes())?;
        self.empty = None;
        Ok(())
    }
}

impl Drop for FigureFile {
    fn drop(&mut self) {
        if let Some(empty) = &self.empty {
            let _ = fs::remove_file(empty); // it may be gone
        }
    }
}

fn millis(span: Span) -> f64 {
    span.as_secs_f64() * 1e3
}

/// TCP's timers run out 200 ms above the mean round trip at the earliest. A step that lets them run out would
/// record TCP, and not the storage.
const LONGEST_STEP: Span = Span::from_millis(100);

fn step(text: &str) -> Result<Span, String> {
    let is_step = |span: &Span| {
        let whole = span.as_nanos().is_multiple_of(ThrottleDelay::STEP.as_nanos());
        whole && !span.is_zero() && *span <= LONGEST_STEP
    };
    let most = units::show_span(LONGEST_STEP);
    units::read_span(text)
        .filter(is_step)
        .ok_or_else(|| format!("accepted: a multiple of 0.5ms such as 5ms, from 0.5ms to {most}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_that_cannot_be_written_is_refused_and_an_unwritten_one_leaves_no_file() {
        let directory = tempfile::tempdir().unwrap();
        let in_it = |name: &str| directory.path().join(name);
        for wrong in [in_it("missing/tune.svg"), directory.path().to_owned()] {
            let refused = FigureFile::open(&wrong).err().expect("it is no file");
            assert!(refused.contains(&format!("{}: ", wrong.display())), "{refused}");
        }
        let new = in_it("new.svg");
        drop(FigureFile::open(&new).unwrap());
        assert!(!new.exists());
        FigureFile::open(&new).unwrap().write("a longer figure").unwrap();
        drop(FigureFile::open(&new).unwrap());
        assert_eq!(fs::read_to_string(&new).unwrap(), "a longer figure", "left alone");
        FigureFile::open(&new).unwrap().write("another").unwrap();
        assert_eq!(fs::read_to_string(&new).unwrap(), "another");
    }
}
