//! §4.7, figure 10: a disk fails under two recorded loads with a promise and a background without one.
//!
//! Under control those with a promise hardly notice; the background pays. Without control, on an array of its own, a
//! recorded load does notice.

use crate::study::{Figure, Records, View, change_percent};

/// The figures of the claim.
pub(super) fn study(records: &Records) -> Vec<Figure> {
    let mean_ms = |run, volume| records.view(run, volume).and_then(View::mean_ms);
    let rate = |run, volume| records.view(run, volume).map(View::rate);
    let change = |volume| change_percent(mean_ms("facade-failed", volume), mean_ms("facade", volume));
    let own = mean_ms("own-failed", "vsd1").zip(mean_ms("own", "vsd1")).map(|(failed, own)| failed / own);
    let loss = change_percent(rate("facade-failed", "background"), rate("facade", "background"));
    vec![
        Figure::new("vsd1-latency-change", change("vsd1")),
        Figure::new("vsd2-latency-change", change("vsd2")),
        Figure::new("background-loss", loss.map(|change| -change)),
        Figure::new("own-latency-rise", own),
        Figure::new("vsd1-met", records.view("facade-failed", "vsd1").and_then(View::attainment)),
        Figure::new("vsd2-met", records.view("facade-failed", "vsd2").and_then(View::attainment)),
    ]
}
