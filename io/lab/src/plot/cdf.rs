//! The share of the intervals with at most a given latency, for a volume with a latency target. For other
//! volumes, the share of the intervals with at most a given throughput. A panel for each volume, a line for
//! each run.

use weir_model::Target;

use super::{Axis, Drawing, Key, Line, Panel, Stroke, drawn_volumes};
use crate::experiment::Experiment;
use crate::float::float;
use crate::study::Records;
use crate::study::application::Application;

/// The share of a latency's tail that is left out of the figure, so that the rest can be seen.
const TAIL: f64 = 0.02;

/// The figure.
pub(super) fn drawing(experiment: &Experiment, records: &Records) -> Drawing {
    let runs = &experiment.plot.runs;
    let volumes = drawn_volumes(experiment);
    let panels = volumes.iter().filter_map(|(_, name)| panel(name, runs, records)).collect();
    let key = |(colour, run): (usize, &String)| Key {
        name: experiment.run[run].says.clone(),
        stroke: Stroke::whole(colour),
    };
    let legend = runs.iter().enumerate().map(key).collect();
    Drawing { title: experiment.id.clone(), legend, columns: volumes.len().max(1), panels }
}

fn panel(volume: &str, runs: &[String], records: &Records) -> Option<Panel> {
    let mut lines = Vec::new();
    let (mut label, mut most) = (String::new(), 0.0_f64);
    for (colour, run) in runs.iter().enumerate() {
        let application = Application::of(records.runs.get(run)?, volume)?;
        let is_latency = matches!(application.target(), Some(Target::Latency(_)));
        let intervals = application.intervals();
        let values = intervals.iter();
        let mut values: Vec<f64> = if is_latency {
            label = format!("{volume}: mean latency of an interval (ms)");
            values.filter_map(|interval| interval.latency_ms).collect()
        } else {
            label = format!("{volume}: throughput of an interval (MB/s)");
            values.map(|interval| interval.throughput / 1e6).collect()
        };
        values.sort_by(f64::total_cmp);
        let count = float(values.len() as u64);
        let share = |place: usize| float(place as u64 + 1) / count;
        let drawn = values.iter().enumerate().map(|(place, value)| (*value, share(place)));
        let shown = drawn.clone().filter(|(_, share)| !is_latency || *share <= 1.0 - TAIL);
        most = shown.map(|(value, _)| value).fold(most, f64::max);
        lines.push(Line { stroke: Stroke::whole(colour), marked: false, pieces: vec![drawn.collect()] });
    }
    let most = if most > 0.0 { 1.05 * most } else { 1.0 };
    for line in &mut lines {
        line.pieces.iter_mut().for_each(|piece| piece.retain(|(value, _)| *value <= most));
    }
    let x = Axis { label, from: 0.0, to: most, log: false };
    let y = Axis { label: "share of the intervals".to_owned(), from: 0.0, to: 1.0, log: false };
    Some(Panel { title: volume.to_owned(), x, y, lines })
}
