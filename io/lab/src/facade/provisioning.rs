//! §4.5, figure 8: the number of disks with which the bursty volume of the first isolation experiment keeps
//! its target.

use crate::study::{Figure, Records, View};

/// The volume keeps its target if it meets it in this percentage of its on-windows. The first window of each
/// burst counts: in the paper, the number of disks is the one at which the spikes at a burst's start vanish.
const KEPT: f64 = 95.0;

/// The figures of the claim.
pub(super) fn study(records: &Records) -> Vec<Figure> {
    let (with, without) = (disks(records, "facade"), disks(records, "none"));
    vec![
        Figure::new("disks-with", with),
        Figure::new("disks-without", without),
        Figure::new("disks-ratio", with.zip(without).map(|(with, without)| 100.0 * with / without)),
    ]
}

/// The least number of disks from which on the target is kept.
fn disks(records: &Records, run: &str) -> Option<f64> {
    let kept = |record| {
        let met = View::of(record, "vsd1").and_then(View::attainment_on);
        met.is_some_and(|met| met >= KEPT)
    };
    let sweep = records.sweep(run);
    let enough = sweep.iter().rev().take_while(|(_, record)| kept(record));
    enough.last().map(|(disks, _)| *disks)
}
