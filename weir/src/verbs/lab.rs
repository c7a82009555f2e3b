//! `weir lab`: the papers' claims, run again in simulated time, or on this machine's kernel.

use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::thread;

use clap::{Args, Subcommand, ValueEnum};
use comfy_table::presets;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use tokio::signal::unix::{SignalKind, signal};
use weir_lab::bulk;
use weir_lab::check::{Checked, CheckedFigure, Conclusion};
use weir_lab::delay::Bench;
use weir_lab::experiment::{Experiment, Variant};
use weir_lab::library::Library;
use weir_lab::report::{Outcome, evaluate, report};
use weir_lab::run::{Plan, Progress, Simulated, Store, run};
use weir_testbed::{Framework, RealBench, RealNodes, Stop};

use self::ablation::{AblationArguments, ablation};
use self::guarantee::{GuaranteeArguments, guarantee};
use self::sweep::{SweepArguments, sweep};
use crate::answer::{Form, json_line};
use crate::failure::Failure;
use crate::say;
use crate::terminal;

mod ablation;
mod guarantee;
mod sweep;

/// The experiments, and what to do with them.
#[derive(Args, Debug)]
pub(crate) struct LabArguments {
    /// Take the experiments from this folder, instead of the ones that are part of the program
    #[arg(long, global = true)]
    experiments: Option<PathBuf>,
    #[command(subcommand)]
    verb: LabVerb,
}

#[derive(Subcommand, Debug)]
enum LabVerb {
    /// Print every experiment and its claim
    List {
        #[command(flatten)]
        form: Form,
    },
    /// Run experiments, and print what they found; exit code 1 if a claim does not hold
    Run {
        /// The experiment's id; * stands for anything, as in 'facade-*'
        id: String,
        /// Seeds, such as 7 or 1..10, both ends included
        /// [default: 1..10, and 1 with --real, where a seed is only the number of the repetition]
        #[arg(long, value_parser = seeds)]
        seeds: Option<Seeds>,
        /// The seeds with which each experiment of a law is run again without its law, and under the law of
        /// promises. What holds without its law is not called one that holds; without these runs, nobody
        /// knows
        #[arg(long, value_enum, default_value = "all")]
        variants: VariantSeeds,
        /// How many runs at a time
        #[arg(long, default_value = "2")]
        jobs: NonZeroUsize,
        /// The folder of the results; a run that has its results there is not repeated
        #[arg(long, default_value = "lab-results")]
        out: PathBuf,
        /// Run in real time. Packet delay: on this machine's kernel, with a real target, lio or tgt. That
        /// changes this machine's network and disks while it runs, so use one that may be messed with, such
        /// as the guest of scripts/run-in-vm. Bulk transfers: on real storage nodes of this machine
        #[arg(long, value_enum, num_args = 0..=1, default_missing_value = "lio")]
        real: Option<Target>,
        #[command(flatten)]
        form: Form,
    },
    /// Vary each number of a set-up that is ours by a tenth, and show how far each bound is from breaking
    Sweep(SweepArguments),
    /// Leave out each completion of Façade's and Maestro's laws, and show which figures that changes; see
    /// docs/papers/ablation.md
    Ablation(AblationArguments),
    /// Judge the laws: how much of a promise each gives back, and what that costs the others; see
    /// docs/guarantee.md
    Guarantee(GuaranteeArguments),
    /// Make one page of all results, report.html, and a table of them in Markdown, rows.md
    Report {
        /// The folder of the results
        #[arg(long, default_value = "lab-results")]
        out: PathBuf,
    },
}

/// A sort of iSCSI target.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Target {
    Lio,
    Tgt,
}

/// Some of the seeds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum VariantSeeds {
    /// All of the seeds
    All,
    /// The first of them
    First,
    /// None of them
    None,
}

impl VariantSeeds {
    fn of(self, seeds: &[u64]) -> Vec<u64> {
        let many = match self {
            Self::All => seeds.len(),
            Self::First => 1,
            Self::None => 0,
        };
        seeds.iter().copied().take(many).collect()
    }
}

/// Seeds, rising.
#[derive(Clone, Debug)]
struct Seeds(Vec<u64>);

