//! Normalised performance and allocation of each volume over the time after the warm-up, a column for each
//! run.

use super::{Axis, Drawing, Key, Line, Panel, Stroke, drawn_volumes};
use crate::experiment::Experiment;
use crate::run::Record;
use crate::study::Records;
use crate::study::application::{Application, Interval};

/// The figure.
pub(super) fn drawing(experiment: &Experiment, records: &Records) -> Drawing {
    let runs: Vec<_> =
        experiment.plot.runs.iter().filter_map(|run| Some((run, records.runs.get(run)?))).collect();
    let volumes = drawn_volumes(experiment);
    let row = |label: &str, titled: bool, value: fn(&Interval) -> Option<f64>| -> Vec<Panel> {
        let lines: Vec<_> = runs.iter().map(|(_, record)| lines(record, &volumes, value)).collect();
        let y = Axis::around(label, false, &lines.iter().flatten().collect::<Vec<_>>());
        let title = |run: &String| if titled { experiment.run[run].says.clone() } else { String::new() };
        let panels = runs.iter().zip(lines).map(|((run, record), lines)| {
            let to = record.judged().as_secs_f64();
            let x = Axis { label: "time (s)".to_owned(), from: 0.0, to, log: false };
            Panel { title: title(run), x, y: y.clone(), lines }
        });
        panels.collect()
    };
    let mut panels = row("normalised performance", true, |interval| interval.performance);
    panels.extend(row("throughput (MB/s)", false, |interval| Some(interval.throughput / 1e6)));
    panels.extend(row("allocation (requests)", false, |interval| {
        (interval.allocation > 0.0).then_some(interval.allocation)
    }));
    let key =
        |(colour, name): &(usize, &str)| Key { name: (*name).to_owned(), stroke: Stroke::whole(*colour) };
    let legend = volumes.iter().map(key).collect();
    Drawing { title: experiment.id.clone(), legend, columns: runs.len().max(1), panels }
}

/// A value of each volume's intervals over time.
fn lines(record: &Record, volumes: &[(usize, &str)], value: fn(&Interval) -> Option<f64>) -> Vec<Line> {
    #[allow(clippy::cast_precision_loss)] // far below 2^53
    let from = record.header.warm_up_us as f64 / 1e6;
    let drawn = volumes.iter().filter_map(|(colour, name)| Some((*colour, Application::of(record, name)?)));
    drawn
        .map(|(colour, application)| {
            let intervals = application.intervals();
            let points = intervals.iter().map(|interval| (interval.end - from, value(interval)));
            Line { stroke: Stroke::whole(colour), marked: false, pieces: super::joined(points) }
        })
        .collect()
}
