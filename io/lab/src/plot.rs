//! The third stage: the figure of each experiment, as SVG and as PNG, from the records of one seed.
//!
//! A module for each kind of figure first collects what is to be drawn ([`Drawing`]); `paint` then paints it.
//! So the kinds of figures know nothing of pixels, and the painting knows nothing of experiments. Every
//! figure includes the run without control.

mod bulk;
mod cdf;
mod cell;
mod curve;
mod delay;
mod margins;
mod paint;
mod performance;
mod png;
mod ports;
mod rate;
mod sweep;
mod time;
mod transfers;
mod tuning;

pub(crate) use cell::{CellFigure, CellRun, cell};
pub use margins::margins;
pub use transfers::{TransferMark, TransfersFigure, transfers, transfers_by_node};
pub use tuning::{TuningFigure, tuning};

use crate::experiment::{Experiment, PlotKind};
use crate::run::{Store, Window};
use crate::study::Records;

/// A figure: panels in rows of equal columns.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Drawing {
    title: String,
    legend: Vec<Key>,
    columns: usize,
    panels: Vec<Panel>,
}

/// An entry of the legend.
#[derive(Clone, PartialEq, Debug)]
struct Key {
    name: String,
    stroke: Stroke,
}

/// The look of a line: a colour of the palette by its number, solid or dashed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Stroke {
    colour: usize,
    dashed: bool,
}

#[derive(Clone, PartialEq, Debug)]
struct Panel {
    title: String,
    x: Axis,
    y: Axis,
    lines: Vec<Line>,
}

#[derive(Clone, PartialEq, Debug)]
struct Axis {
    /// With the unit.
    label: String,
    from: f64,
    to: f64,
    log: bool,
}

#[derive(Clone, PartialEq, Debug)]
struct Line {
    stroke: Stroke,
    /// Whether each point is marked.
    marked: bool,
    /// Pieces of the line, with a gap between one and the next.
    pieces: Vec<Vec<(f64, f64)>>,
}

/// Draws the figure of an experiment with the records of a seed into `<id>.svg` and `<id>.png`. Returns the
/// SVG.
///
/// # Errors
/// If a file cannot be written.
pub fn plot(experiment: &Experiment, records: &Records, store: &Store) -> anyhow::Result<String> {
    let drawing = match experiment.plot.kind {
        PlotKind::Time => time::drawing(experiment, records),
        PlotKind::Rate => rate::drawing(experiment, records),
        PlotKind::Sweep => sweep::drawing(experiment, records),
        PlotKind::Performance => performance::drawing(experiment, records),
        PlotKind::Ports => ports::drawing(experiment, records),
        PlotKind::Cdf => cdf::drawing(experiment, records),
        PlotKind::Delay => delay::drawing(experiment, records),
        PlotKind::Curve => curve::drawing(experiment, records),
        PlotKind::Bulk => bulk::drawing(experiment, records),
    };
    let svg = paint::svg(&drawing)?;
    let file = |extension: &str| store.of(&experiment.id, &format!("{}.{extension}", experiment.id));
    store.write(&file("svg"), &svg)?;
    store.write(&file("png"), paint::png(&drawing)?)?;
    Ok(svg)
}

/// The volumes that are drawn, with the number of the colour of each.
fn drawn_volumes(experiment: &Experiment) -> Vec<(usize, &str)> {
    let names = experiment.volume.keys().map(String::as_str).enumerate();
    let wanted = |name: &str| {
        experiment.plot.volumes.as_ref().is_none_or(|volumes| volumes.iter().any(|volume| volume == name))
    };
    names.filter(|(_, name)| wanted(name)).collect()
}

/// The points of windows over the time since `from_us`. A new piece begins after each window without a value.
fn pieces<'r>(
    windows: impl Iterator<Item = &'r Window>,
    from_us: u64,
    value: impl Fn(&Window) -> Option<f64>,
) -> Vec<Vec<(f64, f64)>> {
    joined(windows.map(|window| (seconds(window.end_us - from_us), value(window))))
}

/// The points, in pieces. A new piece begins after each point without a value.
fn joined(points: impl Iterator<Item = (f64, Option<f64>)>) -> Vec<Vec<(f64, f64)>> {
    let mut pieces: Vec<Vec<(f64, f64)>> = Vec::new();
    let mut joined = false;
    for (x, value) in points {
        match (value, joined) {
            (Some(value), true) => pieces.last_mut().expect("one has begun").push((x, value)),
            (Some(value), false) => pieces.push(vec![(x, value)]),
            (None, _) => {}
        }
        joined = value.is_some();
    }
    pieces
}

impl Axis {
    /// An axis to a little above the greatest value. It begins at zero, or, if logarithmic, at the decade of
    /// the least value.
    fn around(label: &str, log: bool, lines: &[&Line]) -> Self {
        let values = || lines.iter().flat_map(|line| line.pieces.iter().flatten()).map(|(_, value)| *value);
        let most = values().fold(0.0, f64::max);
        let most = if most > 0.0 { most } else { 1.0 };
        let least = values().filter(|value| *value > 0.0).fold(most, f64::min);
        let (from, to) =
            if log { (10_f64.powf(least.log10().floor()), most * 1.5) } else { (0.0, most * 1.08) };
        Self { label: label.to_owned(), from, to, log }
    }
}

impl Stroke {
    const fn whole(colour: usize) -> Self {
        Self { colour, dashed: false }
    }

    const fn dashed(colour: usize) -> Self {
        Self { colour, dashed: true }
    }
}

#[allow(clippy::cast_precision_loss)] // far below 2^53
fn seconds(us: u64) -> f64 {
    us as f64 / 1e6
}

#[allow(clippy::cast_precision_loss)] // far below 2^53
fn millis(us: u64) -> f64 {
    us as f64 / 1e3
}

#[cfg(test)]
mod tests;