/// Does what the arguments say.
///
/// # Errors
/// If there is no such experiment, an experiment is wrong, or a claim does not hold.
pub(crate) fn lab(arguments: LabArguments) -> Result<(), Failure> {
    let library = match &arguments.experiments {
        Some(folder) => Library::open(folder).map_err(|error| Failure::usage(format!("{error:#}")))?,
        None => Library::embedded().map_err(Failure::usage)?,
    };
    match arguments.verb {
        LabVerb::List { form } => list(&library, form),
        LabVerb::Run { id, seeds, variants, jobs, out, real, form } => {
            let experiments = matching(&library, &id)?;
            let store = Store::new(out);
            let _lock = store.lock()?;
            match real {
                None => {
                    let seeds = seeds.map_or_else(|| (1..=10).collect(), |Seeds(seeds)| seeds);
                    let (bench, nodes) = (&Simulated, &Simulated);
                    let variant_seeds = variants.of(&seeds);
                    let plan = Plan { experiments, seeds, variant_seeds, jobs: jobs.get(), bench, nodes };
                    run_with_progress(&plan, &store)?;
                    tell_all(&plan, &store, form)
                }
                Some(target) => run_for_real(experiments, seeds, target, &store, form),
            }
        }
        LabVerb::Sweep(arguments) => sweep(arguments, &library),
        LabVerb::Ablation(arguments) => ablation(arguments, &library),
        LabVerb::Guarantee(arguments) => guarantee(&arguments),
        LabVerb::Report { out } => {
            let [page, rows] = report(library.all(), &Store::new(out))?;
            Ok(writeln!(say::out(), "{}\n{}", page.display(), rows.display())?)
        }
    }
}

/// An experiment in the list.
#[derive(Serialize)]
struct Listed<'l> {
    experiment: &'l str,
    paper: String,
    claim: &'l str,
}

fn list(library: &Library, form: Form) -> Result<(), Failure> {
    let listed = |experiment: &'_ Experiment| {
        let paper = &experiment.paper;
        format!("{} §{}, {}", paper.name, paper.section, paper.figure)
    };
    let all = library.all().iter();
    let all = all.map(|one| Listed { experiment: &one.id, paper: listed(one), claim: &one.claim });
    form.print(&all.collect::<Vec<_>>(), |all| {
        let row = |one: &Listed| [one.experiment.to_owned(), one.paper.clone(), one.claim.to_owned()];
        shown_table(&["experiment", "paper", "claim"], all.iter().map(row), &[])
    })
}

/// A table of texts, but for the numbers at these columns.
fn shown_table(
    head: &[&str],
    rows: impl IntoIterator<Item = impl IntoIterator<Item = String>>,
    numbers: &[usize],
) -> String {
    let is_text = |column| !numbers.contains(&column);
    weir_table::table(presets::UTF8_HORIZONTAL_ONLY, head, rows, is_text, &[], terminal::width())
}

fn matching<'l>(library: &'l Library, id: &str) -> Result<Vec<&'l Experiment>, Failure> {
    let experiments = library.matching(id);
    if experiments.is_empty() {
        let known: Vec<_> = library.all().iter().map(|experiment| experiment.id.as_str()).collect();
        return Err(Failure::usage(format!("found no experiment {id}; accepted: {}", known.join(", "))));
    }
    Ok(experiments)
}

/// Runs the experiments one after the other, and tells what each found as soon as it is known: all of them
/// take long.
fn run_for_real(
    experiments: Vec<&Experiment>,
    seeds: Option<Seeds>,
    target: Target,
    store: &Store,
    form: Form,
) -> Result<(), Failure> {
    let is_neither = |experiment: &&&Experiment| experiment.delay.is_none() && experiment.bulk.is_none();
    if let Some(experiment) = experiments.iter().find(is_neither) {
        let message = format!(
            "{}: found --real; accepted: with experiments before an iSCSI target, or with storage nodes",
            experiment.id
        );
        return Err(Failure::usage(message));
    }
    let seeds = seeds.map_or_else(|| vec![1], |Seeds(seeds)| seeds);
    let wrong = |error: anyhow::Error| Failure::usage(format!("lab run --real: {error:#}"));
    let stop = stop_at_signals()?;
    let mut tally = Tally { is_real: true, form, ..Tally::default() };
    let (delays, bulks): (Vec<_>, Vec<_>) =
        experiments.into_iter().partition(|experiment| experiment.delay.is_some());
    if !delays.is_empty() {
        let framework = match target {
            Target::Lio => Framework::Lio,
            Target::Tgt => Framework::Tgt,
        };
        let bench = RealBench::new(framework, std::env::current_exe()?, stop.clone()).map_err(wrong)?;
        tally.say(&format!("on {}\n", bench.name()))?;
        let plan = real_plan(seeds.clone(), &bench, &Simulated);
        one_by_one(delays, plan, &mut tally, store)?;
        bench.finish()?;
    }
    if !bulks.is_empty() {
        let nodes = RealNodes::start(stop).map_err(wrong)?;
        tally.say(&format!("on {}\n", bulk::Bench::name(&nodes)))?;
        let plan = real_plan(seeds, &Simulated, &nodes);
        one_by_one(bulks, plan, &mut tally, store)?;
    }
    tally.end(store)
}

