//! Throughput over the delay of packets, a line for each run.

use super::{Axis, Drawing, Key, Line, Panel, Stroke, millis};
use crate::experiment::Experiment;
use crate::packet_delay::rates;
use crate::study::Records;

/// The figure.
pub(super) fn drawing(experiment: &Experiment, records: &Records) -> Drawing {
    let (mut lines, mut legend) = (Vec::new(), Vec::new());
    let says = experiment.says();
    let runs = experiment.plot.runs.iter();
    for (colour, (run, measured)) in
        runs.filter_map(|run| Some((run, records.measured.get(run)?))).enumerate()
    {
        let points = rates(measured).into_iter().map(|(delay_us, rate)| (millis(delay_us), rate)).collect();
        lines.push(Line { stroke: Stroke::whole(colour), marked: true, pieces: vec![points] });
        legend.push(Key { name: says[run.as_str()].to_owned(), stroke: Stroke::whole(colour) });
    }
    let delays = lines.iter().flat_map(|line| line.pieces.iter().flatten()).map(|point| point.0);
    let x = Axis { label: "delay (ms)".to_owned(), from: 0.0, to: delays.fold(1.0, f64::max), log: false };
    let y = Axis::around("throughput (MB/s)", false, &lines.iter().collect::<Vec<_>>());
    let panels = vec![Panel { title: String::new(), x, y, lines }];
    Drawing { title: experiment.id.clone(), legend, columns: 1, panels }
}
