//! §4.3, figure 6: the tightest promise that an array can keep is the latency that it has when it serves no
//! other load.
//!
//! VSD0 is promised exactly that while its rate rises, beside 2,000 requests of VSD1 that are always
//! outstanding. VSD0 must get the latency that it would get alone. At its highest rate, VSD0 takes the whole
//! array, and nothing is left for VSD1.

use super::slo::steps;
use crate::float::float;
use crate::run::Window;
use crate::study::{Figure, Records, change_percent, greatest, mean, mean_latency_ms};

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
/// percent. The comparison is not with the curve, because a rate that is drawn at random is never quite the
/// curve's.
fn deviations(records: &Records) -> Option<Vec<f64>> {
    let of = |run| steps_of(records, run, "vsd0");
    let pairs = of("facade")?.into_iter().zip(of("dedicated")?);
    let above = pairs
        .filter_map(|(step, dedicated)| change_percent(mean_latency_ms(step), mean_latency_ms(dedicated)));
    Some(above.collect())
}

/// The rate that VSD1 gets while VSD0 is at its highest rate, in percent of VSD1's rate at that time without
/// control.
fn vsd1_at_limit(records: &Records) -> Option<f64> {
    let rate = |run| {
        let steps = steps_of(records, run, "vsd1")?;
        mean(steps.last()?.iter().map(|window| float(window.completed)))
    };
    Some(100.0 * rate("facade")? / rate("none")?)
}

/// The windows of each of VSD0's rates. These are the rates of the curve except for its last. The curve
/// measures one rate more, because chance can make VSD0's highest rate a little higher.
fn steps_of<'r>(records: &'r Records, run: &str, volume: &str) -> Option<Vec<Vec<&'r Window>>> {
    let (_, rates) = records.curves.get("dedicated")?.points.split_last()?;
    Some(steps(records.view(run, volume)?, rates))
}
