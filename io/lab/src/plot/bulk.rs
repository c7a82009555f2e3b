//! The rate of each transfer over its number, a panel for each run and a colour for each node: the paper's
//! figures 3 to 5. The dashed line is the rate that was asked for.

use super::transfers::{asked, legend, marks};
use super::{Axis, Drawing, Line, Panel};
use crate::bulk::BulkRecord;
use crate::experiment::Experiment;
use crate::study::Records;

/// The figure.
pub(super) fn drawing(experiment: &Experiment, records: &Records) -> Drawing {
    let runs = experiment.plot.runs.iter().filter_map(|run| Some((run, records.bulk.get(run)?)));
    let runs: Vec<_> = runs.collect();
    let says = experiment.says();
    let legend = runs.first().map_or_else(|| legend(&[]), |(_, record)| legend(&record.nodes));
    let all: Vec<_> = runs.iter().map(|(_, record)| lines(record)).collect();
    let scale = Axis::around("rate (MB/s)", true, &all.iter().flatten().collect::<Vec<_>>());
    let panel = |((run, record), lines): (&(&String, &BulkRecord), Vec<Line>)| {
        let x = Axis { label: "transfer".to_owned(), from: 0.0, to: count(record) + 1.0, log: false };
        let total = record.total().map_or(String::new(), |total| format!(": {total:.0} MB/s in all"));
        Panel { title: format!("{}{total}", says[run.as_str()]), x, y: scale.clone(), lines }
    };
    let panels: Vec<_> = runs.iter().zip(all).map(panel).collect();
    Drawing { title: experiment.id.clone(), legend, columns: panels.len().clamp(1, 2), panels }
}

fn lines(record: &BulkRecord) -> Vec<Line> {
    let numbered = || record.transfers.iter().zip(1_u32..).map(|(one, number)| (f64::from(number), one));
    let points = numbered().filter_map(|(number, one)| Some((number, one.node?, one.rate()?)));
    let mut lines = marks(record.nodes.len(), points);
    lines.push(asked(0.0, count(record) + 1.0, numbered().map(|(number, _)| (number, record.rate))));
    lines
}

fn count(record: &BulkRecord) -> f64 {
    u32::try_from(record.transfers.len()).map_or(0.0, f64::from)
}
