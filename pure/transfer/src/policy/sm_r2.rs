//! SM-R2: what the node's peak leaves beside its measured rate (§III-B, equation 2, and figure 4(b)).
//!
//! ```text
//! max - ma10 k2 > rb        as equation 2 prints it
//! max - ma10 > rb k2        as the caption of figure 4(b) prints it
//! ```
//!
//! The two differ. In the figure, the node of 20 MB/s has no transfer, which only the second form explains
//! with `k2 = 2`: 20 - 0 > 20 does not hold. That form collapses: the more transfers a node has, the less it
//! does in sum, and the more it seems to have left. The other form takes twice of what is measured, so it
//! stops earlier.

use super::asked;
use crate::request::bytes_f64;
use crate::{NodeView, Request};

/// SM-R2.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SmR2 {
    /// The overhead coefficient *k2*. 2.0, as in figure 4(b).
    pub k2: f64,
    /// Which side it stands on.
    pub form: SmR2Form,
}

/// Where the coefficient stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SmR2Form {
    /// `max - ma10 k2 > rb`.
    Equation,
    /// `max - ma10 > rb k2`.
    Figure,
}

impl Default for SmR2 {
    fn default() -> Self {
        Self { k2: 2.0, form: SmR2Form::Figure }
    }
}

impl SmR2 {
    pub(super) fn spare(&self, node: &NodeView, request: &Request) -> Option<f64> {
        let (peak, average, rate) = (bytes_f64(node.peak.get()), bytes_f64(node.average), asked(request));
        match self.form {
            SmR2Form::Equation => super::more(peak - average * self.k2, rate),
            SmR2Form::Figure => super::more(peak - average, rate * self.k2),
        }
    }
}
