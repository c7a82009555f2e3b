//! What transfers got, as the paper's figures 3 to 5 draw it: the rate of each, in the colour of its node.
//! The dashed line is the rate that was asked for. [`transfers`] draws those of a coordinator; `bulk` draws
//! those of an experiment with the same marks.

use std::collections::BTreeMap;

use super::{Axis, Drawing, Key, Line, Panel, Stroke, paint};
use crate::float::float;

/// What is drawn.
#[derive(Clone, PartialEq, Debug)]
pub struct TransfersFigure {
    /// The title.
    pub title: String,
    /// The names of the nodes. Everywhere else stands their place in this list.
    pub nodes: Vec<String>,
    /// The instant that the time of a transfer is counted from, for the axis.
    pub since: String,
    /// The transfers, rising by number.
    pub transfers: Vec<TransferMark>,
}

/// A transfer that has ended.
#[derive(Clone, PartialEq, Debug)]
pub struct TransferMark {
    /// Its number.
    pub number: u64,
    /// Where it went.
    pub node: usize,
    /// When it started, in seconds.
    pub started: f64,
    /// When it ended.
    pub ended: f64,
    /// Its rate in bytes a second; `None` if it was too short to have one.
    pub rate: Option<u64>,
    /// The rate that it asked for.
    pub asked: u64,
    /// The seconds from its request to its first byte; `None` if it had none.
    pub wait: Option<f64>,
}

const ASKED: Stroke = Stroke::dashed(usize::MAX);

/// The rates by number and by time, and the waits by number: an SVG.
///
/// # Errors
/// If it cannot be drawn.
pub fn transfers(figure: &TransfersFigure) -> anyhow::Result<String> {
    let of_all: Vec<_> = figure.transfers.iter().collect();
    let waits = of_all.iter().filter_map(|one| Some((float(one.number), one.node, one.wait?)));
    let waits = marks(figure.nodes.len(), waits);
    let wait = Axis::around("wait until the first byte (s)", true, &waits.iter().collect::<Vec<_>>());
    let by_number = Panel {
        title: "rate by number".to_owned(),
        x: numbers(&of_all),
        y: scale(figure),
        lines: rates(figure, &of_all),
    };
    let waited = Panel { title: "wait by number".to_owned(), x: by_number.x.clone(), y: wait, lines: waits };
    let panels = vec![by_number, by_time(figure), waited];
    paint::svg(&Drawing { title: figure.title.clone(), legend: legend(&figure.nodes), columns: 2, panels })
}

/// The rates by number, a panel for each node: an SVG.
///
/// # Errors
/// If it cannot be drawn.
pub fn transfers_by_node(figure: &TransfersFigure) -> anyhow::Result<String> {
    let x = numbers(&figure.transfers.iter().collect::<Vec<_>>());
    let panel = |(node, name): (usize, &String)| {
        let there: Vec<_> = figure.transfers.iter().filter(|one| one.node == node).collect();
        let title = format!("{name}: {} done", there.len());
        Panel { title, x: x.clone(), y: scale(figure), lines: rates(figure, &there) }
    };
    let panels: Vec<_> = figure.nodes.iter().enumerate().map(panel).collect();
    let legend = vec![Key { name: "asked for".to_owned(), stroke: ASKED }];
    let title = format!("{}: by node", figure.title);
    paint::svg(&Drawing { title, legend, columns: panels.len().clamp(1, 2), panels })
}

/// Nodes by their colours, and the dashed line.
pub(super) fn legend(nodes: &[String]) -> Vec<Key> {
    let key = |(colour, name): (usize, &String)| Key { name: name.clone(), stroke: Stroke::whole(colour) };
    let asked = Key { name: "asked for".to_owned(), stroke: ASKED };
    nodes.iter().enumerate().map(key).chain([asked]).collect()
}

/// A mark for each place, node and value. A piece for each: neighbours have nothing else to do with one
/// another.
pub(super) fn marks(nodes: usize, points: impl Iterator<Item = (f64, usize, f64)>) -> Vec<Line> {
    let mut pieces = vec![Vec::new(); nodes];
    for (x, node, value) in points {
        if let Some(pieces) = pieces.get_mut(node) {
            pieces.push(vec![(x, value)]);
        }
    }
    let line = |(node, pieces)| Line { stroke: Stroke::whole(node), marked: true, pieces };
    pieces.into_iter().enumerate().map(line).collect()
}