/// A plan without an experiment yet. No experiment that runs in real time has variants.
fn real_plan<'a>(seeds: Vec<u64>, bench: &'a dyn Bench, nodes: &'a dyn bulk::Bench) -> Plan<'a> {
    Plan { experiments: Vec::new(), seeds, variant_seeds: Vec::new(), jobs: 1, bench, nodes }
}

fn one_by_one<'e>(
    experiments: Vec<&'e Experiment>,
    mut plan: Plan<'e>,
    tally: &mut Tally,
    store: &Store,
) -> Result<(), Failure> {
    for experiment in experiments {
        plan.experiments = vec![experiment];
        run_with_progress(&plan, store)?;
        tally.tell(experiment, &plan, store)?;
    }
    Ok(())
}

/// Ctrl-C or SIGTERM stop the runs, and the test bed is taken away. A signal that ended the process would
/// leave it.
fn stop_at_signals() -> Result<Stop, Failure> {
    let stop = Stop::default();
    let told = stop.clone();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let signals =
        async { io::Result::Ok((signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?)) };
    let (mut terminate, mut interrupt) = runtime.block_on(signals)?;
    thread::spawn(move || {
        runtime.block_on(async {
            tokio::select! {
                _ = terminate.recv() => told.set(),
                _ = interrupt.recv() => told.set(),
            }
        });
    });
    Ok(stop)
}

fn tell_all(plan: &Plan<'_>, store: &Store, form: Form) -> Result<(), Failure> {
    let mut tally = Tally { form, ..Tally::default() };
    for experiment in &plan.experiments {
        tally.tell(experiment, plan, store)?;
    }
    tally.end(store)
}

/// How many claims hold.
#[derive(Default)]
struct Tally {
    form: Form,
    is_real: bool,
    all: usize,
    failed: usize,
    not_shown: usize,
    not_reproduced: usize,
    without: usize,
    fragile: usize,
    skipped: usize,
}

/// What an experiment found, as a line of JSON.
#[derive(Serialize)]
struct Told<'a> {
    experiment: &'a str,
    /// The word for what follows from the figures, or `skipped`.
    conclusion: &'a str,
    /// Why it was skipped.
    reason: Option<&'a str>,
    checked: Option<&'a Checked>,
}

impl Tally {
    /// Prints a line that is only for people.
    fn say(&self, line: &str) -> Result<(), Failure> {
        if !self.form.json {
            writeln!(say::out(), "{line}")?;
        }
        Ok(())
    }

    /// Prints what an experiment found.
    fn tell(&mut self, experiment: &Experiment, plan: &Plan<'_>, store: &Store) -> Result<(), Failure> {
        let mut stdout = say::out();
        self.all += 1;
        match evaluate(experiment, &plan.seeds, &plan.variant_seeds, store)? {
            Outcome::Done { checked, .. } => {
                // A bound that is known not to hold is one of the model's.
                let conclusion = match checked.conclusion() {
                    Conclusion::NotReproduced if self.is_real => Conclusion::Fails,
                    conclusion => conclusion,
                };
                self.failed += usize::from(conclusion == Conclusion::Fails);
                self.not_shown += usize::from(conclusion == Conclusion::NotShown);
                self.not_reproduced += usize::from(conclusion == Conclusion::NotReproduced);
                self.without += usize::from(conclusion == Conclusion::HoldsWithout);
                self.fragile += usize::from(conclusion == Conclusion::Fragile);
                let (id, word) = (&experiment.id, conclusion.shown());
                if self.form.json {
                    let told =
                        Told { experiment: id, conclusion: word, reason: None, checked: Some(&checked) };
                    return Ok(writeln!(stdout, "{}", json_line(&told)?)?);
                }
                writeln!(stdout, "{id}: {word}, seeds {}", shown_seeds(&checked.seeds))?;
                writeln!(stdout, "{}", figures(experiment, &checked))?;
                for variant in &checked.variants {
                    writeln!(stdout, "{}", variant.line(experiment))?;
                }
                for broken in &checked.breaks {
                    writeln!(stdout, "fragile: {broken}")?;
                }
                for figure in checked.figures.iter().filter(|_| !self.is_real) {
                    if let Some(reason) = &figure.not_reproduced {
                        writeln!(stdout, "{} is not reproduced: {reason}", figure.name)?;
                    }
                }
                writeln!(stdout)?;
            }
            Outcome::Skipped { reason } => {
                self.skipped += 1;
                if self.form.json {
                    let (id, reason) = (&experiment.id, Some(reason.as_str()));
                    let told = Told { experiment: id, conclusion: "skipped", reason, checked: None };
                    return Ok(writeln!(stdout, "{}", json_line(&told)?)?);
                }
                writeln!(stdout, "{}: skipped: {reason}\n", experiment.id)?;
            }
        }
        Ok(())
    }

