//! What became of two volumes in the runs of a cell, and what each law decided: a figure of
//! `weir lab guarantee --cell`.

use super::{Axis, Drawing, Key, Line, Panel, Stroke, joined, paint};

/// What is drawn. A point is an instant in seconds with a latency in milliseconds, or with a number of
/// requests.
#[derive(Debug)]
pub(crate) struct CellFigure {
    pub(crate) title: String,
    /// What the latencies are, such as `mean`.
    pub(crate) metric: &'static str,
    /// What is promised.
    pub(crate) limit_ms: f64,
    pub(crate) runs: Vec<CellRun>,
}

/// A run.
#[derive(Debug)]
pub(crate) struct CellRun {
    pub(crate) name: String,
    /// The latencies of the promised volume.
    pub(crate) promised: Vec<(f64, Option<f64>)>,
    /// Those of the other one.
    pub(crate) other: Vec<(f64, Option<f64>)>,
    /// How many requests may be at the array.
    pub(crate) depth: Vec<(f64, f64)>,
    /// How many of the promised volume, and of the other one.
    pub(crate) bounds: [Vec<(f64, f64)>; 2],
}

const PROMISED: Stroke = Stroke::whole(0);
const OTHER: Stroke = Stroke::whole(1);
const DEPTH: Stroke = Stroke::whole(2);
const LIMIT: Stroke = Stroke::dashed(usize::MAX);

/// The figure as SVG: a row for each run, with its latencies and its decisions.
///
/// # Errors
/// If it cannot be drawn.
pub(crate) fn cell(figure: &CellFigure) -> anyhow::Result<String> {
    let end = figure.runs.iter().flat_map(|run| &run.promised).map(|(x, _)| *x).fold(1.0, f64::max);
    let panel = |title: String, label: &str, lines: Vec<Line>| {
        let x = Axis { label: "time (s)".to_owned(), from: 0.0, to: end, log: false };
        let y = Axis::around(label, true, &lines.iter().collect::<Vec<_>>());
        Panel { title, x, y, lines }
    };
    let line = |stroke, pieces| Line { stroke, marked: false, pieces };
    let latencies = |run: &CellRun| {
        let limit = line(LIMIT, vec![vec![(0.0, figure.limit_ms), (end, figure.limit_ms)]]);
        let of = |stroke, points: &[(f64, Option<f64>)]| line(stroke, joined(points.iter().copied()));
        let lines = vec![of(OTHER, &run.other), of(PROMISED, &run.promised), limit];
        panel(run.name.clone(), &format!("{} latency (ms)", figure.metric), lines)
    };
    let decisions = |run: &CellRun| {
        let [promised, other] = &run.bounds;
        let lines = [(DEPTH, &run.depth), (OTHER, other), (PROMISED, promised)];
        let lines = lines.into_iter().filter(|(_, points)| !points.is_empty());
        let lines: Vec<Line> = lines.map(|(stroke, points)| line(stroke, vec![points.clone()])).collect();
        let title = if lines.is_empty() { "decides nothing".to_owned() } else { "decides".to_owned() };
        panel(title, "requests at the array", lines)
    };
    let key = |name: &str, stroke| Key { name: name.to_owned(), stroke };
    let legend = vec![
        key("the promised volume", PROMISED),
        key("the other volume", OTHER),
        key("depth", DEPTH),
        key("what is promised", LIMIT),
    ];
    let panels = figure.runs.iter().flat_map(|run| [latencies(run), decisions(run)]).collect();
    paint::svg(&Drawing { title: figure.title.clone(), legend, columns: 2, panels })
}
