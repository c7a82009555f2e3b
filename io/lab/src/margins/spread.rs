//! What the variations did to each bound: how far it is from breaking, and on which number it hangs most.

use super::{Margins, Variation};
use crate::check::{CheckedFigure, margin};
use crate::experiment::Experiment;
use crate::float::quantity;

/// A bound over all variations.
#[derive(Clone, PartialEq, Debug)]
pub struct Spread {
    /// The figure.
    pub figure: String,
    /// The least value that holds.
    pub at_least: Option<f64>,
    /// The greatest value that holds.
    pub at_most: Option<f64>,
    /// The value with the set-up as it is: that of the worst seed.
    pub value: Option<f64>,
    /// The least and the greatest value over all variations and seeds.
    pub range: Option<(f64, f64)>,
    /// Whether the bound holds with the set-up as it is.
    pub holds: bool,
    /// The variation that moved the figure farthest.
    pub most: Option<Pull>,
    /// The variations in which the bound breaks; none if it does not hold anyway.
    pub breaks: Vec<Break>,
}

/// How far a variation moved a figure.
#[derive(Clone, PartialEq, Debug)]
pub struct Pull {
    /// The number and its other value, such as `array.*.overhead = 110us`.
    pub variation: String,
    /// By how much the figure of the worst seed differs from that with the set-up as it is.
    pub moved: f64,
}

/// A bound that breaks in a variation.
#[derive(Clone, PartialEq, Debug)]
pub struct Break {
    /// The figure.
    pub figure: String,
    /// The number and its other value, such as `array.*.overhead = 110us`.
    pub variation: String,
    /// The figure's value there: that of the worst seed; `None` if it has none.
    pub value: Option<f64>,
}

impl Spread {
    /// How far the value is from the nearer bound with the set-up as it is; negative if the bound does not
    /// hold.
    pub fn margin(&self) -> Option<f64> {
        margin(self.value?, self.at_least, self.at_most)
    }
}

/// The bounds of an experiment over all variations, in the order of its file.
pub fn spreads(margins: &Margins) -> Vec<Spread> {
    let bounded = margins.figures.iter().enumerate().filter(|(_, figure)| figure.is_bounded());
    let spread = |(place, figure): (usize, &CheckedFigure)| {
        let value = figure.worst();
        let holds = figure.fails.is_empty();
        let there = |variation: &Variation| variation.figures[place].worst();
        let pulls = margins.variations.iter().filter_map(|variation| {
            Some(Pull { variation: named(variation), moved: there(variation)? - value? })
        });
        let breaking =
            margins.variations.iter().filter(|variation| holds && !variation.figures[place].fails.is_empty());
        let all = std::iter::once(figure).chain(margins.variations.iter().map(|v| &v.figures[place]));
        let ranges: Vec<(f64, f64)> = all.filter_map(CheckedFigure::range).collect();
        let least = ranges.iter().map(|(least, _)| *least).min_by(f64::total_cmp);
        let greatest = ranges.iter().map(|(_, greatest)| *greatest).max_by(f64::total_cmp);
        Spread {
            figure: figure.name.clone(),
            at_least: figure.at_least,
            at_most: figure.at_most,
            value,
            range: least.zip(greatest),
            holds,
            most: pulls.max_by(|a, b| a.moved.abs().total_cmp(&b.moved.abs())),
            breaks: breaking
                .map(|variation| Break {
                    figure: figure.name.clone(),
                    variation: named(variation),
                    value: there(variation),
                })
                .collect(),
        }
    };
    bounded.map(spread).collect()
}

impl Break {
    /// In words, such as `vsd1-met is 94.8 % with array.*.overhead = 110us`.
    pub fn shown(&self, experiment: &Experiment) -> String {
        let unit = experiment.expect.iter().find(|expectation| expectation.figure == self.figure);
        let unit = unit.map_or("", |expectation| expectation.unit.as_str());
        let value = self.value.map_or_else(|| "not known".to_owned(), |value| quantity(value, unit));
        format!("{} is {value} with {}", self.figure, self.variation)
    }
}

fn named(Variation { number, to, .. }: &Variation) -> String {
    format!("{number} = {to}")
}
