//! §IV-B, figure 3(b): under StaticQoS few transfers get less than they ask for, and these get nearly as
//! much.
//!
//! In the control, round robin places the same transfers.

use super::{below, on, slowest, total};
use crate::study::{Figure, Records};

/// The figures of the claim.
pub(super) fn study(records: &Records) -> Vec<Figure> {
    vec![
        Figure::new("total", total(records, "static")),
        Figure::new("below", below(records, "static")),
        Figure::new("some-below", below(records, "static")),
        Figure::new("slowest", slowest(records, "static")),
        Figure::new("on-vm1", on(records, "static", "vm1")),
        Figure::new("below-without", below(records, "rr")),
        Figure::new("slowest-without", slowest(records, "rr")),
    ]
}
