//! §IV-B, figure 4(c): SM-R3 is the best: a total as high as SM-R1's, and the fewest transfers below.
//!
//! In the control, SM-R2 measures the same rate, and does not divide it by the number of transfers. Beside it
//! stands `deadline`, which is not the paper's; and SM-R3 where one stream gets less than twice `rb k3`.

use super::{below, more_below, slowest, times, total};
use crate::study::{Figure, Records, least};

/// The figures of the claim.
pub(super) fn study(records: &Records) -> Vec<Figure> {
    let others = ["rr", "static", "r1", "r2"].map(|run| below(records, run));
    let fewest = others.into_iter().collect::<Option<Vec<_>>>().and_then(least);
    let above_fewest = below(records, "r3").zip(fewest).map(|(below, fewest)| below - fewest);
    vec![
        Figure::new("total", total(records, "r3")),
        Figure::new("times-static", times(records, "r3", "static")),
        Figure::new("times-r1", times(records, "r3", "r1")),
        Figure::new("below", below(records, "r3")),
        Figure::new("above-fewest", above_fewest),
        Figure::new("slowest", slowest(records, "r3")),
        Figure::new("times-static-without", times(records, "r2", "static")),
        Figure::new("deadline-total", total(records, "deadline")),
        Figure::new("deadline-times-r3", times(records, "deadline", "r3")),
        Figure::new("deadline-more-below", more_below(records, "deadline", "r3")),
        Figure::new("deadline-slowest", slowest(records, "deadline")),
        Figure::new("total-slow-streams", total(records, "r3-slow-streams")),
        Figure::new("deadline-slow-streams", total(records, "deadline-slow-streams")),
    ]
}
