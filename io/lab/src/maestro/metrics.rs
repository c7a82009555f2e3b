//! §5.1, figure 4: a throughput target beside a latency target, whose clients become fewer twice.

use super::{SETTLING, between};
use crate::study::application::{difference, performance};
use crate::study::{Figure, Records};

/// How long each phase lasts, in seconds.
const PHASE: f64 = 120.0;

/// The figures of the claim.
pub(super) fn study(records: &Records) -> Vec<Figure> {
    let of = |run, volume, phase: f64| {
        between(records, run, volume, PHASE * phase + SETTLING, PHASE * (phase + 1.0))
    };
    let light = [0.0, 1.0, 2.0].map(|phase| of("maestro", "light", phase));
    let change = [0.0, 1.0, 2.0].map(|phase| of("maestro", "change", phase));
    let without = difference(&of("none", "light", 0.0), &of("none", "change", 0.0));
    vec![
        Figure::new("light-1", performance(&light[0])),
        Figure::new("change-1", performance(&change[0])),
        Figure::new("difference-1", difference(&light[0], &change[0])),
        Figure::new("light-2", performance(&light[1])),
        Figure::new("change-2", performance(&change[1])),
        Figure::new("light-3", performance(&light[2])),
        Figure::new("change-3", performance(&change[2])),
        Figure::new("difference-1-without", without),
    ]
}
