//! The rate of each transfer over its number, a panel for each run and a colour for each node: the paper's
//! figures 3 to 5. The dashed line is the rate that was asked for.

use super::{Axis, Drawing, Key, Line, Panel, Stroke};
use crate::bulk::BulkRecord;
use crate::experiment::Experiment;
use crate::float::float;
use crate::study::Records;

/// The figure.
pub(super) fn drawing(experiment: &Experiment, records: &Records) -> Drawing {
    let runs = experiment.plot.runs.iter().filter_map(|run| Some((run, records.bulk.get(run)?)));
    let runs: Vec<_> = runs.collect();
    let says = experiment.says();
    let asked = Stroke::dashed(usize::MAX);
    let mut legend: Vec<_> = runs.first().map_or(Vec::new(), |(_, record)| {
        let key =
            |(colour, name): (usize, &String)| Key { name: name.clone(), stroke: Stroke::whole(colour) };
        record.nodes.iter().enumerate().map(key).collect()
    });
    legend.push(Key { name: "asked for".to_owned(), stroke: asked });
    let all: Vec<_> = runs.iter().map(|(_, record)| lines(record, asked)).collect();
    let scale = Axis::around("rate (MB/s)", true, &all.iter().flatten().collect::<Vec<_>>());
    let panel = |((run, record), lines): (&(&String, &BulkRecord), Vec<Line>)| {
        let count = u32::try_from(record.transfers.len()).map_or(0.0, f64::from);
        let x = Axis { label: "transfer".to_owned(), from: 0.0, to: count + 1.0, log: false };
        let total = record.total().map_or(String::new(), |total| format!(": {total:.0} MB/s in all"));
        Panel { title: format!("{}{total}", says[run.as_str()]), x, y: scale.clone(), lines }
    };
    let panels: Vec<_> = runs.iter().zip(all).map(panel).collect();
    Drawing { title: experiment.id.clone(), legend, columns: panels.len().clamp(1, 2), panels }
}

fn lines(record: &BulkRecord, asked: Stroke) -> Vec<Line> {
    let count = u32::try_from(record.transfers.len()).map_or(0.0, f64::from);
    let rate = float(record.rate) / 1e6;
    let of_node = |node: usize| {
        let points = record.transfers.iter().zip(1_u32..).filter(|(one, _)| one.node == Some(node));
        // A piece for each point: neighbours in number have nothing else to do with one another.
        let points = points.filter_map(|(one, number)| Some(vec![(f64::from(number), one.rate()?)]));
        Line { stroke: Stroke::whole(node), marked: true, pieces: points.collect() }
    };
    let line = Line { stroke: asked, marked: false, pieces: vec![vec![(0.0, rate), (count + 1.0, rate)]] };
    (0..record.nodes.len()).map(of_node).chain([line]).collect()
}
