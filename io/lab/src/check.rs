//! The last stage: compares the figures with the bounds that the experiment sets.
//!
//! Every figure needs an expectation, and every expectation a figure; otherwise the experiment itself is
//! wrong. A figure without an expectation would look as if it were checked, and so would a bound that is
//! never tested. A value that the paper only reports has an expectation without a bound.
//!
//! A claim holds only if it holds with every seed. A median over the seeds would hide the seed with which it
//! fails. If the experiment says of a bound that it is known not to hold, and why, the claim is **not
//! reproduced**. That is said as loudly as a failure, but it is no news.
//!
//! A claim of a law is checked again without the law, and under the law of promises ([`Variant`]). If it
//! holds without the law as well, it **holds without its law**: that says nothing about the law, so it is not
//! called one that holds. For each seed, at least one bound must hold with the law and break without it.
//!
//! A figure may have a noise, which is another figure of the same unit. If its bound lies within the noise,
//! the claim is **not shown**: it may hold or not. Example: the cost must be at most 0.4 %, and the noise is
//! 0.5 %. Then a cost of 0.3 % shows nothing, and a cost of 1 % does not hold.

use anyhow::ensure;
use serde::{Deserialize, Serialize};

use crate::experiment::{Expectation, Experiment, Variant, WithoutSpec};
use crate::run::Store;
use crate::study::{Figure, Figures};

/// Whether an experiment shows its claim.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Checked {
    /// The experiment.
    pub experiment: String,
    /// The seeds.
    pub seeds: Vec<u64>,
    /// The figures, in the order of the experiment's file.
    pub figures: Vec<CheckedFigure>,
    /// The same under other laws; none if the experiment is not about a law.
    #[serde(default)]
    pub variants: Vec<CheckedVariant>,
    /// The bounds that break if a number of the set-up that is ours is varied, each in words. None if nobody
    /// varied them.
    #[serde(default)]
    pub breaks: Vec<String>,
}

/// An experiment under another law.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct CheckedVariant {
    /// What stands in the place of the paper's law.
    pub variant: Variant,
    /// What was found.
    pub found: Found,
}

/// What was found of a variant.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Found {
    /// Figures, with the seeds with which it was run.
    Figures {
        /// The seeds.
        seeds: Vec<u64>,
        /// The figures, in the order of the experiment's file.
        figures: Vec<CheckedFigure>,
    },
    /// It cannot be run, for this reason.
    Impossible(String),
}

/// A figure over all seeds, compared with its bounds.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct CheckedFigure {
    /// Its name.
    pub name: String,
    /// The value with each seed.
    pub values: Vec<Option<f64>>,
    /// The least value that holds; `None` if there is no lower bound.
    pub at_least: Option<f64>,
    /// The greatest value that holds; `None` if there is no upper bound.
    pub at_most: Option<f64>,
    /// The seeds with which the figure does not hold.
    pub fails: Vec<u64>,
    /// The seeds with which the bound lies within the figure's noise.
    pub unshown: Vec<u64>,
    /// The reason, if it is known that it does not.
    pub not_reproduced: Option<String>,
}

/// What became of a claim.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Conclusion {
    /// Every bound holds with every seed.
    Holds,
    /// Every bound holds with every seed, except for those of which it is known that they do not.
    NotReproduced,
    /// Every bound holds with every seed, and without the law as well.
    HoldsWithout,
    /// Every bound holds with every seed, and one breaks if a number of the set-up is varied by a tenth.
    Fragile,
    /// A bound lies within the noise of its figure.
    NotShown,
    /// A bound does not hold that should.
    Fails,
}

