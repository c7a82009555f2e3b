//! §5.1, figure 5: two workloads fall short, and the priority of one becomes four times that of the other.

use super::{SETTLING, between};
use crate::study::application::{difference, performance, shortfall_ratio};
use crate::study::{Figure, Records};

/// When the priority changes, in seconds.
const CHANGE: f64 = 180.0;
const END: f64 = 360.0;

/// The figures of the claim.
pub(super) fn study(records: &Records) -> Vec<Figure> {
    let settled = |run, volume, from: f64, to| between(records, run, volume, from + SETTLING, to);
    let before = ["light", "heavy"].map(|volume| settled("maestro", volume, 0.0, CHANGE));
    let after = ["light", "heavy"].map(|volume| settled("maestro", volume, CHANGE, END));
    let without = ["light", "heavy"].map(|volume| settled("none", volume, 0.0, CHANGE));
    vec![
        Figure::new("light-before", performance(&before[0])),
        Figure::new("heavy-before", performance(&before[1])),
        Figure::new("difference-before", difference(&before[0], &before[1])),
        Figure::new("light-after", performance(&after[0])),
        Figure::new("heavy-after", performance(&after[1])),
        Figure::new("shortfall-ratio", shortfall_ratio(&after[0], &after[1])),
        Figure::new("difference-without", difference(&without[0], &without[1])),
    ]
}
