//! The figure of an experiment with each number of its set-up varied: a panel for each bound, with the
//! figure's value over the numbers. A number has the place that it has in the table beside the figure, from
//! 1 on.

use super::{Axis, Drawing, Key, Line, Panel, Stroke, paint};
use crate::experiment::Experiment;
use crate::margins::Margins;

/// The figure as SVG.
///
/// # Errors
/// If it cannot be drawn.
pub fn margins(experiment: &Experiment, margins: &Margins) -> anyhow::Result<String> {
    paint::svg(&drawing(experiment, margins))
}

fn drawing(experiment: &Experiment, margins: &Margins) -> Drawing {
    let numbers = margins.numbers();
    let place = |name: &str| {
        numbers
            .iter()
            .position(|(known, _)| *known == name)
            .map_or(0.0, |place| crate::float::float(place as u64 + 1))
    };
    let mut panels = Vec::new();
    for (number, figure) in margins.figures.iter().enumerate().filter(|(_, figure)| figure.is_bounded()) {
        let points = margins
            .variations
            .iter()
            .filter_map(|variation| Some((place(&variation.number), variation.figures[number].worst()?)));
        let to = crate::float::float(numbers.len() as u64) + 0.5;
        let level = |value: f64| vec![vec![(0.5, value), (to, value)]];
        let mut lines =
            vec![Line { stroke: VARIED, marked: true, pieces: points.map(|point| vec![point]).collect() }];
        let as_it_is = figure.worst().map(|value| (AS_IT_IS, value));
        let bounds = [figure.at_least, figure.at_most].map(|bound| bound.map(|bound| (BOUND, bound)));
        for (stroke, value) in as_it_is.into_iter().chain(bounds.into_iter().flatten()) {
            lines.push(Line { stroke, marked: false, pieces: level(value) });
        }
        let x = Axis { label: "number of the set-up".to_owned(), from: 0.5, to, log: false };
        let expectation = experiment.expect.get(number);
        let y = around(expectation.map_or("", |expectation| &expectation.unit), &lines);
        panels.push(Panel { title: figure.name.clone(), x, y, lines });
    }
    let legend = [("with one number varied", VARIED), ("as it is", AS_IT_IS), ("bound", BOUND)];
    Drawing {
        title: format!("{}: the figures with each number varied", margins.experiment),
        legend: legend.map(|(name, stroke)| Key { name: name.to_owned(), stroke }).to_vec(),
        columns: 2.min(panels.len().max(1)),
        panels,
    }
}

const VARIED: Stroke = Stroke::whole(0);
const AS_IT_IS: Stroke = Stroke::whole(usize::MAX);
const BOUND: Stroke = Stroke::dashed(1);

/// An axis with all values on it. It need not begin at zero, because what counts is the distance to the
/// bound.
fn around(unit: &str, lines: &[Line]) -> Axis {
    let values = || lines.iter().flat_map(|line| line.pieces.iter().flatten()).map(|(_, value)| *value);
    let (least, most) = values().fold((f64::MAX, f64::MIN), |(least, most), v| (least.min(v), most.max(v)));
    let spare = ((most - least) * 0.1).max(most.abs() * 0.01).max(1e-6);
    Axis { label: unit.to_owned(), from: least - spare, to: most + spare, log: false }
}
