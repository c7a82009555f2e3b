//! §4.6, figure 9: the cost of the scheduler. A recorded load has the array to itself, and is promised the
//! latency that the array gives such a load.

use crate::study::{Figure, Records, View, change_percent};

/// The figures of the claim.
pub(super) fn study(records: &Records) -> Vec<Figure> {
    let mean_ms = |run| records.view(run, "vsd").and_then(View::mean_ms);
    let rate = |run| records.view(run, "vsd").map(View::rate);
    vec![
        Figure::new("latency-increase", change_percent(mean_ms("facade"), mean_ms("none"))),
        Figure::new("throughput-change", change_percent(rate("facade"), rate("none"))),
        Figure::new("latency-without", mean_ms("none")),
        Figure::new("latency-with", mean_ms("facade")),
    ]
}
