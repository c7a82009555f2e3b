//! §5.2, figure 6: a growing number of equal workloads, half of them with a priority of four.

use super::{SETTLING, between};
use crate::study::application::{Application, Interval, performance};
use crate::study::{Figure, Records, least, mean, percent};

const END: f64 = 240.0;
/// For each number of workloads, its run and the names of its figures: `y` of the workloads of high priority,
/// `y` of those of low priority, and the difference.
const COUNTS: [(usize, &str, [&str; 3]); 4] = [
    (2, "maestro-2", ["high-2", "low-2", "high-above-low-2"]),
    (4, "maestro-4", ["high-4", "low-4", "high-above-low-4"]),
    (8, "maestro-8", ["high-8", "low-8", "high-above-low-8"]),
    (16, "maestro-16", ["high-16", "low-16", "high-above-low-16"]),
];

/// The figures of the claim.
pub(super) fn study(records: &Records) -> Vec<Figure> {
    let of = |run, kind: &str, count: usize| {
        let each =
            (1..=count / 2).map(|number| performance(&settled(records, run, &format!("{kind}{number:02}"))));
        each.collect::<Option<Vec<f64>>>().and_then(mean)
    };
    let mut figures = Vec::new();
    let mut ratios = Vec::new();
    for (count, run, names) in COUNTS {
        let (high, low) = (of(run, "high", count), of(run, "low", count));
        let above = high.zip(low).map(|(high, low)| high - low);
        figures
            .extend(names.into_iter().zip([high, low, above]).map(|(name, value)| Figure::new(name, value)));
        let ratio = high.zip(low).filter(|(high, _)| *high < 1.0);
        ratios.push(ratio.map(|(high, low)| (1.0 - low) / (1.0 - high)));
    }
    figures.push(Figure::new("shortfall-ratio-4", ratios[1]));
    figures.push(Figure::new("shortfall-ratio-8", ratios[2]));
    figures.push(Figure::new("least-bound-16", least_bound(records)));
    figures.push(Figure::new("low-progress-16", progress(records)));
    figures
}

fn settled(records: &Records, run: &str, volume: &str) -> Vec<Interval> {
    between(records, run, volume, SETTLING, END)
}

/// The workloads of low priority in the run with sixteen.
fn low_of_sixteen() -> impl Iterator<Item = String> {
    (1..=8).map(|number| format!("low{number:02}"))
}

/// The lowest bound that any of the workloads of low priority in the run with sixteen was ever granted.
fn least_bound(records: &Records) -> Option<f64> {
    let run = records.runs.get("maestro-16")?;
    let applications = low_of_sixteen().filter_map(|name| Application::of(run, &name));
    least(applications.flat_map(|low| low.intervals()).map(|interval| interval.allocation))
}

/// Percent of the intervals in which each of the workloads of low priority got answers.
fn progress(records: &Records) -> Option<f64> {
    let lows: Vec<Vec<Interval>> =
        low_of_sixteen().map(|name| settled(records, "maestro-16", &name)).collect();
    let count = lows.first().map_or(0, Vec::len);
    let all = |number: &usize| {
        lows.iter().all(|low| low.get(*number).is_some_and(|interval| interval.throughput > 0.0))
    };
    percent((0..count).filter(all).count(), count)
}
