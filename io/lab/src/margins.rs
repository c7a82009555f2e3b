//! How much a claim hangs on the numbers of its set-up that are ours.
//!
//! The paper gives some numbers of a set-up, and we chose the others. Each of ours is varied by a tenth, up
//! and down, one at a time, and by the values that the file lists ([`Experiment::vary`]). The experiment
//! runs again with each, and every bound is checked again. A claim whose bound breaks in one of them is
//! *fragile*: it says as much about our number as about the law.
//!
//! Numbers that are the same in several arrays, volumes or runs are one number, and are varied together.
//! Else the run with the law would last longer than the one that it is compared with.

mod numbers;
mod spread;
mod table;

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Context;
use serde::{Deserialize, Serialize};
use toml::Value;

use crate::check::{CheckedFigure, check};
use crate::claims;
use crate::experiment::Experiment;
use crate::run::{Plan, Progress, Store, fingerprint, is_for_real_only, missing_trace, on_threads, run};
use crate::study::study;

pub use numbers::{Number, numbers};
pub use spread::{Break, Pull, Spread, spreads};
pub use table::table;

/// The file of an experiment's margins, beside its verdict.
const FILE: &str = "margins.json";

/// An experiment with one of its numbers varied.
#[derive(Clone, Debug)]
pub struct Varied {
    /// The number, such as `array.*.overhead`.
    pub number: String,
    /// Its value in the file.
    pub from: String,
    /// Its value here.
    pub to: String,
    /// The experiment.
    pub experiment: Experiment,
}

/// What a variation did to the figures.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Variation {
    /// The number, such as `array.*.overhead`.
    pub number: String,
    /// Its value in the file.
    pub from: String,
    /// Its value here.
    pub to: String,
    /// The figures, in the order of the experiment's file.
    pub figures: Vec<CheckedFigure>,
}

/// The margins of an experiment.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Margins {
    /// The experiment.
    pub experiment: String,
    /// The hash of the program. Another program may find other margins.
    pub program: String,
    /// The seeds.
    pub seeds: Vec<u64>,
    /// The figures with the set-up as it is.
    pub figures: Vec<CheckedFigure>,
    /// The figures with each variation.
    pub variations: Vec<Variation>,
    /// The numbers that cannot be varied.
    pub refused: Vec<Refused>,
}

/// A number that cannot be varied.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Refused {
    /// The number, with its value.
    pub number: String,
    /// Why the model does not accept another value near it.
    pub reason: String,
}

/// The numbers to vary.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Which {
    /// All of ours, and what the file lists.
    All,
    /// Those on which the file says that the claim hangs most ([`Experiment::hangs_on`]).
    Short,
}

