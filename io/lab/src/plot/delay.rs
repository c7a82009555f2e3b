//! Before an iSCSI target: read wait, delay and throughput over time, a column for each run, on the same
//! scales.

use super::{Axis, Drawing, Key, Line, Panel, Stroke, millis, seconds};
use crate::delay::{Measured, Sample};
use crate::experiment::Experiment;
use crate::float::float;
use crate::study::Records;

/// The wait, the delay, and what all initiators write: a colour for each.
const WAIT: usize = 0;
const DELAY: usize = 1;
/// The first colour of the initiators.
const INITIATORS: usize = 2;

/// The figure.
pub(super) fn drawing(experiment: &Experiment, records: &Records) -> Drawing {
    let spec = &experiment.plot;
    let until = spec.until.map_or(f64::INFINITY, |text| text.0.as_secs_f64());
    let runs: Vec<_> = spec.runs.iter().filter_map(|run| Some((run, records.measured.get(run)?))).collect();
    let says = experiment.says();
    let length = |run: &Measured| run.samples.last().map_or(0.0, |sample| seconds(sample.at_us));
    let end = runs.iter().map(|(_, run)| length(run)).fold(0.0, f64::max).min(until);
    let x = Axis { label: "time (s)".to_owned(), from: 0.0, to: end.max(1.0), log: false };
    let row = |label: &str, log: bool, lines: Vec<Vec<Line>>, titled: bool| -> Vec<Panel> {
        let y = Axis::around(label, log, &lines.iter().flatten().collect::<Vec<_>>());
        let title = |run: &str| if titled { says[run].to_owned() } else { String::new() };
        let panel = |((run, _), lines): (&(&String, _), _)| Panel {
            title: title(run),
            x: x.clone(),
            y: y.clone(),
            lines,
        };
        runs.iter().zip(lines).map(panel).collect()
    };
    let all = |of: &dyn Fn(&Measured) -> Vec<Line>| runs.iter().map(|(_, run)| of(run)).collect();
    let mut panels = row("read wait (ms)", spec.log_latency, all(&|run| waits(run, until)), true);
    panels.extend(row("delay (ms)", false, all(&|run| delays(run, until)), false));
    panels.extend(row("throughput (MB/s)", false, all(&|run| rates(run, until)), false));
    let mut legend = vec![
        Key { name: "read wait".to_owned(), stroke: Stroke::whole(WAIT) },
        Key { name: "threshold".to_owned(), stroke: Stroke::dashed(usize::MAX) },
        Key { name: "delay".to_owned(), stroke: Stroke::whole(DELAY) },
    ];
    let names = runs.first().map(|(_, run)| run.initiators.iter()).into_iter().flatten();
    legend.extend(
        (INITIATORS..)
            .zip(names)
            .map(|(colour, name)| Key { name: name.clone(), stroke: Stroke::whole(colour) }),
    );
    Drawing { title: experiment.id.clone(), legend, columns: runs.len().max(1), panels }
}

/// The wait: the law's EWMA where there is a law, else the mean of each second.
fn waits(measured: &Measured, until: f64) -> Vec<Line> {
    if measured.samples.iter().all(|sample| sample.threshold_us == 0) {
        let mean = |(at, samples): (f64, &[Sample])| {
            let (reads, took) = samples
                .iter()
                .fold((0, 0), |(reads, took), sample| (reads + sample.reads, took + sample.read_us));
            (reads > 0).then(|| (at, float(took) / float(reads) / 1e3))
        };
        let points = by_second(measured, until).filter_map(mean).collect();
        return vec![Line { stroke: Stroke::whole(WAIT), marked: false, pieces: vec![points] }];
    }
    let line = |stroke, of: fn(&Sample) -> u64| {
        let points = drawn(measured, until).map(|sample| (seconds(sample.at_us), millis(of(sample))));
        Line { stroke, marked: false, pieces: vec![points.collect()] }
    };
    vec![
        line(Stroke::dashed(usize::MAX), |sample| sample.threshold_us),
        line(Stroke::whole(WAIT), |sample| sample.ewma_us),
    ]
}

/// The delay that the law applies; else that of each initiator whose delay is set.
fn delays(measured: &Measured, until: f64) -> Vec<Line> {
    let by_law = drawn(measured, until).map(|sample| (seconds(sample.at_us), millis(sample.delay_us)));
    let mut lines =
        vec![Line { stroke: Stroke::whole(DELAY), marked: false, pieces: vec![by_law.collect()] }];
    for initiator in 0..measured.initiators.len() {
        let (mut points, mut delay) = (vec![(0.0, 0.0)], 0.0);
        for change in measured.changes.iter().filter(|change| change.initiator == initiator) {
            let at = seconds(change.at_us);
            points.push((at, delay));
            delay = millis(change.delay_us);
            points.push((at, delay));
        }
        if points.len() > 1 {
            let stroke = Stroke::whole(INITIATORS + initiator);
            lines.push(Line { stroke, marked: false, pieces: vec![points] });
        }
    }
    lines
}

/// What each initiator reads and writes, as the mean of each second.
fn rates(measured: &Measured, until: f64) -> Vec<Line> {
    let of_initiator = |initiator: usize| {
        let rate = |(at, samples): (f64, &[Sample])| {
            let bytes: u64 =
                samples.iter().map(|sample| sample.read[initiator] + sample.written[initiator]).sum();
            let from = samples[0].at_us.saturating_sub(100_000);
            (at, float(bytes) / float((samples[samples.len() - 1].at_us - from).max(1)))
        };
        let points = by_second(measured, until).map(rate).collect();
        let stroke = Stroke::whole(INITIATORS + initiator);
        Line { stroke, marked: false, pieces: vec![points] }
    };
    (0..measured.initiators.len()).map(of_initiator).collect()
}

fn drawn(measured: &Measured, until: f64) -> impl Iterator<Item = &Sample> {
    measured.samples.iter().filter(move |sample| seconds(sample.at_us) <= until)
}

/// The samples of each second, with its end.
fn by_second(measured: &Measured, until: f64) -> impl Iterator<Item = (f64, &[Sample])> {
    let seconds =
        measured.samples.chunks(10).map(|samples| (seconds(samples[samples.len() - 1].at_us), samples));
    seconds.filter(move |(at, _)| *at <= until)
}
