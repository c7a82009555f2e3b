//! §5.3, figures 9 to 11: recorded loads with a latency target, beside a background with a throughput target
//! and beside each other.

use super::application;
use crate::study::application::{Interval, median, share_at_least, throughput};
use crate::study::{Figure, Records, View, change_percent, greatest, least, percent};

/// The latency that both recorded loads are promised, in milliseconds.
const TARGET_MS: f64 = 50.0;
/// The throughput that the background is promised, in bytes a second.
const BACKGROUND: f64 = 100e6;

/// Figure 9: an OLTP trace and a background that together want more than the array has.
pub(super) fn oltp(records: &Records) -> Vec<Figure> {
    let [with, without] = ["maestro", "none"].map(|run| intervals(records, run, "oltp"));
    let met = |intervals: &[Interval]| share_at_least(intervals, 1.0);
    let gain = |with: &[Interval], without: &[Interval]| {
        // No met interval at all counts as one, so the gain is a lower bound.
        let least = percent(1, without.len())?;
        Some(met(with)? / met(without)?.max(least))
    };
    let mut figures = vec![
        Figure::new("oltp-met", met(&with)),
        Figure::new("oltp-met-without", met(&without)),
        Figure::new("oltp-met-gain", gain(&with, &without)),
        Figure::new("oltp-median", latency_ms(&with)),
        Figure::new("oltp-median-without", latency_ms(&without)),
    ];
    figures.extend(background(records));
    figures
}

/// Figure 10: another trace against the same background.
pub(super) fn erp(records: &Records) -> Vec<Figure> {
    let [with, without] = ["maestro", "none"].map(|run| intervals(records, run, "erp"));
    let mut figures = vec![
        Figure::new("erp-met", share_at_least(&with, 1.0)),
        Figure::new("erp-met-without", share_at_least(&without, 1.0)),
        Figure::new("erp-median", latency_ms(&with)),
        Figure::new("erp-median-without", latency_ms(&without)),
    ];
    figures.extend(background(records));
    figures
}

/// Figure 11: both traces.
pub(super) fn two(records: &Records) -> Vec<Figure> {
    let of = |run| ["oltp", "erp"].map(|volume| intervals(records, run, volume));
    let ([oltp, erp], [oltp_without, erp_without]) = (of("maestro"), of("none"));
    let mean_ms = |run, volume| records.view(run, volume).and_then(View::mean_ms);
    let means_without = ["oltp", "erp"].map(|volume| mean_ms("none", volume));
    let worse = greatest(means_without.into_iter().flatten()).map(|ms| ms / TARGET_MS);
    let met_without = [&oltp_without, &erp_without].map(|intervals| share_at_least(intervals, 1.0));
    let rises =
        ["oltp", "erp"].map(|volume| change_percent(mean_ms("maestro", volume), mean_ms("none", volume)));
    vec![
        Figure::new("oltp-met", share_at_least(&oltp, 1.0)),
        Figure::new("erp-met", share_at_least(&erp, 1.0)),
        Figure::new("missed-by-without", worse),
        Figure::new("oltp-met-without", met_without[0]),
        Figure::new("erp-met-without", met_without[1]),
        Figure::new("worse-met-without", least(met_without.into_iter().flatten())),
        Figure::new("mean-rise", greatest(rises.into_iter().flatten())),
        Figure::new("oltp-median", latency_ms(&oltp)),
        Figure::new("erp-median", latency_ms(&erp)),
        Figure::new("oltp-median-without", latency_ms(&oltp_without)),
        Figure::new("erp-median-without", latency_ms(&erp_without)),
        Figure::new("oltp-mean", mean_ms("maestro", "oltp")),
        Figure::new("erp-mean", mean_ms("maestro", "erp")),
        Figure::new("oltp-mean-without", means_without[0]),
        Figure::new("erp-mean-without", means_without[1]),
    ]
}

/// Figure 9: the background alone. It checks the model, and no law.
pub(super) fn calibration(records: &Records) -> Vec<Figure> {
    vec![Figure::new("dp-alone", throughput(&intervals(records, "alone", "dp")).map(|bytes| bytes / 1e6))]
}

fn intervals(records: &Records, run: &str, volume: &str) -> Vec<Interval> {
    application(records, run, volume).map_or_else(Vec::new, |application| application.intervals())
}

/// The median over the intervals of their mean latency, in milliseconds.
fn latency_ms(intervals: &[Interval]) -> Option<f64> {
    median(intervals.iter().filter_map(|interval| interval.latency_ms))
}

fn background(records: &Records) -> Vec<Figure> {
    let [with, without] = ["maestro", "none"].map(|run| intervals(records, run, "dp"));
    let met = |intervals: &[Interval]| {
        percent(
            intervals.iter().filter(|interval| interval.throughput >= BACKGROUND).count(),
            intervals.len(),
        )
    };
    let [throughput_with, throughput_without] = [&with, &without].map(|intervals| throughput(intervals));
    vec![
        Figure::new("dp-met", met(&with)),
        Figure::new("dp-met-without", met(&without)),
        Figure::new("dp-throughput", throughput_with.map(|bytes| bytes / 1e6)),
        Figure::new("dp-throughput-without", throughput_without.map(|bytes| bytes / 1e6)),
        Figure::new("dp-loss", change_percent(throughput_with, throughput_without).map(|change| -change)),
    ]
}
