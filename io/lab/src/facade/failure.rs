//! §4.7, figure 10: a disk fails while two recorded loads with a promise share the array with a background
//! without one.
//!
//! Under control, the two loads with a promise hardly notice the failure, and the background pays for it.
//! Without control, they do notice it.

use crate::study::{Figure, Records, View, change_percent};

/// The rate that the background sends, a second.
const BACKGROUND: f64 = 450.0;

/// The figures of the claim.
pub(super) fn study(records: &Records) -> Vec<Figure> {
    let mean_ms = |run, volume| records.view(run, volume).and_then(View::mean_ms);
    let rate = |run, volume| records.view(run, volume).map(View::rate);
    let change = |volume| change_percent(mean_ms("facade-failed", volume), mean_ms("facade", volume));
    let rise = |failed, healthy| Some(mean_ms(failed, "vsd1")? / mean_ms(healthy, "vsd1")?);
    let loss = change_percent(rate("facade-failed", "background"), rate("facade", "background"));
    let met = |run, volume| records.view(run, volume).and_then(View::attainment);
    let losses = ["vsd1", "vsd2"].map(|volume| {
        change_percent(rate("facade-failed", volume), rate("facade", volume)).map(|change| -change)
    });
    let loss_beyond =
        loss.zip(losses[0]).zip(losses[1]).map(|((background, one), two)| -background - one.max(two));
    vec![
        Figure::new("vsd1-latency-change", change("vsd1")),
        Figure::new("vsd2-latency-change", change("vsd2")),
        Figure::new("background-loss", loss.map(|change| -change)),
        Figure::new("uncontrolled-latency-rise", rise("none-failed", "none")),
        Figure::new("own-latency-rise", rise("own-failed", "own")),
        Figure::new("background-healthy", rate("facade", "background").map(|rate| 100.0 * rate / BACKGROUND)),
        Figure::new("background-loss-beyond", loss_beyond),
        Figure::new("vsd1-met-healthy", met("facade", "vsd1")),
        Figure::new("vsd2-met-healthy", met("facade", "vsd2")),
        Figure::new("vsd1-met", met("facade-failed", "vsd1")),
        Figure::new("vsd2-met", met("facade-failed", "vsd2")),
        Figure::new("own-met", met("own", "vsd1")),
    ]
}
