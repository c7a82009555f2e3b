//! `weir lab sweep`: each number of a set-up that is ours is varied, to see what a claim hangs on.

use std::io::Write;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;
use weir_lab::experiment::Experiment;
use weir_lab::library::Library;
use weir_lab::margins::{Margins, Refused, Which, found, spreads, table, vary};
use weir_lab::plot;
use weir_lab::run::{Plan, Simulated, Store};

use super::{Seeds, matching, seeds, shown_table, with_progress};
use crate::answer::{Form, json_line};
use crate::failure::Failure;
use crate::say;

/// What to vary.
#[derive(Args, Debug)]
pub(super) struct SweepArguments {
    /// The experiment's id; * stands for anything, as in 'facade-*'
    id: String,
    /// Seeds, such as 7 or 1..3, both ends included
    #[arg(long, value_parser = seeds, default_value = "1")]
    seeds: Seeds,
    /// Vary only the numbers on which each claim hangs most, as its file says
    #[arg(long)]
    short: bool,
    /// How many runs at a time
    #[arg(long, default_value = "2")]
    jobs: NonZeroUsize,
    /// The folder of the results, as of `weir lab run`, which then says which claims are fragile
    #[arg(long, default_value = "lab-results")]
    out: PathBuf,
    #[command(flatten)]
    form: Form,
}

/// Varies the numbers of each experiment. Prints the margins of its bounds, and draws them into margins.svg
/// beside the verdict. Then writes the table of all experiments that were varied so far, margins.md.
///
/// # Errors
/// If there is no such experiment, or one cannot be run.
pub(super) fn sweep(arguments: SweepArguments, library: &Library) -> Result<(), Failure> {
    let SweepArguments { id, seeds: Seeds(seeds), short, jobs, out, form } = arguments;
    let store = Store::new(out);
    let which = if short { Which::Short } else { Which::All };
    let plan = Plan {
        experiments: Vec::new(),
        seeds,
        variant_seeds: Vec::new(),
        jobs: jobs.get(),
        bench: &Simulated,
        nodes: &Simulated,
    };
    let _lock = store.lock()?;
    for experiment in matching(library, &id)? {
        let margins = with_progress(|show| vary(experiment, which, &plan, &store, show))?;
        match margins? {
            Some(margins) => {
                store
                    .write(&store.of(&experiment.id, "margins.svg"), plot::margins(experiment, &margins)?)?;
                match form.json {
                    true => writeln!(say::out(), "{}", json_line(&margins)?)?,
                    false => tell(experiment, &margins)?,
                }
            }
            None if form.json => {}
            None => writeln!(say::out(), "{}: skipped: it cannot be run here\n", experiment.id)?,
        }
    }
    let mut all = Vec::new();
    for experiment in library.all() {
        all.extend(found(experiment, &store)?.map(|margins| (experiment, margins)));
    }
    let file = store.root().join("margins.md");
    store.write(&file, table(&all))?;
    match form.json {
        true => Ok(()),
        false => Ok(writeln!(say::out(), "{}", file.display())?),
    }
}

fn tell(experiment: &Experiment, margins: &Margins) -> Result<(), Failure> {
    let mut out = say::out();
    let breaks = margins.breaks();
    let runs = margins.variations.len();
    if runs == 0 {
        writeln!(out, "{}: nothing was varied, so nothing is known of its margins", experiment.id)?;
    }
    writeln!(out, "{}: {runs} variations of {} numbers", experiment.id, margins.numbers().len())?;
    let head = ["figure", "must be", "as it is", "margin", "with a number varied", "hangs most on"];
    let rows = spreads(margins).into_iter().map(|spread| spread.cells(experiment));
    writeln!(out, "{}", shown_table(&head, rows, &[]))?;
    for broken in &breaks {
        writeln!(out, "fragile: {}", broken.shown(experiment))?;
    }
    for Refused { number, reason } in &margins.refused {
        writeln!(out, "not varied: {number}: {reason}")?;
    }
    Ok(writeln!(out)?)
}
