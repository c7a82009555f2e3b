//! §IV-B, figure 4(b): SM-R2 collapses. The more transfers a node has, the less it does, and the more it
//! seems to have left.
//!
//! The paper's reason is that transfers compete for the processor of the host. In the control, they do not.
//! Beside it stands the rule as equation 2 prints it.

use super::{below, on, total};
use crate::study::{Figure, Records};

/// The figures of the claim.
pub(super) fn study(records: &Records) -> Vec<Figure> {
    vec![
        Figure::new("total", total(records, "r2")),
        Figure::new("below", below(records, "r2")),
        Figure::new("on-vm1", on(records, "r2", "vm1")),
        Figure::new("total-without", total(records, "r2-no-crowd")),
        Figure::new("total-equation", total(records, "r2-equation")),
        Figure::new("below-equation", below(records, "r2-equation")),
        Figure::new("on-vm1-equation", on(records, "r2-equation", "vm1")),
    ]
}
