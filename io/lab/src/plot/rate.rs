//! Latency over the offered rate, for the volume whose rate rises in steps. A line for each run, a line for
//! the SLO, and a line for a dedicated array.

use super::{Axis, Drawing, Key, Line, Panel, Stroke, drawn_volumes};
use crate::experiment::{Experiment, StepsSpec};
use crate::float::float;
use crate::run::{Record, Window};
use crate::study::{Records, View, mean, mean_latency_ms, mean_target_ms};

/// The figure.
pub(super) fn drawing(experiment: &Experiment, records: &Records) -> Drawing {
    let (mut lines, mut legend) = (Vec::new(), Vec::new());
    let mut push = |name: String, stroke, points: Vec<(f64, f64)>| {
        legend.push(Key { name, stroke });
        lines.push(Line { stroke, marked: true, pieces: vec![points] });
    };
    let volumes = drawn_volumes(experiment);
    let stepped =
        volumes.iter().find_map(|(_, name)| Some((*name, experiment.volume[*name].steps.as_ref()?)));
    let Some((volume, steps)) = stepped else { return empty(experiment) };
    let mut colours = 0..;
    for run in &experiment.plot.runs {
        let Some(record) = records.runs.get(run) else { continue };
        let of = |value: fn(&[&Window]) -> Option<f64>| points(record, volume, steps, value);
        let colour = colours.next().unwrap_or_default();
        push(
            format!("{volume}, {}", experiment.run[run].says),
            Stroke::whole(colour),
            of(|step| mean_latency_ms(step.iter().copied())),
        );
        if colour == 0 {
            push(
                "its SLO".to_owned(),
                Stroke::dashed(usize::MAX),
                of(|step| mean_target_ms(step.iter().copied())),
            );
        }
    }
    for (name, curve) in &records.curves {
        let points = curve.reached().map(|point| (point.offered_iops, point.mean_us / 1e3)).collect();
        push(format!("array of its own ({name})"), Stroke::whole(colours.next().unwrap_or_default()), points);
    }
    let refs: Vec<_> = lines.iter().collect();
    let y = Axis::around("mean latency (ms)", experiment.plot.log_latency, &refs);
    let most =
        lines.iter().flat_map(|line| line.pieces.iter().flatten()).map(|(x, _)| *x).fold(1.0, f64::max);
    let x = Axis { label: "offered rate (IO/s)".to_owned(), from: 0.0, to: most * 1.03, log: false };
    let panel = Panel { title: String::new(), x, y, lines };
    Drawing { title: experiment.id.clone(), legend, columns: 1, panels: vec![panel] }
}

fn empty(experiment: &Experiment) -> Drawing {
    Drawing { title: experiment.id.clone(), legend: Vec::new(), columns: 1, panels: Vec::new() }
}

/// A value of each step over the rate that was offered in it.
fn points(
    record: &Record,
    volume: &str,
    steps: &StepsSpec,
    value: fn(&[&Window]) -> Option<f64>,
) -> Vec<(f64, f64)> {
    let Some(view) = View::of(record, volume) else { return Vec::new() };
    let windows: Vec<_> = view.windows().collect();
    let each = (windows.len() / steps.rates().len().max(1)).max(1);
    let steps = windows.chunks(each).map(|step| &step[step.len().min(2) - 1..]);
    steps
        .filter_map(|step| Some((mean(step.iter().map(|window| float(window.offered)))?, value(step)?)))
        .collect()
}
