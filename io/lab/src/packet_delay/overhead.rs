//! §3.7: what the throttle costs while it delays nobody.
//!
//! Runs with an idle agent and runs without one take turns, because a machine is faster at one time than at
//! another. The noise is what the runs of one sort differ by. Without it, the noisiest machine would show the
//! claim best.

use crate::float::float;
use crate::study::{Figure, Records, mean};

/// What is left out at the beginning of a run, in microseconds.
const BEGIN_US: u64 = 2_000_000;
/// How often each sort of run is repeated.
const REPEATS: u32 = 3;

/// The figures of the claim.
pub(super) fn study(records: &Records) -> Vec<Figure> {
    let rates = |verb: &str, what: &str| -> Option<Vec<f64>> {
        (1..=REPEATS).map(|repeat| rate(records, &format!("{verb}-{repeat}-{what}"))).collect()
    };
    let absent = |verb| rates(verb, "absent").and_then(mean);
    let cost = |verb| Some(100.0 * (1.0 - mean(rates(verb, "idle")?)? / absent(verb)?));
    let noise = |verb| {
        let squares = squared_error(&rates(verb, "idle")?)? + squared_error(&rates(verb, "absent")?)?;
        Some(100.0 * 2.0 * squares.sqrt() / absent(verb)?)
    };
    vec![
        Figure::new("reading", absent("reading")),
        Figure::new("reading-cost", cost("reading")),
        Figure::new("reading-noise", noise("reading")),
        Figure::new("writing", absent("writing")),
        Figure::new("writing-cost", cost("writing")),
        Figure::new("writing-noise", noise("writing")),
    ]
}

/// The MB/s of all initiators of a run.
fn rate(records: &Records, run: &str) -> Option<f64> {
    let measured = records.measured.get(run)?;
    let samples: Vec<_> = measured.samples.iter().filter(|sample| sample.at_us > BEGIN_US).collect();
    let (first, last) = (samples.first()?.at_us, samples.last()?.at_us);
    let bytes: u64 =
        samples.iter().skip(1).flat_map(|sample| sample.read.iter().chain(&sample.written)).sum();
    (last > first).then(|| float(bytes) / float(last - first))
}

/// The square of the standard error of a mean.
fn squared_error(values: &[f64]) -> Option<f64> {
    let (middle, count) = (mean(values.iter().copied())?, f64::from(u32::try_from(values.len()).ok()?));
    let variance = values.iter().map(|value| (value - middle).powi(2)).sum::<f64>() / (count - 1.0);
    Some(variance / count)
}