/// The rate that was asked for at each place, from one end of the axis to the other: a step between two
/// places with different rates.
pub(super) fn asked(from: f64, to: f64, places: impl Iterator<Item = (f64, u64)>) -> Line {
    let mut steps: Vec<(f64, u64)> = Vec::new();
    let mut last = from;
    for (x, rate) in places {
        match steps.last() {
            Some((_, before)) if *before == rate => {}
            Some(_) => steps.push((f64::midpoint(last, x), rate)),
            None => steps.push((from, rate)),
        }
        last = x;
    }
    let ends = steps.iter().skip(1).map(|(x, _)| *x).chain([to]);
    let piece = |((from, rate), to): (&(f64, u64), f64)| vec![(*from, mega(*rate)), (to, mega(*rate))];
    Line { stroke: ASKED, marked: false, pieces: steps.iter().zip(ends).map(piece).collect() }
}

fn by_time(figure: &TransfersFigure) -> Panel {
    let end = figure.transfers.iter().map(|one| one.ended).fold(0.0, f64::max);
    let (unit, length) = match end {
        ..300.0 => ("s", 1.0),
        ..10_800.0 => ("min", 60.0),
        ..345_600.0 => ("h", 3_600.0),
        _ => ("days", 86_400.0),
    };
    let to = if end > 0.0 { 1.02 * end / length } else { 1.0 };
    let mut lines = marks(figure.nodes.len(), std::iter::empty());
    let mut spans: BTreeMap<u64, Vec<(f64, f64)>> = BTreeMap::new();
    for one in &figure.transfers {
        let (from, until) = (one.started / length, one.ended / length);
        spans.entry(one.asked).or_default().push((from, until));
        if let (Some(rate), Some(line)) = (one.rate, lines.get_mut(one.node)) {
            // From its start to its end, unless that is too short to be seen.
            let rate = mega(rate);
            let is_seen = until - from > to / 250.0;
            line.pieces.push(if is_seen { vec![(from, rate), (until, rate)] } else { vec![(from, rate)] });
        }
    }
    lines.iter_mut().for_each(|line| line.marked = false);
    let spans = spans.into_iter().flat_map(|(rate, spans)| {
        let level = move |(from, until)| vec![(from, mega(rate)), (until, mega(rate))];
        joined(spans).into_iter().map(level)
    });
    lines.push(Line { stroke: ASKED, marked: false, pieces: spans.collect() });
    let label = format!("time since {} ({unit})", figure.since);
    Panel {
        title: "rate by time".to_owned(),
        x: Axis { label, from: 0.0, to, log: false },
        y: scale(figure),
        lines,
    }
}

/// Spans of time without those between that overlap.
fn joined(mut spans: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    spans.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut joined: Vec<(f64, f64)> = Vec::new();
    for (from, until) in spans {
        match joined.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(until),
            _ => joined.push((from, until)),
        }
    }
    joined
}

/// The rates of these transfers by number, and the rates that they asked for.
fn rates(figure: &TransfersFigure, drawn: &[&TransferMark]) -> Vec<Line> {
    let Axis { from, to, .. } = numbers(&figure.transfers.iter().collect::<Vec<_>>());
    let points = drawn.iter().filter_map(|one| Some((float(one.number), one.node, mega(one.rate?))));
    let mut lines = marks(figure.nodes.len(), points);
    lines.push(asked(from, to, drawn.iter().map(|one| (float(one.number), one.asked))));
    lines
}

fn numbers(drawn: &[&TransferMark]) -> Axis {
    let number = |one: Option<&&TransferMark>| one.map_or(0.0, |one| float(one.number));
    let (from, to) = (number(drawn.first()) - 1.0, number(drawn.last()) + 1.0);
    Axis { label: "transfer".to_owned(), from, to, log: false }
}

/// The axis of the rates, the same in all panels.
fn scale(figure: &TransfersFigure) -> Axis {
    let all: Vec<_> = figure.transfers.iter().collect();
    Axis::around("rate (MB/s)", true, &rates(figure, &all).iter().collect::<Vec<_>>())
}

fn mega(bytes_per_second: u64) -> f64 {
    float(bytes_per_second) / 1e6
}

#[cfg(test)]
mod tests;
