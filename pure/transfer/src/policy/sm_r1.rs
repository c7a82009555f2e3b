//! SM-R1: what the node's peak leaves beside the reserved rates (§III-B, equation 1).
//!
//! ```text
//! max - res_ban k1 > rb
//! ```
//!
//! A transfer reserves what it asks for. What a node loses by many concurrent transfers, or to others, is not
//! seen, but for `k1`.

use super::asked;
use crate::request::bytes_f64;
use crate::{NodeView, Request};

/// SM-R1.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SmR1 {
    /// The overhead coefficient *k1*. 1.5, as in figure 4(a).
    pub k1: f64,
}

impl Default for SmR1 {
    fn default() -> Self {
        Self { k1: 1.5 }
    }
}

impl SmR1 {
    pub(super) fn spare(&self, node: &NodeView, request: &Request) -> Option<f64> {
        super::more(bytes_f64(node.peak.get()) - bytes_f64(node.reserved) * self.k1, asked(request))
    }
}
