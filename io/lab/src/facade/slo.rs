//! §4.1, figure 3: beside a greedy background, a volume with an SLO curve keeps its SLO at every reachable
//! rate. The device is kept busy: the volume's latency stays a little below the promise, but not far below.
//!
//! A rate is reachable if an array that serves only this volume (the curve `dedicated`) serves it with a mean
//! latency within the promise for it.

use crate::curve::CurvePoint;
use crate::run::Window;
use crate::study::{Figure, Records, View, attainment, greatest, least, mean_latency_ms, mean_target_ms};

/// How many of the highest reachable rates must have a latency near the promise.
const TOP: usize = 3;

/// The points by which the windows met may be fewer than on the dedicated array.
const ALLOWED: f64 = 1.0;

/// The figures of the claim.
pub(super) fn study(records: &Records) -> Vec<Figure> {
    let steps = reachable_steps(records, "facade");
    let all = || steps.iter().flatten().copied();
    let ratio = |step: &Vec<&Window>| {
        Some(mean_latency_ms(step.iter().copied())? / mean_target_ms(step.iter().copied())?)
    };
    let top = steps.iter().rev().take(TOP).filter_map(ratio).map(|ratio| 100.0 * (1.0 - ratio));
    let without = reachable_steps(records, "none");
    let worst_step = steps.iter().filter_map(|step| attainment(step.iter().copied()));
    let spare = steps.iter().zip(reachable_steps(records, "dedicated")).filter_map(|(step, dedicated)| {
        let met = |step: &[&Window]| attainment(step.iter().copied());
        Some(met(step)? - met(&dedicated)? + ALLOWED)
    });
    vec![
        Figure::new("windows-met", attainment(all())),
        Figure::new("rates-that-count", count(&steps)),
        Figure::new("worst-step-spare", least(spare)),
        Figure::new("windows-met-worst-step", least(worst_step)),
        Figure::new("worst-step-over-slo", greatest(steps.iter().filter_map(ratio))),
        Figure::new("top-steps-least-below-slo", least(top.clone())),
        Figure::new("top-steps-most-below-slo", greatest(top)),
        Figure::new("windows-met-without", attainment(without.iter().flatten().copied())),
    ]
}

/// The number of steps; `None` without any.
fn count(steps: &[Vec<&Window>]) -> Option<f64> {
    u32::try_from(steps.len()).ok().filter(|steps| *steps > 0).map(f64::from)
}

/// The windows of each step of the rate that a dedicated array serves within the promise. The first window of
/// a step is left out, because its promise is that of the rate before.
fn reachable_steps<'r>(records: &'r Records, run: &str) -> Vec<Vec<&'r Window>> {
    let (Some(view), Some(curve)) = (records.view(run, "vsd"), records.curves.get("dedicated")) else {
        return Vec::new();
    };
    let steps = steps(view, &curve.points);
    let reachable = |(point, step): &(&CurvePoint, Vec<&Window>)| {
        let target_ms = mean_target_ms(step.iter().copied());
        point.reached() && target_ms.is_some_and(|target_ms| point.mean_us / 1e3 <= target_ms)
    };
    curve.points.iter().zip(steps).filter(reachable).map(|(_, step)| step).collect()
}

/// The windows of each rate of the curve, the same number for each. The volume's rate rises through the same
/// rates.
pub(super) fn steps<'r>(view: View<'r>, points: &[CurvePoint]) -> Vec<Vec<&'r Window>> {
    let windows: Vec<_> = view.windows().collect();
    let each = windows.len() / points.len().max(1);
    let steps = windows.chunks(each.max(1)).map(|step| step[1..].to_vec());
    steps.take(points.len()).collect()
}
