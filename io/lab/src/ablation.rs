//! What each completion of Façade's and Maestro's laws buys.
//!
//! A completion is a rule that the law's paper does not print ([`Completion`]). An experiment runs again with
//! the law in other **forms**: complete, to the letter (`literal`), to the letter with one completion, and
//! complete but for one. The bounds are the same in all of them, and so are the runs without a law, which are
//! copied. Each constant of Maestro's completions is a quarter less and a quarter more in two further forms.
//!
//! A figure **changes** if its mean over the seeds moves by more than its **noise**: the range of its values
//! over the seeds, in the form that the other one is compared with. The standard deviation would not do: with
//! five seeds, one of nine figures moves by more than that for no reason.

mod table;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Context;
use serde::{Deserialize, Serialize};
use toml::Value;
use weir_engine::{Completed, Completion, Constant};

use crate::check::{CheckedFigure, check};
use crate::claims;
use crate::experiment::{ControlSpec, Experiment};
use crate::run::{Plan, Progress, Store, fingerprint, missing_trace, on_threads, run_beside};
use crate::study::study;

pub use table::table;

/// What a constant becomes, in per cent of what it is.
const PERCENT: [u32; 2] = [75, 125];

/// The file of an experiment's ablation, beside its verdict.
const FILE: &str = "ablation.json";

/// A form of a law.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// With all completions, as in a pool.
    Complete,
    /// To the letter.
    Literal,
    /// Complete but for one.
    But(Completion),
    /// To the letter, with one.
    With(Completion),
    /// Complete, with a constant that is so many per cent of what it is in a pool.
    Scaled(Constant, u32),
}

/// The forms to run, beside the complete law and the literal one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Which {
    /// Each completion left out, and each added to the literal law.
    Completions,
    /// Each constant a quarter less, and a quarter more.
    Constants,
}

/// The figures of an experiment under all forms of its law.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Ablation {
    /// The experiment.
    pub experiment: String,
    /// The hash of the program. Another program may find other figures.
    pub program: String,
    /// The seeds.
    pub seeds: Vec<u64>,
    /// The figures in the order of the experiment's file, by the name of the form.
    pub forms: BTreeMap<String, Vec<CheckedFigure>>,
}

/// A figure that is another one in another form.
#[derive(Clone, PartialEq, Debug)]
pub struct Change {
    /// The figure.
    pub figure: String,
    /// Its mean in the form that is compared with; `None` if it cannot be computed with every seed.
    pub from: Option<f64>,
    /// Its mean in the other form.
    pub to: Option<f64>,
    /// Its range over the seeds in the form that is compared with.
    pub noise: f64,
    /// Whether its bound holds with every seed, in the one form and in the other.
    pub holds: [bool; 2],
}

impl Form {
    /// The name, also of the folder of the results.
    pub fn name(self) -> String {
        match self {
            Self::Complete => "complete".to_owned(),
            Self::Literal => "literal".to_owned(),
            Self::But(one) => format!("complete-but-{}", one.name()),
            Self::With(one) => format!("literal-with-{}", one.name()),
            Self::Scaled(constant, percent) => format!("complete-{}-{percent}", constant.name()),
        }
    }

    /// The keys of an experiment's file that make its law this one.
    fn values(self) -> Vec<(String, Value)> {
        let law = |word: &str| ("engine.law".to_owned(), Value::from(word));
        let one = |key: &str, one: Completion| (format!("engine.{key}"), Value::from(vec![one.name()]));
        match self {
            Self::Complete => vec![law("complete")],
            Self::Literal => vec![law("literal")],
            Self::But(completion) => vec![law("complete"), one("but_for", completion)],
            Self::With(completion) => vec![law("literal"), one("completions", completion)],
            Self::Scaled(constant, percent) => {
                let scaled = [("constant", constant.name().into()), ("percent", percent.into())];
                let scaled: toml::Table =
                    scaled.into_iter().map(|(key, value): (_, Value)| (key.to_owned(), value)).collect();
                vec![law("complete"), ("engine.scaled".to_owned(), scaled.into())]
            }
        }
    }
}

/// The completions of the laws in the runs of an experiment. None if it is not about one of these laws.
pub fn completions(experiment: &Experiment) -> Vec<Completion> {
    let rules = |one: &Completion| {
        let law = match one.law() {
            Completed::Facade => ControlSpec::Facade,
            Completed::Maestro => ControlSpec::Maestro,
        };
        experiment.run.values().any(|run| run.control == law)
    };
    Completion::ALL.into_iter().filter(rules).collect()
}

/// The forms with another constant, where the law of these completions has constants.
fn scaled(completions: &[Completion]) -> impl Iterator<Item = Form> {
    let has = completions.iter().any(|one| one.law() == Completed::Maestro);
    let constants = Constant::ALL.into_iter().filter(move |_| has);
    constants.flat_map(|constant| PERCENT.map(|percent| Form::Scaled(constant, percent)))
}