/// Compares all figures with their bounds, and writes `verdict.json`. `variants` is what was found under
/// other laws, and `breaks` says which bounds break if the set-up is varied.
///
/// # Errors
/// If a figure has no expectation, or an expectation no figure.
pub fn check(
    experiment: &Experiment,
    all: &[Figures],
    variants: Vec<CheckedVariant>,
    breaks: Vec<String>,
    store: &Store,
) -> anyhow::Result<Checked> {
    let id = &experiment.id;
    for Figure { name, .. } in all.iter().flat_map(|of_seed| &of_seed.figures) {
        let expected = experiment.expect.iter().any(|expectation| expectation.figure == *name);
        ensure!(expected, "{id}: expect: found none for the figure {name}; accepted: one for each figure");
    }
    let figures = experiment.expect.iter().map(|expectation| checked(id, expectation, all));
    let checked = Checked {
        experiment: id.clone(),
        seeds: all.iter().map(|of_seed| of_seed.seed).collect(),
        figures: figures.collect::<anyhow::Result<_>>()?,
        variants,
        breaks,
    };
    store.write(&store.of(id, "verdict.json"), serde_json::to_string_pretty(&checked)?)?;
    Ok(checked)
}

fn checked(id: &str, expectation: &Expectation, all: &[Figures]) -> anyhow::Result<CheckedFigure> {
    let name = &expectation.figure;
    let (at_least, at_most) = expectation.bounds();
    let (mut values, mut fails, mut unshown) = (Vec::new(), Vec::new(), Vec::new());
    for Figures { seed, figures } in all {
        let value_of = |key: &str, name: &str| {
            let figure = figures.iter().find(|figure| figure.name == name);
            let names = || figures.iter().map(|figure| figure.name).collect::<Vec<_>>().join(", ");
            ensure!(figure.is_some(), "{id}: expect.{key}: found \"{name}\"; accepted: one of {}", names());
            Ok(figure.and_then(|figure| figure.value))
        };
        // What the law granted says nothing where a variant has taken the bound away.
        let counts = !expectation.granted || at_least.is_some() || at_most.is_some();
        let value = value_of("figure", name)?.filter(|_| counts);
        let noise = expectation.noise.as_deref();
        let noise = noise.map_or(Ok(Some(0.0)), |name| value_of("noise", name))?;
        values.push(value);
        if at_least.is_none() && at_most.is_none() {
            continue;
        }
        match value.and_then(|value| margin(value, at_least, at_most)).zip(noise) {
            Some((margin, noise)) if margin >= noise => {}
            Some((margin, noise)) if margin >= -noise => unshown.push(*seed),
            _ => fails.push(*seed),
        }
    }
    let not_reproduced = expectation.not_reproduced.clone();
    Ok(CheckedFigure { name: name.clone(), values, at_least, at_most, fails, unshown, not_reproduced })
}

impl Expectation {
    /// The least and the greatest value that hold.
    pub fn bounds(&self) -> (Option<f64>, Option<f64>) {
        match self.between {
            Some([least, most]) => (Some(least), Some(most)),
            None => (self.at_least, self.at_most),
        }
    }
}

/// How far a value is from the nearer bound; negative if it does not hold. `None` without a bound.
pub(crate) fn margin(value: f64, at_least: Option<f64>, at_most: Option<f64>) -> Option<f64> {
    let above = at_least.map(|least| value - least);
    let below = at_most.map(|most| most - value);
    above.into_iter().chain(below).min_by(f64::total_cmp)
}

impl Conclusion {
    /// In words.
    pub const fn shown(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::NotReproduced => "not reproduced",
            Self::HoldsWithout => "holds without its law",
            Self::Fragile => "fragile",
            Self::NotShown => "not shown",
            Self::Fails => "does not hold",
        }
    }
}

impl Checked {
    /// What became of the claim. A bound that is known not to hold is not counted as holding if it does so
    /// with these few seeds.
    pub fn conclusion(&self) -> Conclusion {
        let (known, others): (Vec<_>, Vec<_>) =
            self.figures.iter().partition(|figure| figure.not_reproduced.is_some());
        if self.seeds.is_empty() || others.iter().any(|figure| !figure.fails.is_empty()) {
            Conclusion::Fails
        } else if others.iter().any(|figure| !figure.unshown.is_empty()) {
            Conclusion::NotShown
        } else if !known.is_empty() {
            Conclusion::NotReproduced
        } else if !self.indifferent().is_empty() {
            Conclusion::HoldsWithout
        } else if !self.breaks.is_empty() {
            Conclusion::Fragile
        } else {
            Conclusion::Holds
        }
    }

