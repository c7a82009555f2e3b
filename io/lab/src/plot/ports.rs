//! The share of each port in the sum of the bounds of all volumes, over the time after the warm-up. A column
//! for each run.

use super::{Axis, Drawing, Key, Line, Panel, Stroke, drawn_volumes};
use crate::experiment::Experiment;
use crate::run::Record;
use crate::study::Records;
use crate::study::application::Application;

/// The figure.
pub(super) fn drawing(experiment: &Experiment, records: &Records) -> Drawing {
    let runs: Vec<_> =
        experiment.plot.runs.iter().filter_map(|run| Some((run, records.runs.get(run)?))).collect();
    let names: Vec<&str> = drawn_volumes(experiment).into_iter().map(|(_, name)| name).collect();
    let mut ports = 0;
    let mut panels = Vec::new();
    for (run, record) in &runs {
        let lines = lines(record, &names);
        ports = ports.max(lines.len());
        let to = record.judged().as_secs_f64();
        panels.push(Panel {
            title: experiment.run[*run].says.clone(),
            x: Axis { label: "time (s)".to_owned(), from: 0.0, to, log: false },
            y: Axis { label: "share of the allocation (%)".to_owned(), from: 0.0, to: 60.0, log: false },
            lines,
        });
    }
    let key = |port: usize| Key { name: format!("port {port}"), stroke: Stroke::whole(port) };
    Drawing {
        title: experiment.id.clone(),
        legend: (0..ports).map(key).collect(),
        columns: runs.len().max(1),
        panels,
    }
}

fn lines(record: &Record, volumes: &[&str]) -> Vec<Line> {
    let applications: Vec<_> = volumes.iter().filter_map(|name| Application::of(record, name)).collect();
    let Some(first) = applications.first() else { return Vec::new() };
    let mut points: Vec<Vec<(f64, f64)>> = Vec::new();
    #[allow(clippy::cast_precision_loss)] // far below 2^53
    let from = record.header.warm_up_us as f64 / 1e6;
    for interval in first.intervals() {
        let bounds: Vec<Vec<f64>> = applications.iter().map(|one| one.bounds_at(interval.end)).collect();
        let all: f64 = bounds.iter().flatten().sum();
        let ports = bounds.iter().map(Vec::len).max().unwrap_or(0);
        points.resize(ports, Vec::new());
        for (port, points) in points.iter_mut().enumerate() {
            let here: f64 = bounds.iter().filter_map(|bounds| bounds.get(port)).sum();
            points.push((interval.end - from, if all > 0.0 { 100.0 * here / all } else { 0.0 }));
        }
    }
    let line = |(port, points)| Line { stroke: Stroke::whole(port), marked: false, pieces: vec![points] };
    points.into_iter().enumerate().map(line).collect()
}
