//! §4.6, figure 9: the cost of the scheduler. A recorded load is promised the latency that the array gives
//! such a load. Beside it, a second volume sends a few requests, so that the law is at work: it does not
//! hold a volume back that is alone.

use crate::study::{Figure, Records, View, change_percent};

/// The figures of the claim.
pub(super) fn study(records: &Records) -> Vec<Figure> {
    let mean_ms = |run| records.view(run, "vsd").and_then(View::mean_ms);
    let met = |run| records.view(run, "vsd").and_then(View::attainment);
    let rate = |run| records.view(run, "vsd").map(View::rate);
    vec![
        Figure::new("latency-increase", change_percent(mean_ms("facade"), mean_ms("none"))),
        Figure::new("throughput-change", change_percent(rate("facade"), rate("none"))),
        Figure::new("met-change", met("facade").zip(met("none")).map(|(with, without)| with - without)),
        Figure::new("met", met("facade")),
        Figure::new("latency-without", mean_ms("none")),
        Figure::new("latency-with", mean_ms("facade")),
    ]
}
