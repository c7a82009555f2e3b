//! §4.5, figure 8: the number of disks with which the bursty volume of the first isolation experiment keeps
//! its target.

use crate::study::{Figure, Records, View, attainment};

/// The volume keeps its target if it meets it in this percentage of its on-windows. The first window of each
/// burst does not count, because the queue that was built up in the pause drains in it. The paper counts that
/// apart, as a spike.
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
        let bursts = View::of(record, "vsd1").map(View::bursts).unwrap_or_default();
        let later = bursts.iter().flat_map(|burst| burst[1..].iter().copied());
        attainment(later).is_some_and(|met| met >= KEPT)
    };
    let sweep = records.sweep(run);
    let enough = sweep.iter().rev().take_while(|(_, record)| kept(record));
    enough.last().map(|(disks, _)| *disks)
}