/// Varies the numbers of an experiment, and writes the margins beside its verdict.
///
/// # Errors
/// If a variation cannot be run, or a file cannot be written.
pub fn vary(
    experiment: &Experiment,
    which: Which,
    plan: &Plan<'_>,
    store: &Store,
    progress: &(dyn Fn(Progress) + Sync),
) -> anyhow::Result<Option<Margins>> {
    if missing_trace(experiment).is_some() || is_for_real_only(experiment) {
        return Ok(None);
    }
    let claim = claims::claim(&experiment.id).context("an experiment without a claim")?;
    let (varied, mut refused) = variations(experiment, which)?;
    let (done, all) = (AtomicUsize::new(0), varied.len() + 1);
    let checked = |experiment: &Experiment, store: &Store| {
        let of_one =
            Plan { experiments: vec![experiment], variant_seeds: Vec::new(), jobs: 1, ..plan.clone() };
        run(&of_one, store, &|_| ())?;
        let figures = study(experiment, claim, &plan.seeds, store)?;
        let checked = check(experiment, &figures, Vec::new(), Vec::new(), store)?;
        let done = done.fetch_add(1, Ordering::Relaxed) + 1;
        progress(Progress { done, all, what: experiment.id.clone() });
        anyhow::Ok(checked.figures)
    };
    let figures = checked(experiment, &store.varied("as-it-is"))?;
    let results = Mutex::new(Vec::new());
    let jobs: Vec<(usize, &Varied)> = varied.iter().enumerate().collect();
    on_threads(plan.jobs, &jobs, &|(place, varied): &(usize, &Varied)| {
        let figures = checked(&varied.experiment, &store.varied(&place.to_string()));
        results.lock().expect("no thread panics with it").push((*place, figures));
        Ok(())
    })?;
    let mut results = results.into_inner().expect("no thread panicked with it");
    results.sort_by_key(|(place, _)| *place);
    let mut variations = Vec::new();
    for (Varied { number, from, to, .. }, (_, figures)) in varied.into_iter().zip(results) {
        // The experiment ran as it is, so what is wrong is the value. A share of reads ends at 1.
        match figures {
            Ok(figures) => variations.push(Variation { number, from, to, figures }),
            Err(error) if error.chain().any(|cause| cause.is::<std::io::Error>()) => return Err(error),
            Err(error) => {
                let reason = format!("found {to}: {}", error.root_cause());
                refused.push(Refused { number: format!("{number} = {from}"), reason });
            }
        }
    }
    let margins = Margins {
        experiment: experiment.id.clone(),
        program: fingerprint().to_owned(),
        seeds: plan.seeds.clone(),
        figures,
        variations,
        refused,
    };
    // A short look replaces no thorough one, and none at all would call a claim safe that nobody has varied.
    let known = match which {
        Which::All => 0,
        Which::Short => found(experiment, store)?.map_or(0, |known| known.variations.len()),
    };
    if margins.variations.len() >= known.max(1) {
        store.write(&store.of(&experiment.id, FILE), serde_json::to_string_pretty(&margins)?)?;
    }
    Ok(Some(margins))
}

/// The margins that this program found of an experiment; `None` if nobody looked for them.
///
/// # Errors
/// If its file cannot be read.
pub fn found(experiment: &Experiment, store: &Store) -> anyhow::Result<Option<Margins>> {
    let path = store.of(&experiment.id, FILE);
    if !path.exists() {
        return Ok(None);
    }
    let accepted = || format!("{}: accepted: what `weir lab sweep` writes, or no such file", path.display());
    let text = std::fs::read_to_string(&path).with_context(accepted)?;
    let margins: Margins = serde_json::from_str(&text).with_context(accepted)?;
    Ok(Some(margins).filter(|margins| margins.program == fingerprint()))
}

/// The variations of an experiment, and the numbers that cannot be varied.
///
/// # Errors
/// If a value that the file lists does not fit, or it names a number that it has not.
pub fn variations(experiment: &Experiment, which: Which) -> anyhow::Result<(Vec<Varied>, Vec<Refused>)> {
    let (mut varied, mut refused) = (Vec::new(), Vec::new());
    let wanted = |number: &Number| which == Which::All || experiment.hangs_on.contains(&number.name);
    for number in numbers(experiment)?.into_iter().filter(wanted) {
        for up in [false, true] {
            match number.by_a_tenth(experiment, up) {
                Ok(one) => varied.push(one),
                Err(reason) => {
                    let number = format!("{} = {}", number.name, number.shown());
                    refused.push(Refused { number, reason });
                }
            }
        }
    }
    for listed in experiment.vary.iter().filter(|_| which == Which::All) {
        for value in &listed.values {
            varied.push(numbers::listed(experiment, &listed.key, value)?);
        }
    }
    Ok((varied, refused))
}

impl Margins {
    /// The numbers that were varied, in order, each with its value in the file.
    pub fn numbers(&self) -> Vec<(&str, &str)> {
        let mut numbers: Vec<(&str, &str)> = Vec::new();
        for Variation { number, from, .. } in &self.variations {
            if !numbers.iter().any(|(known, _)| known == number) {
                numbers.push((number, from));
            }
        }
        numbers
    }

    /// The bounds that hold with the set-up as it is, and break in a variation.
    pub fn breaks(&self) -> Vec<Break> {
        spreads(self).into_iter().flat_map(|spread| spread.breaks).collect()
    }
}

/// A value as the file says it, without quotes.
fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests;
