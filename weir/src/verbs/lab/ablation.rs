//! `weir lab ablation`: what each completion of a law buys.

use std::io::Write;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;
use weir_lab::ablation::{Which, ablate, found, table};
use weir_lab::library::Library;
use weir_lab::run::{Plan, Simulated, Store};

use super::{Seeds, matching, seeds, with_progress};
use crate::failure::Failure;
use crate::say;

/// What to leave out, and where.
#[derive(Args, Debug)]
pub(super) struct AblationArguments {
    /// The experiment's id; * stands for anything, as in 'facade-*'
    id: String,
    /// Seeds, such as 7 or 1..5, both ends included. What differs between them is the noise
    #[arg(long, value_parser = seeds, default_value = "1..5")]
    seeds: Seeds,
    /// Scale the constants of the completions by a quarter, instead of leaving completions out
    #[arg(long)]
    constants: bool,
    /// How many runs at a time
    #[arg(long, default_value = "2")]
    jobs: NonZeroUsize,
    /// The folder of the results, as of `weir lab run`
    #[arg(long, default_value = "lab-results")]
    out: PathBuf,
}

/// Runs each experiment with its law complete, to the letter, to the letter with one completion, and complete
/// but for one. Then writes the table of all experiments for which that was done so far, ablation.md, and
/// prints it.
///
/// # Errors
/// If there is no such experiment, or one cannot be run.
pub(super) fn ablation(arguments: AblationArguments, library: &Library) -> Result<(), Failure> {
    let AblationArguments { id, seeds: Seeds(seeds), constants, jobs, out } = arguments;
    let which = if constants { Which::Constants } else { Which::Completions };
    let store = Store::new(out);
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
        let ablation = with_progress(|show| ablate(experiment, which, &plan, &store, show))?;
        let outcome = match ablation? {
            Some(ablation) => format!("{} forms of its law", ablation.forms.len()),
            None => "skipped: it has no law with completions, or cannot be run here".to_owned(),
        };
        writeln!(say::out(), "{}: {outcome}", experiment.id)?;
    }
    let mut all = Vec::new();
    for experiment in library.all() {
        all.extend(found(experiment, &store)?.map(|ablation| (experiment, ablation)));
    }
    let (file, text) = (store.root().join("ablation.md"), table(&all));
    store.write(&file, &text)?;
    Ok(writeln!(say::out(), "\n{text}\n{}", file.display())?)
}
