//! §IV-C, figure 5: while others use the fastest node, SM-R3 still finds what the nodes can do, and StaticQoS
//! does not.
//!
//! In the control, nobody else uses the node. SM-R3 has a higher total there, too, so the load must raise its
//! advantage. Beside it stands `deadline`, which is not the paper's.

use super::{below, more_below, slowest, times, total};
use crate::study::{Figure, Records};

/// The figures of the claim.
pub(super) fn study(records: &Records) -> Vec<Figure> {
    vec![
        Figure::new("total-static", total(records, "static")),
        Figure::new("total-r3", total(records, "r3")),
        Figure::new("times-static", times(records, "r3", "static")),
        Figure::new("above-idle", above_idle(records)),
        Figure::new("below-static", below(records, "static")),
        Figure::new("below-r3", below(records, "r3")),
        Figure::new("fewer-below", more_below(records, "static", "r3")),
        Figure::new("slowest-static", slowest(records, "static")),
        Figure::new("slowest-r3", slowest(records, "r3")),
        Figure::new("fewer-below-without", more_below(records, "static-idle", "r3-idle")),
        Figure::new("deadline-total", total(records, "deadline")),
        Figure::new("deadline-times-r3", times(records, "deadline", "r3")),
        Figure::new("deadline-more-below", more_below(records, "deadline", "r3")),
        Figure::new("deadline-slowest", slowest(records, "deadline")),
    ]
}

/// By how much the load raises SM-R3's total as a multiple of StaticQoS's.
fn above_idle(records: &Records) -> Option<f64> {
    Some(times(records, "r3", "static")? - times(records, "r3-idle", "static-idle")?)
}