    /// The seeds with which no bound that holds with the law breaks without it.
    pub fn indifferent(&self) -> Vec<u64> {
        let Some(Found::Figures { seeds, figures }) = self.found(Variant::Without) else { return Vec::new() };
        let breaks = |seed: &u64| {
            let mut pairs = self.figures.iter().zip(figures);
            pairs.any(|(with, without)| !with.fails.contains(seed) && without.fails.contains(seed))
        };
        seeds.iter().copied().filter(|seed| !breaks(seed)).collect()
    }

    /// What was found of a variant; `None` if it was not run.
    pub fn found(&self, variant: Variant) -> Option<&Found> {
        self.variants.iter().find(|checked| checked.variant == variant).map(|checked| &checked.found)
    }
}

impl CheckedVariant {
    /// A line about it: whether the bounds hold, and for a control of its own what that is.
    pub fn line(&self, experiment: &Experiment) -> String {
        let own = experiment.without.as_ref().filter(|_| self.variant == Variant::Without);
        let line = format!("{}: {}", self.variant.shown(), self.found.shown());
        match (own, &self.found) {
            (Some(WithoutSpec { because, .. }), Found::Figures { .. }) => format!("{line}. {because}"),
            _ => line,
        }
    }
}

impl Found {
    /// In words: whether the bounds hold, or with which seeds; or why there are no figures.
    pub fn shown(&self) -> String {
        let (seeds, figures) = match self {
            Self::Figures { seeds, figures } => (seeds, figures),
            Self::Impossible(reason) => return reason.clone(),
        };
        let breaks = |seed: &u64| figures.iter().any(|figure| figure.fails.contains(seed));
        let holding: Vec<_> = seeds.iter().filter(|seed| !breaks(seed)).map(u64::to_string).collect();
        match holding.len() {
            0 => Conclusion::Fails.shown().to_owned(),
            all if all == seeds.len() => Conclusion::Holds.shown().to_owned(),
            _ => format!("{}, but with seed {}", Conclusion::Fails.shown(), holding.join(", ")),
        }
    }
}

impl CheckedFigure {
    /// Whether the figure has a bound at all.
    pub const fn is_bounded(&self) -> bool {
        self.at_least.is_some() || self.at_most.is_some()
    }

    /// How far the worst value is from the nearer bound; negative if it does not hold. `None` without a bound
    /// or without a value.
    pub fn margin(&self) -> Option<f64> {
        self.values
            .iter()
            .map(|value| value.and_then(|value| margin(value, self.at_least, self.at_most)))
            .collect::<Option<Vec<_>>>()?
            .into_iter()
            .min_by(f64::total_cmp)
    }

    /// The value that is nearest to a bound, or farthest beyond it; `None` without a bound or a value.
    pub fn worst(&self) -> Option<f64> {
        let values = self.values.iter().copied().collect::<Option<Vec<f64>>>()?;
        let margin = |value: &f64| margin(*value, self.at_least, self.at_most);
        let with_margins = values.iter().filter_map(|value| Some((*value, margin(value)?)));
        with_margins.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(value, _)| value)
    }

    /// The median over the seeds; `None` if a seed has no value.
    pub fn median(&self) -> Option<f64> {
        let mut values: Vec<f64> = self.values.iter().copied().collect::<Option<_>>()?;
        values.sort_by(f64::total_cmp);
        let middle = values.len() / 2;
        match values.len() {
            0 => None,
            odd if odd % 2 == 1 => Some(values[middle]),
            _ => Some(f64::midpoint(values[middle - 1], values[middle])),
        }
    }

    /// The least and the greatest value; `None` if no seed has a value.
    pub fn range(&self) -> Option<(f64, f64)> {
        let values = || self.values.iter().copied().flatten();
        Some((values().min_by(f64::total_cmp)?, values().max_by(f64::total_cmp)?))
    }
}

#[cfg(test)]
mod tests;
