//! §4.3, figure 6: the tightest promise that an array can keep is its own latency when it serves nobody else.
//!
//! VSD0 is promised just that, while its rate rises, beside 2,000 requests that are always outstanding. It
//! must get what it would get alone, and there is nothing left for the others where it takes all that the
//! array has.

use super::slo::steps;
use crate::run::Window;
use crate::study::{Figure, Records, change_percent, float, greatest, mean, mean_latency_ms};

/// The figures of the claim.
pub(super) fn study(records: &Records) -> Vec<Figure> {
    let deviations = deviations(records).unwrap_or_default();
    vec![
        Figure::new("vsd0-most-above-dedicated", greatest(deviations.iter().copied())),
        Figure::new("vsd0-mean-above-dedicated", mean(deviations)),
        Figure::new("vsd1-at-limit", vsd1_at_limit(records)),
    ]
}

/// By how much the mean latency of each step is above that of the same requests on an array of their own, in
/// percent. That, and not the curve, as a rate that is drawn at random is never quite that of the curve.
fn deviations(records: &Records) -> Option<Vec<f64>> {
    let of = |run| steps_of(records, run, "vsd0");
    let pairs = of("facade")?.into_iter().zip(of("dedicated")?);
    let above = pairs
        .filter_map(|(step, dedicated)| change_percent(mean_latency_ms(step), mean_latency_ms(dedicated)));
    Some(above.collect())
}

/// What VSD1 gets while VSD0 is at its highest rate, in percent of what it gets then without control.
fn vsd1_at_limit(records: &Records) -> Option<f64> {
    let rate = |run| {
        let steps = steps_of(records, run, "vsd1")?;
        mean(steps.last()?.iter().map(|window| float(window.completed)))
    };
    Some(100.0 * rate("facade")? / rate("none")?)
}

/// The windows of each of VSD0's rates: those of the curve but for its last, which is there for what chance
/// makes of the last but one.
fn steps_of<'r>(records: &'r Records, run: &str, volume: &str) -> Option<Vec<Vec<&'r Window>>> {
    let (_, rates) = records.curves.get("dedicated")?.points.split_last()?;
    Some(steps(records.view(run, volume)?, rates))
}
