//! §IV-B, figure 4(a): SM-R1 has a higher total than StaticQoS, and more transfers below their rate.
//!
//! The paper's reason is that nodes do less the more transfers they have, which SM-R1 does not see. In the
//! control, the nodes do not.

use super::{below, more_below, slowest, times, total};
use crate::study::{Figure, Records};

/// The figures of the claim.
pub(super) fn study(records: &Records) -> Vec<Figure> {
    vec![
        Figure::new("total", total(records, "r1")),
        Figure::new("times-static", times(records, "r1", "static")),
        Figure::new("below", below(records, "r1")),
        Figure::new("more-below", more_below(records, "r1", "static")),
        Figure::new("slowest", slowest(records, "r1")),
        Figure::new("more-below-without", more_below(records, "r1-no-overhead", "static")),
    ]
}
