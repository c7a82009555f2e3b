//! Latency and throughput over the time after the warm-up, a column for each run, on the same scales.

use super::{Axis, Drawing, Key, Line, Panel, Stroke, drawn_volumes, millis, pieces, seconds};
use crate::experiment::Experiment;
use crate::float::float;
use crate::run::{Record, Window};
use crate::study::Records;

/// The figure.
pub(super) fn drawing(experiment: &Experiment, records: &Records) -> Drawing {
    let spec = &experiment.plot;
    let until = spec.until.map_or(f64::INFINITY, |text| text.0.as_secs_f64());
    let runs: Vec<_> = spec.runs.iter().filter_map(|run| Some((run, records.runs.get(run)?))).collect();
    let volumes = drawn_volumes(experiment);
    let latency = runs.iter().map(|(_, record)| latency(record, &volumes, until)).collect();
    let throughput = runs.iter().map(|(_, record)| throughput(record, &volumes, until)).collect();
    let end = runs.iter().map(|(_, record)| record.judged().as_secs_f64()).fold(0.0, f64::max).min(until);
    let x = Axis { label: "time (s)".to_owned(), from: 0.0, to: end.max(1.0), log: false };
    let row = |label: &str, log: bool, lines: Vec<Vec<Line>>, titled: bool| -> Vec<Panel> {
        let y = Axis::around(label, log, &lines.iter().flatten().collect::<Vec<_>>());
        let title = |run: &String| if titled { experiment.run[run].says.clone() } else { String::new() };
        let panels = runs.iter().zip(lines);
        panels
            .map(|((run, _), lines)| Panel { title: title(run), x: x.clone(), y: y.clone(), lines })
            .collect()
    };
    let mut panels = row("latency (ms)", spec.log_latency, latency, true);
    panels.extend(row("throughput (IO/s)", false, throughput, false));
    let mut legend: Vec<_> = volumes
        .iter()
        .map(|(colour, name)| Key { name: (*name).to_owned(), stroke: Stroke::whole(*colour) })
        .collect();
    legend.push(Key { name: "its SLO".to_owned(), stroke: Stroke::dashed(usize::MAX) });
    Drawing { title: experiment.id.clone(), legend, columns: runs.len().max(1), panels }
}

/// The mean latency of each volume's windows, and the promised latency.
fn latency(record: &Record, volumes: &[(usize, &str)], until: f64) -> Vec<Line> {
    let mean = |window: &Window| window.mean_us.map(millis);
    let target = |window: &Window| window.target_us.filter(|_| window.offered > 0).map(millis);
    let mut lines = lines(record, volumes, until, target, Stroke::dashed);
    lines.extend(self::lines(record, volumes, until, mean, Stroke::whole));
    lines
}

/// The rate at which each volume's requests were answered.
fn throughput(record: &Record, volumes: &[(usize, &str)], until: f64) -> Vec<Line> {
    lines(record, volumes, until, |window| Some(float(window.completed)), Stroke::whole)
}

fn lines(
    record: &Record,
    volumes: &[(usize, &str)],
    until: f64,
    value: impl Fn(&Window) -> Option<f64> + Copy,
    stroke: fn(usize) -> Stroke,
) -> Vec<Line> {
    let place = |name: &str| record.header.volumes.iter().position(|known| known == name);
    let drawn = volumes.iter().filter_map(|(colour, name)| Some((*colour, place(name)?)));
    drawn
        .map(|(colour, place)| {
            let from_us = record.header.warm_up_us;
            let drawn =
                |window: &&Window| window.end_us > from_us && seconds(window.end_us - from_us) <= until;
            let windows = record.windows[place].iter().filter(drawn);
            Line { stroke: stroke(colour), marked: false, pieces: pieces(windows, from_us, value) }
        })
        .collect()
}
