//! §IV-B, figure 3(a): round robin gives most transfers less than they ask for, and the slowest node governs.
//!
//! In the control, SM-R3 places the same transfers.

use super::{below, on, slowest, total};
use crate::study::{Figure, Records};

/// The figures of the claim.
pub(super) fn study(records: &Records) -> Vec<Figure> {
    vec![
        Figure::new("total", total(records, "rr")),
        Figure::new("below", below(records, "rr")),
        Figure::new("slowest", slowest(records, "rr")),
        Figure::new("slowest-node-last", slowest_node_last(records, "rr")),
        Figure::new("on-vm1", on(records, "rr", "vm1")),
        Figure::new("total-without", total(records, "r3")),
        Figure::new("below-without", below(records, "r3")),
    ]
}

/// Of the last ten transfers to end, percent that were at the slowest node.
fn slowest_node_last(records: &Records, run: &str) -> Option<f64> {
    let record = records.bulk.get(run)?;
    let slowest = record.nodes.iter().position(|name| name == "vm1")?;
    let mut ends: Vec<_> =
        record.transfers.iter().filter_map(|one| Some((one.ended_us?, one.node))).collect();
    ends.sort_unstable();
    let last: Vec<_> = ends.into_iter().rev().take(10).collect();
    crate::study::percent(last.iter().filter(|(_, node)| *node == Some(slowest)).count(), last.len())
}