/// Runs an experiment under forms of its law, and writes the figures beside its verdict, together with those
/// of other forms that are there. `None` if it has no such law, or a recorded load is missing.
///
/// # Errors
/// If a form cannot be run, or a file cannot be written.
pub fn ablate(
    experiment: &Experiment,
    which: Which,
    plan: &Plan<'_>,
    store: &Store,
    progress: &(dyn Fn(Progress) + Sync),
) -> anyhow::Result<Option<Ablation>> {
    let completions = completions(experiment);
    if completions.is_empty() || missing_trace(experiment).is_some() {
        return Ok(None);
    }
    let claim = claims::claim(&experiment.id).context("an experiment without a claim")?;
    let of = |form: fn(Completion) -> Form| completions.iter().copied().map(form);
    let mut others = vec![Form::Literal];
    match which {
        Which::Completions => others.extend(of(Form::But).chain(of(Form::With))),
        Which::Constants => others.extend(scaled(&completions)),
    }
    let jobs: Vec<(Form, u64)> =
        plan.seeds.iter().flat_map(|seed| others.iter().map(move |form| (*form, *seed))).collect();
    let (done, all) = (AtomicUsize::new(0), jobs.len() + plan.seeds.len());
    let base = store.ablated(&Form::Complete.name());
    let run_one = |form: Form, seed: u64, base: Option<&Store>| {
        let changed = experiment.with_values("engine.law", &form.values())?;
        let (experiments, seeds) = (vec![&changed], vec![seed]);
        let one = Plan { experiments, seeds, variant_seeds: Vec::new(), jobs: 1, ..plan.clone() };
        run_beside(&one, &store.ablated(&form.name()), base, &|_| ())?;
        let done = done.fetch_add(1, Ordering::Relaxed) + 1;
        progress(Progress { done, all, what: format!("{}, seed {seed}, {}", experiment.id, form.name()) });
        anyhow::Ok(())
    };
    on_threads(plan.jobs, &plan.seeds, &|seed| run_one(Form::Complete, *seed, None))?;
    on_threads(plan.jobs, &jobs, &|(form, seed)| run_one(*form, *seed, Some(&base)))?;
    let known = found(experiment, store)?.filter(|known| known.seeds == plan.seeds);
    let mut forms = known.map_or_else(BTreeMap::new, |known| known.forms);
    for form in std::iter::once(Form::Complete).chain(others) {
        let store = store.ablated(&form.name());
        let figures = study(experiment, claim, &plan.seeds, &store)?;
        let checked = check(experiment, &figures, Vec::new(), Vec::new(), &store)?;
        forms.insert(form.name(), checked.figures);
    }
    let ablation = Ablation {
        experiment: experiment.id.clone(),
        program: fingerprint().to_owned(),
        seeds: plan.seeds.clone(),
        forms,
    };
    store.write(&store.of(&experiment.id, FILE), serde_json::to_string_pretty(&ablation)?)?;
    Ok(Some(ablation))
}

/// The ablation that this program found of an experiment; `None` if nobody looked for it.
///
/// # Errors
/// If its file cannot be read.
pub fn found(experiment: &Experiment, store: &Store) -> anyhow::Result<Option<Ablation>> {
    let path = store.of(&experiment.id, FILE);
    if !path.exists() {
        return Ok(None);
    }
    let accepted =
        || format!("{}: accepted: what `weir lab ablation` writes, or no such file", path.display());
    let text = std::fs::read_to_string(&path).with_context(accepted)?;
    let ablation: Ablation = serde_json::from_str(&text).with_context(accepted)?;
    Ok(Some(ablation).filter(|ablation| ablation.program == fingerprint()))
}

impl Ablation {
    /// The figures under a form; none if it was not run.
    pub fn figures(&self, form: Form) -> &[CheckedFigure] {
        self.forms.get(&form.name()).map_or(&[], Vec::as_slice)
    }

    /// The bounded figures that change by more than their noise from one form to another.
    pub fn changes(&self, from: Form, to: Form) -> Vec<Change> {
        let pairs = self.figures(from).iter().zip(self.figures(to));
        pairs.filter(|(from, _)| from.is_bounded()).filter_map(|(from, to)| change(from, to)).collect()
    }

    /// The changes that a completion makes: when it is taken from the complete law, and when it is added to
    /// the literal one.
    pub fn of(&self, one: Completion) -> [Vec<Change>; 2] {
        [self.changes(Form::Complete, Form::But(one)), self.changes(Form::Literal, Form::With(one))]
    }
}

/// The change of a figure, if it is more than noise.
fn change(from: &CheckedFigure, to: &CheckedFigure) -> Option<Change> {
    let noise = from.range().map_or(0.0, |(least, greatest)| greatest - least);
    let (before, after) = (from.mean(), to.mean());
    let is_more = match before.zip(after) {
        Some((before, after)) => (after - before).abs() > noise,
        None => before.is_some() != after.is_some(),
    };
    is_more.then(|| Change {
        figure: from.name.clone(),
        from: before,
        to: after,
        noise,
        holds: [from, to].map(|figure| figure.fails.is_empty() && figure.unshown.is_empty()),
    })
}

impl CheckedFigure {
    /// The mean over the seeds; `None` if a seed has no value.
    #[allow(clippy::cast_precision_loss)] // of a few seeds
    fn mean(&self) -> Option<f64> {
        let values: Vec<f64> = self.values.iter().copied().collect::<Option<_>>()?;
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    }
}

impl Change {
    /// Whether a bound breaks, or holds, that did not before.
    pub const fn turns(&self) -> bool {
        self.holds[0] != self.holds[1]
    }
}

#[cfg(test)]
mod tests;
