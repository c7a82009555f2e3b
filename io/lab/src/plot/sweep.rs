//! Latency over the value of a sweep: a line for each run. A point is the 95th percentile of the volume's
//! window means.

use super::{Axis, Drawing, Key, Line, Panel, Stroke, drawn_volumes, millis};
use crate::experiment::Experiment;
use crate::run::Record;
use crate::study::{Records, View};

/// The figure, of the first volume that is drawn.
pub(super) fn drawing(experiment: &Experiment, records: &Records) -> Drawing {
    let volume = drawn_volumes(experiment).first().map_or("", |(_, name)| *name);
    let (mut lines, mut legend) = (Vec::new(), Vec::new());
    for (colour, run) in experiment.plot.runs.iter().enumerate() {
        let sweep = records.sweep(run);
        let points =
            sweep.iter().filter_map(|(value, record)| Some((*value, high_latency_ms(record, volume)?)));
        let stroke = Stroke::whole(colour);
        lines.push(Line { stroke, marked: true, pieces: vec![points.collect()] });
        legend.push(Key { name: format!("{volume}, {}", experiment.run[run].says), stroke });
        if colour == 0 {
            let targets =
                sweep.iter().filter_map(|(value, record)| Some((*value, target_ms(record, volume)?)));
            let stroke = Stroke::dashed(usize::MAX);
            lines.push(Line { stroke, marked: false, pieces: vec![targets.collect()] });
            legend.push(Key { name: "its SLO".to_owned(), stroke });
        }
    }
    let values = || lines.iter().flat_map(|line| line.pieces.iter().flatten()).map(|(x, _)| *x);
    let (least, most) = values().fold((f64::MAX, f64::MIN), |(least, most), x| (least.min(x), most.max(x)));
    let key = experiment.plot.runs.iter().find_map(|run| experiment.run[run].sweep.as_ref());
    let label = key.map_or("", |sweep| sweep.key.rsplit('.').next().unwrap_or(&sweep.key));
    let x =
        Axis { label: label.to_owned(), from: least.min(most) - 0.2, to: most.max(least) + 0.2, log: false };
    let refs: Vec<_> = lines.iter().collect();
    let y = Axis::around("95 in 100 window means (ms)", experiment.plot.log_latency, &refs);
    let panel = Panel { title: String::new(), x, y, lines };
    Drawing { title: experiment.id.clone(), legend, columns: 1, panels: vec![panel] }
}

fn high_latency_ms(record: &Record, volume: &str) -> Option<f64> {
    let windows = View::of(record, volume)?.windows().filter(|window| window.offered > 0);
    let mut means: Vec<u64> = windows.filter_map(|window| window.mean_us).collect();
    means.sort_unstable();
    let place = (means.len() * 95).div_ceil(100).checked_sub(1)?;
    Some(millis(means[place]))
}

fn target_ms(record: &Record, volume: &str) -> Option<f64> {
    View::of(record, volume)?.windows().find_map(|window| window.target_us).map(millis)
}
