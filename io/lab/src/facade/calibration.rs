//! §4.4, the baseline of figure 7: what a greedy reader gets from an LU of its own. It checks the model.

use crate::study::{Figure, Records, View};

/// The figures of the claim.
pub(super) fn study(records: &Records) -> Vec<Figure> {
    vec![Figure::new("greedy-rate", records.view("alone", "greedy").map(View::rate))]
}