    /// Prints how many hold. It is a failure if some do not.
    fn end(&self, store: &Store) -> Result<(), Failure> {
        let Self { all, failed, not_shown, not_reproduced, without, fragile, skipped, .. } = self;
        let hold = all - failed - not_shown - not_reproduced - without - fragile - skipped;
        self.say(&format!(
            "{hold} of {all} hold, {failed} do not, {fragile} are fragile, {without} hold without their law, \
             {not_shown} are not shown, {not_reproduced} are not reproduced, {skipped} were skipped; {}",
            shown_path(store)
        ))?;
        if *failed > 0 {
            return Err(anyhow::anyhow!("{failed} of {all} claims do not hold").into());
        }
        Ok(())
    }
}

/// Does some work. On a terminal, a bar shows the progress that the work reports.
fn with_progress<T>(work: impl FnOnce(&(dyn Fn(Progress) + Sync)) -> T) -> anyhow::Result<T> {
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} {elapsed} {wide_msg}")?;
    let bar = ProgressBar::new(0).with_style(style);
    let show = |Progress { done, all, what }: Progress| {
        bar.set_length(all as u64);
        bar.set_position(done as u64);
        bar.set_message(what);
    };
    let outcome = work(&show);
    bar.finish_and_clear();
    Ok(outcome)
}

/// Runs the plan, and shows the progress.
fn run_with_progress(plan: &Plan<'_>, store: &Store) -> anyhow::Result<()> {
    with_progress(|show| run(plan, store, show))?
}

fn figures(experiment: &Experiment, checked: &Checked) -> String {
    let head = ["figure", "paper", "here (median)", "over all seeds", "must be", "margin", "verdict"];
    let head: Vec<_> = head.into_iter().chain(checked.with_figures().map(Variant::shown)).collect();
    let rows = experiment.expect.iter().zip(&checked.figures).enumerate();
    let rows = rows.map(|(number, (expectation, figure))| {
        let here = [
            expectation.figure.clone(),
            expectation.paper.clone(),
            figure.shown_median(&expectation.unit),
            figure.shown_range(&expectation.unit),
            expectation.shown(),
            figure.shown_margin(&expectation.unit),
            verdict(figure),
        ];
        let in_variants =
            checked.with_figures().filter_map(|variant| checked.shown_in(variant, number, &expectation.unit));
        here.into_iter().chain(in_variants).collect::<Vec<_>>()
    });
    shown_table(&head, rows, &[2, 3, 5, 7, 8])
}

fn verdict(figure: &CheckedFigure) -> String {
    match figure {
        figure if !figure.is_bounded() => "reported".to_owned(),
        figure if figure.fails.is_empty() && figure.unshown.is_empty() => "holds".to_owned(),
        figure if figure.fails.is_empty() => format!("not shown with seed {}", shown_seeds(&figure.unshown)),
        figure => format!("not with seed {}", shown_seeds(&figure.fails)),
    }
}

fn shown_seeds(seeds: &[u64]) -> String {
    seeds.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")
}

fn shown_path(store: &Store) -> String {
    let path: &Path = store.root();
    format!("results in {}", path.display())
}

fn seeds(text: &str) -> Result<Seeds, String> {
    let wrong =
        || format!("found \"{text}\"; accepted: a seed such as 7, or the first and the last such as 1..10");
    let number = |text: &str| text.parse::<u64>().map_err(|_| wrong());
    let (first, last) = match text.split_once("..") {
        Some((first, last)) => (number(first)?, number(last)?),
        None => (number(text)?, number(text)?),
    };
    if first > last || last - first >= 10_000 {
        return Err(wrong());
    }
    Ok(Seeds((first..=last).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_one_or_a_range_with_both_ends() {
        assert_eq!(seeds("7").unwrap().0, [7]);
        assert_eq!(seeds("1..3").unwrap().0, [1, 2, 3]);
        for wrong in ["", "3..1", "1..", "a", "1..99999"] {
            assert!(seeds(wrong).is_err(), "{wrong}");
        }
    }
}
