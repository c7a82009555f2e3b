//! All experiments on one page: the claim of each paper, the findings, and the figure.
//!
//! The page is a single file that fetches nothing from elsewhere. So it can be kept with the results, and
//! read in ten years.

mod page;
mod rows;

use std::path::PathBuf;

use anyhow::Context;

use crate::check::{Checked, CheckedVariant, Conclusion, Found, check};
use crate::claims;
use crate::experiment::{Experiment, Variant, Variation};
use crate::margins;
use crate::plot::plot;
use crate::run::{Store, is_for_real_only, missing_trace};
use crate::study::{Claim, Records, study};

/// The outcome of an experiment.
#[derive(Clone, PartialEq, Debug)]
pub enum Outcome {
    /// It was run, studied, drawn and checked.
    Done {
        /// Its figures, compared with their bounds.
        checked: Checked,
        /// Its figure, as SVG.
        svg: String,
        /// The commit of the program that ran it.
        commit: String,
    },
    /// It was not run.
    Skipped {
        /// The reason.
        reason: String,
    },
}

impl Outcome {
    /// What became of the claim; `None` if it was not run.
    pub fn conclusion(&self) -> Option<Conclusion> {
        match self {
            Self::Done { checked, .. } => Some(checked.conclusion()),
            Self::Skipped { .. } => None,
        }
    }
}

/// Studies, draws and checks an experiment whose records are there, and its variants with those of
/// `variant_seeds` with which they were run.
///
/// # Errors
/// If a record is missing, or a file cannot be written.
pub fn evaluate(
    experiment: &Experiment,
    seeds: &[u64],
    variant_seeds: &[u64],
    store: &Store,
) -> anyhow::Result<Outcome> {
    if let Some(path) = missing_trace(experiment) {
        return Ok(Outcome::Skipped { reason: format!("the recorded load {path} is not there") });
    }
    let Some(first) = seeds.first() else {
        return Ok(Outcome::Skipped { reason: "it was not run".to_owned() });
    };
    if is_for_real_only(experiment) && !store.seeds(&experiment.id).contains(first) {
        return Ok(Outcome::Skipped { reason: "a model says nothing about it; accepted: --real".to_owned() });
    }
    let claim = claims::claim(&experiment.id).context("an experiment without a claim")?;
    let figures = study(experiment, claim, seeds, store)?;
    let records = Records::read(experiment, *first, store)?;
    let commit = records.commit.clone();
    let svg = plot(experiment, &records, store)?;
    let variants = variants(experiment, claim, variant_seeds, store)?;
    let breaks = margins::found(experiment, store)?.map_or_else(Vec::new, |margins| margins.breaks());
    let breaks = breaks.iter().map(|broken| broken.shown(experiment)).collect();
    let checked = check(experiment, &figures, variants, breaks, store)?;
    Ok(Outcome::Done { checked, svg, commit })
}

/// Studies and checks the variants of an experiment.
fn variants(
    experiment: &Experiment,
    claim: Claim,
    seeds: &[u64],
    store: &Store,
) -> anyhow::Result<Vec<CheckedVariant>> {
    let mut all = Vec::new();
    for variant in Variant::ALL {
        let there = store.variant(variant).seeds(&experiment.id);
        let seeds: Vec<u64> = seeds.iter().copied().filter(|seed| there.contains(seed)).collect();
        let found = match experiment.variant(variant)? {
            Some(Variation::Runnable(varied)) if !seeds.is_empty() => {
                let store = store.variant(variant);
                let figures = study(&varied, claim, &seeds, &store)?;
                let Checked { seeds, figures, .. } =
                    check(&varied, &figures, Vec::new(), Vec::new(), &store)?;
                Found::Figures { seeds, figures }
            }
            Some(Variation::Impossible(reason)) => Found::Impossible(reason),
            Some(Variation::Runnable(_)) | None => continue,
        };
        all.push(CheckedVariant { variant, found });
    }
    Ok(all)
}

/// Makes the page of all experiments, `report.html`, and their rows as a table in Markdown, `rows.md`, from
/// the folder of results. Returns both paths.
///
/// # Errors
/// If there is no such folder, a record that should be there is not, or the page cannot be written.
pub fn report(experiments: &[Experiment], store: &Store) -> anyhow::Result<[PathBuf; 2]> {
    anyhow::ensure!(
        store.root().is_dir(),
        "{}: found no such folder; accepted: the folder that `weir lab run --out` has written",
        store.root().display()
    );
    let mut outcomes = Vec::new();
    for experiment in experiments {
        let seeds = store.seeds(&experiment.id);
        outcomes.push((experiment, evaluate(experiment, &seeds, &seeds, store)?));
    }
    let [page, rows] = ["report.html", "rows.md"].map(|file| store.root().join(file));
    store.write(&page, page::page(&outcomes))?;
    store.write(&rows, rows::rows(&outcomes))?;
    Ok([page, rows])
}
