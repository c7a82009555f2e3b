//! `weir lab`: the papers' claims, run again in simulated time.

use std::io::Write;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use comfy_table::{CellAlignment, Table, presets};
use indicatif::{ProgressBar, ProgressStyle};
use weir_lab::check::{Checked, CheckedFigure, Conclusion};
use weir_lab::experiment::Experiment;
use weir_lab::library::Library;
use weir_lab::report::{Outcome, evaluate, report};
use weir_lab::run::{Plan, Progress, Simulated, Store, run};

use crate::failure::Failure;

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
    List,
    /// Run experiments, and print what they found; exit code 1 if a claim does not hold
    Run {
        /// The experiment's id; * stands for anything, as in 'facade-*'
        id: String,
        /// Seeds, such as 7 or 1..10, both ends included
        #[arg(long, default_value = "1..10", value_parser = seeds)]
        seeds: Seeds,
        /// How many runs at a time
        #[arg(long, default_value = "2")]
        jobs: NonZeroUsize,
        /// The folder of the results; a run that has its results there is not repeated
        #[arg(long, default_value = "lab-results")]
        out: PathBuf,
    },
    /// Make one page of all results: report.html
    Report {
        /// The folder of the results
        #[arg(long, default_value = "lab-results")]
        out: PathBuf,
    },
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
        LabVerb::List => list(&library),
        LabVerb::Run { id, seeds, jobs, out } => run_matching(&library, &id, seeds, jobs, out),
        LabVerb::Report { out } => {
            let path = report(library.all(), &Store::new(out))?;
            Ok(writeln!(std::io::stdout(), "{}", path.display())?)
        }
    }
}

fn list(library: &Library) -> Result<(), Failure> {
    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY).set_header(["experiment", "paper", "claim"]);
    for experiment in library.all() {
        let paper = &experiment.paper;
        let place = format!("{} §{}, {}", paper.name, paper.section, paper.figure);
        table.add_row([experiment.id.clone(), place, experiment.claim.clone()]);
    }
    Ok(writeln!(std::io::stdout(), "{table}")?)
}

fn run_matching(
    library: &Library,
    id: &str,
    seeds: Seeds,
    jobs: NonZeroUsize,
    out: PathBuf,
) -> Result<(), Failure> {
    let experiments = library.matching(id);
    if experiments.is_empty() {
        let known: Vec<_> = library.all().iter().map(|experiment| experiment.id.as_str()).collect();
        return Err(Failure::usage(format!("found no experiment {id}; accepted: {}", known.join(", "))));
    }
    let store = Store::new(out);
    let plan = Plan { experiments, seeds: seeds.0, jobs: jobs.get(), bench: &Simulated };
    run_with_progress(&plan, &store)?;

    let mut stdout = std::io::stdout().lock();
    let (mut failed, mut not_reproduced, mut skipped) = (0, 0, 0);
    for experiment in &plan.experiments {
        match evaluate(experiment, &plan.seeds, &store)? {
            Outcome::Done { checked, .. } => {
                let conclusion = checked.conclusion();
                failed += usize::from(conclusion == Conclusion::Fails);
                not_reproduced += usize::from(conclusion == Conclusion::NotReproduced);
                let (id, word) = (&experiment.id, conclusion.shown());
                writeln!(stdout, "{id}: {word}, seeds {}", shown_seeds(&checked.seeds))?;
                writeln!(stdout, "{}", figures(experiment, &checked))?;
                for figure in &checked.figures {
                    if let Some(reason) = &figure.not_reproduced {
                        writeln!(stdout, "{} is not reproduced: {reason}", figure.name)?;
                    }
                }
                writeln!(stdout)?;
            }
            Outcome::Skipped { reason } => {
                skipped += 1;
                writeln!(stdout, "{}: skipped: {reason}\n", experiment.id)?;
            }
        }
    }
    let all = plan.experiments.len();
    let hold = all - failed - not_reproduced - skipped;
    writeln!(
        stdout,
        "{hold} of {all} hold, {failed} do not, {not_reproduced} are not reproduced, {skipped} were skipped; {}",
        shown_path(&store)
    )?;
    if failed > 0 {
        return Err(anyhow::anyhow!("{failed} of {all} claims do not hold").into());
    }
    Ok(())
}

/// Runs the plan. On a terminal, a bar shows the progress.
fn run_with_progress(plan: &Plan<'_>, store: &Store) -> anyhow::Result<()> {
    let style = "{bar:40} {pos}/{len} {elapsed} {wide_msg}";
    let bar = ProgressBar::new(0).with_style(ProgressStyle::with_template(style)?);
    let show = |Progress { done, all, what }: Progress| {
        bar.set_length(all as u64);
        bar.set_position(done as u64);
        bar.set_message(what);
    };
    let outcome = run(plan, store, &show);
    bar.finish_and_clear();
    outcome
}

fn figures(experiment: &Experiment, checked: &Checked) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY);
    table.set_header(["figure", "paper", "here (median)", "over all seeds", "must be", "margin", "verdict"]);
    for (expectation, figure) in experiment.expect.iter().zip(&checked.figures) {
        table.add_row([
            expectation.figure.clone(),
            expectation.paper.clone(),
            figure.shown_median(&expectation.unit),
            figure.shown_range(&expectation.unit),
            expectation.shown(),
            figure.shown_margin(&expectation.unit),
            verdict(figure),
        ]);
    }
    for (place, column) in table.column_iter_mut().enumerate() {
        let right = [2, 3, 5].contains(&place);
        column.set_cell_alignment(if right { CellAlignment::Right } else { CellAlignment::Left });
    }
    table
}

fn verdict(figure: &CheckedFigure) -> String {
    match figure {
        figure if !figure.is_bounded() => "reported".to_owned(),
        figure if figure.fails.is_empty() => "holds".to_owned(),
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
