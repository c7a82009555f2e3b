//! §5.1, figure 3: two throughput targets that the array can meet, until one workload needs more requests for
//! its bytes.

use super::{SETTLING, between};
use crate::study::application::{difference, performance};
use crate::study::{Figure, Records};

/// When the requests of one workload become smaller, in seconds.
const CHANGE: f64 = 180.0;
const END: f64 = 360.0;

/// The figures of the claim.
pub(super) fn study(records: &Records) -> Vec<Figure> {
    let settled = |run, volume, from: f64, to| between(records, run, volume, from + SETTLING, to);
    let of = |volume| (settled("maestro", volume, 0.0, CHANGE), settled("maestro", volume, CHANGE, END));
    let ((light_before, light), (change_before, change)) = (of("light"), of("change"));
    let without = |volume| settled("none", volume, CHANGE, END);
    vec![
        Figure::new("light-before", performance(&light_before)),
        Figure::new("change-before", performance(&change_before)),
        Figure::new("light-after", performance(&light)),
        Figure::new("change-after", performance(&change)),
        Figure::new("difference-after", difference(&light, &change)),
        Figure::new("difference-after-without", difference(&without("light"), &without("change"))),
    ]
}
