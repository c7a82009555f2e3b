//! All experiments on one page: the claim of each paper, the findings, and the figure.
//!
//! The page is a single file that fetches nothing from elsewhere. So it can be kept with the results, and
//! read in ten years.

mod page;

use std::path::PathBuf;

use anyhow::Context;

use crate::check::{Checked, Conclusion, check};
use crate::claims;
use crate::experiment::Experiment;
use crate::plot::plot;
use crate::run::{Store, is_for_real_only, missing_trace};
use crate::study::{Records, study};

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

/// Studies, draws and checks an experiment whose records are there.
///
/// # Errors
/// If a record is missing, or a file cannot be written.
pub fn evaluate(experiment: &Experiment, seeds: &[u64], store: &Store) -> anyhow::Result<Outcome> {
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
    let checked = check(experiment, &figures, store)?;
    Ok(Outcome::Done { checked, svg, commit })
}

/// Makes the page of all experiments, `report.html`, from the folder of results. Returns the path of the
/// page.
///
/// # Errors
/// If there is no such folder, a record that should be there is not, or the page cannot be written.
pub fn report(experiments: &[Experiment], store: &Store) -> anyhow::Result<PathBuf> {
    anyhow::ensure!(
        store.root().is_dir(),
        "{}: found no such folder; accepted: the folder that `weir lab run --out` has written",
        store.root().display()
    );
    let mut outcomes = Vec::new();
    for experiment in experiments {
        outcomes.push((experiment, evaluate(experiment, &store.seeds(&experiment.id), store)?));
    }
    let path = store.root().join("report.html");
    store.write(&path, page::page(&outcomes))?;
    Ok(path)
}
