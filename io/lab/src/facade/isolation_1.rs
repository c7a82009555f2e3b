//! §4.2, figure 4: a bursty volume with a tight promise beside a steady one with a loose promise.
//!
//! Without control, the bursty volume misses its promise because of the steady one. With control, the bursty
//! volume keeps its promise. The steady volume pays for that during the bursts, but it keeps its own promise
//! and catches up between the bursts.

use crate::study::{Figure, Records, View, percent, work_conservation};

/// A volume has caught up if at most this many of its requests wait, a tenth of a second's worth. Some
/// requests are always at the device.
const CAUGHT_UP: u64 = 50;

/// The figures of the claim.
pub(super) fn study(records: &Records) -> Vec<Figure> {
    let view = |run, volume| records.view(run, volume);
    let missed = view("none", "vsd1").and_then(View::attainment_on).map(|met| 100.0 - met);
    let vsd2 = view("facade", "vsd2");
    let runs = records.runs.get("facade").zip(records.runs.get("none"));
    let work = runs.and_then(|(with, without)| work_conservation(with, without));
    vec![
        Figure::new("vsd1-missed-without", missed),
        Figure::new("vsd1-met", view("facade", "vsd1").and_then(View::attainment_on)),
        Figure::new("vsd2-met", vsd2.and_then(View::attainment)),
        Figure::new("vsd2-caught-up", caught_up(view("facade", "vsd1"), vsd2)),
        Figure::new("vsd1-isolation", view("facade", "vsd1").and_then(View::isolation)),
        Figure::new("work-conservation", work),
    ]
}

/// Percent of the pauses between the bursts of `bursty` in which `steady` catches up at some time.
fn caught_up(bursty: Option<View<'_>>, steady: Option<View<'_>>) -> Option<f64> {
    let bursts = bursty?.bursts();
    let backlogs: Vec<_> = steady?.backlogs().collect();
    let pauses = bursts.windows(2).filter_map(|pair| Some((pair[0].last()?.end_us, pair[1].first()?.end_us)));
    let (mut caught, mut all) = (0, 0);
    for (from_us, to_us) in pauses {
        let during = backlogs.iter().filter(|(end_us, _)| from_us < *end_us && *end_us < to_us);
        all += 1;
        caught +=
            usize::from(during.map(|(_, backlog)| *backlog).min().is_some_and(|least| least <= CAUGHT_UP));
    }
    percent(caught, all)
}
