//! How the reads of a resource answered a step of the delay, and what a law makes of that: a figure of
//! `weir throttle tune`.

use super::{Axis, Drawing, Key, Line, Panel, Stroke, joined, paint};

/// What is drawn. A point is an instant in seconds and a time in milliseconds.
#[derive(Debug)]
pub struct TuningFigure {
    /// The title.
    pub title: String,
    /// The mean wait of each interval, around a step of the delay at 0 s.
    pub recorded: Vec<(f64, Option<f64>)>,
    /// The wait by the model that fits it.
    pub fitted: Vec<(f64, f64)>,
    /// The wait that the reads must not exceed.
    pub threshold: f64,
    /// The wait under the law with the proposed gains, from the onset of the writers on.
    pub wait: Vec<(f64, f64)>,
    /// The delay that the law sets.
    pub delay: Vec<(f64, f64)>,
}

/// The figure as SVG.
///
/// # Errors
/// If it cannot be drawn.
pub fn tuning(figure: &TuningFigure) -> anyhow::Result<String> {
    const RECORDED: Stroke = Stroke::whole(0);
    const FITTED: Stroke = Stroke::whole(1);
    const DELAY: Stroke = Stroke::whole(2);
    const THRESHOLD: Stroke = Stroke::dashed(usize::MAX);
    let line = |stroke, points: &[(f64, f64)]| Line { stroke, marked: false, pieces: vec![points.to_vec()] };
    let recorded = Line { stroke: RECORDED, marked: false, pieces: joined(figure.recorded.iter().copied()) };
    let end = figure.wait.last().map_or(1.0, |(x, _)| *x);
    let threshold = line(THRESHOLD, &[(0.0, figure.threshold), (end, figure.threshold)]);
    let panels = vec![
        panel("recorded: the delay is raised at 0 s", vec![recorded, line(FITTED, &figure.fitted)]),
        panel(
            "predicted: the writers begin at 0 s",
            vec![threshold, line(FITTED, &figure.wait), line(DELAY, &figure.delay)],
        ),
    ];
    let key = |name: &str, stroke| Key { name: name.to_owned(), stroke };
    let legend = vec![
        key("wait, recorded", RECORDED),
        key("wait, by the model", FITTED),
        key("delay", DELAY),
        key("threshold", THRESHOLD),
    ];
    paint::svg(&Drawing { title: figure.title.clone(), legend, columns: 2, panels })
}

fn panel(title: &str, lines: Vec<Line>) -> Panel {
    let xs = || lines.iter().flat_map(|line| line.pieces.iter().flatten()).map(|(x, _)| *x);
    let (from, to) = (xs().fold(0.0, f64::min), xs().fold(1.0, f64::max));
    let x = Axis { label: "time (s)".to_owned(), from, to, log: false };
    let y = Axis::around("time (ms)", false, &lines.iter().collect::<Vec<_>>());
    Panel { title: title.to_owned(), x, y, lines }
}
