//! What a law saw and did over time in one cell, to be looked at.

use weir_model::Span;

use super::judge::Judge;
use super::promise::{LASTS, Metric, Request};
use super::run::Decisions;
use super::setting::{Law, without};
use super::{Cell, bed::told};
use crate::plot::{CellFigure, CellRun, cell};

/// The figure of a cell, as SVG: the latencies of both volumes in each second, and what each law decided.
///
/// # Errors
/// If a run breaks a rule that holds for every run, the cell is of another matrix, or the figure cannot be
/// drawn.
pub fn watch(judge: &Judge<'_>, of: &Cell) -> anyhow::Result<String> {
    let bed = judge.bed(of, of.scored)?;
    let free = bed.alone(&without())?;
    let told = told(of, &free);
    // A rate shows in the latency, by Little's law.
    let is_rate = told.promise.metric == Metric::Rate;
    let metric = if is_rate { Metric::Mean } else { told.promise.metric };
    let limit = if is_rate { told.mean } else { told.promise.limit };
    let mut runs = vec![run("alone", metric, &[free], &Decisions::default())];
    let settings = [without()].into_iter().chain(Law::ALL.map(|law| law.setting(told)));
    for setting in settings {
        let (requests, decisions) = bed.both_watched(&setting)?;
        runs.push(run(&setting.name, metric, &requests, &decisions));
    }
    cell(&CellFigure { title: of.to_string(), metric: metric.name(), limit_ms: millis(limit), runs })
}

fn run(name: &str, metric: Metric, volumes: &[Vec<Request>], decisions: &Decisions) -> CellRun {
    let of = |place: usize| volumes.get(place).map_or(Vec::new(), |requests| each_second(metric, requests));
    let bounds = |place: usize| decisions.bounds.get(place).map_or(Vec::new(), |bounds| steps(bounds));
    CellRun {
        name: name.to_owned(),
        promised: of(0),
        other: of(1),
        depth: steps(&decisions.depth),
        bounds: [bounds(0), bounds(1)],
    }
}

/// The latency of the requests that came in each second, in milliseconds.
fn each_second(metric: Metric, requests: &[Request]) -> Vec<(f64, Option<f64>)> {
    let second = Span::from_secs(1);
    let mut rest = requests;
    let mut points = Vec::new();
    let mut end = second;
    while end <= LASTS {
        let (here, later) = rest.split_at(rest.partition_point(|request| request.came < end));
        points.push((end.as_secs_f64(), (!here.is_empty()).then(|| millis(metric.of(here)))));
        rest = later;
        end += second;
    }
    points
}

/// A decision holds until the next one, or the end.
fn steps(decisions: &[(Span, u32)]) -> Vec<(f64, f64)> {
    let mut points: Vec<(f64, f64)> = Vec::new();
    for (at, number) in decisions {
        let at = at.as_secs_f64();
        points.extend(points.last().map(|(_, before)| (at, *before)));
        points.push((at, f64::from(*number)));
    }
    points.extend(points.last().map(|(_, last)| (LASTS.as_secs_f64(), *last)));
    points
}

fn millis(span: Span) -> f64 {
    span.as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decision_holds_until_the_next_one() {
        let decisions = [(Span::from_secs(1), 4), (Span::from_secs(2), 8)];
        assert_eq!(steps(&decisions), [(1.0, 4.0), (2.0, 4.0), (2.0, 8.0), (300.0, 8.0)]);
        assert_eq!(steps(&[]), []);
    }

    #[test]
    fn a_second_in_which_nothing_came_has_no_latency() {
        let request = |came| Request { came: Span::from_millis(came), latency: Span::from_millis(7) };
        let points = each_second(Metric::Mean, &[request(500), request(2_000)]);
        assert_eq!(points[..3], [(1.0, Some(7.0)), (2.0, None), (3.0, Some(7.0))]);
        assert_eq!(points.len(), 300);
    }
}
