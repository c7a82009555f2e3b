//! §3.3, figures 8 and 9: the longer packets are delayed, the slower an initiator gets. The time of a job
//! grows in a straight line with the delay, so the throughput falls like `1 / (a + b delay)`.
//!
//! In the control, the same jobs are done twice without any delay.

use std::collections::BTreeMap;

use crate::delay::Measured;
use crate::float::float;
use crate::study::{Figure, Records, greatest, mean, percent};

/// The delay at which the throughput is judged, in microseconds.
const JUDGED_US: u64 = 9_500;

/// The figures of the claim.
pub(super) fn study(records: &Records) -> Vec<Figure> {
    let run = |name: &str| records.measured.get(name);
    let rate = |name: &str, delay_us: u64| rates(run(name)?).get(&delay_us).copied();
    let left = |name: &str| Some(100.0 * rate(name, JUDGED_US)? / rate(name, 0)?);
    let error = |name: &str| run(name).and_then(standard_error);
    let without = |name: &str| run(name).and_then(last_to_first);
    vec![
        Figure::new("reading-0", rate("read", 0)),
        Figure::new("reading-9.5", rate("read", JUDGED_US)),
        Figure::new("reading-falls", run("read").and_then(falls)),
        Figure::new("reading-left", left("read")),
        Figure::new("reading-line", run("read").and_then(line)),
        Figure::new("writing-0", rate("write", 0)),
        Figure::new("writing-9.5", rate("write", JUDGED_US)),
        Figure::new("writing-falls", run("write").and_then(falls)),
        Figure::new("writing-left", left("write")),
        Figure::new("writing-line", run("write").and_then(line)),
        Figure::new("left-without", without("read-undelayed")),
        Figure::new("standard-error", greatest(["read", "write"].into_iter().filter_map(error))),
        Figure::new("reading-4-left", left("read-4")),
        Figure::new("writing-4-left", left("write-4")),
        Figure::new("reading-4-half", run("read-4").and_then(half)),
        Figure::new("writing-4-half", run("write-4").and_then(half)),
    ]
}

/// MB/s by the delay: the mean over the jobs.
pub(crate) fn rates(measured: &Measured) -> BTreeMap<u64, f64> {
    let rate = |(delay, jobs): (u64, Vec<f64>)| Some((delay, mean(jobs)?));
    by_delay(measured).into_iter().filter_map(rate).collect()
}

/// MB/s of each job, by the delay.
fn by_delay(measured: &Measured) -> BTreeMap<u64, Vec<f64>> {
    let mut all: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for job in measured.jobs.iter().filter(|job| job.took_us > 0) {
        all.entry(job.delay_us).or_default().push(float(job.bytes) / float(job.took_us));
    }
    all
}

/// Percent of the steps to the next delay at which the throughput falls.
fn falls(measured: &Measured) -> Option<f64> {
    let rates: Vec<_> = rates(measured).into_values().collect();
    percent(rates.windows(2).filter(|pair| pair[1] < pair[0]).count(), rates.len().saturating_sub(1))
}

/// How much of the variance of the jobs' times a straight line over the delay explains: R².
fn line(measured: &Measured) -> Option<f64> {
    let points: Vec<_> = measured.jobs.iter().map(|job| (float(job.delay_us), float(job.took_us))).collect();
    let (x, y) = (mean(points.iter().map(|point| point.0))?, mean(points.iter().map(|point| point.1))?);
    let sum = |of: &dyn Fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>();
    let (xx, yy) = (sum(&|point| (point.0 - x).powi(2)), sum(&|point| (point.1 - y).powi(2)));
    let xy = sum(&|point| (point.0 - x) * (point.1 - y));
    Some(xy * xy / (xx * yy))
}

/// The largest standard error of a mean throughput, in percent of it.
fn standard_error(measured: &Measured) -> Option<f64> {
    let error = |rates: Vec<f64>| {
        let middle = mean(rates.iter().copied())?;
        let count = f64::from(u32::try_from(rates.len()).ok()?);
        let variance = rates.iter().map(|rate| (rate - middle).powi(2)).sum::<f64>() / (count - 1.0);
        Some(100.0 * (variance / count).sqrt() / middle)
    };
    greatest(by_delay(measured).into_values().filter_map(error))
}

/// The throughput of the later half of the jobs, in percent of that of the first half.
fn last_to_first(measured: &Measured) -> Option<f64> {
    let rates = measured.jobs.iter().map(|job| float(job.bytes) / float(job.took_us.max(1)));
    let rates: Vec<_> = rates.collect();
    let (first, last) = rates.split_at(rates.len() / 2);
    Some(100.0 * mean(last.iter().copied())? / mean(first.iter().copied())?)
}

/// The delay with which half of the throughput is left, between two delays by a straight line, in
/// milliseconds.
fn half(measured: &Measured) -> Option<f64> {
    let rates: Vec<_> = rates(measured).into_iter().map(|(us, rate)| (float(us) / 1e3, rate)).collect();
    let half = rates.first()?.1 / 2.0;
    let pair = rates.windows(2).find(|pair| pair[1].1 <= half)?;
    let [(from, above), (to, below)] = [pair[0], pair[1]];
    Some(from + (to - from) * (above - half) / (above - below))
}
