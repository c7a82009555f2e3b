//! SM-R3: the measured rate of a node, shared by one transfer more (§III-B, equation 3).
//!
//! ```text
//! ma10 / (np + 1) > rb k3
//! ```
//!
//! An idle node has `ma10 = 0` and would never be taken, so "if no transfers are present then start one"
//! (§IV-B). The rule needs no peak, and sees whatever slows the node down. Its price: the average is ten
//! seconds old, and the node is filled until one share is near `rb k3`, even if fewer transfers would get
//! more in sum.

use super::asked;
use crate::request::bytes_f64;
use crate::{NodeView, Request};

/// SM-R3.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SmR3 {
    /// The overhead coefficient *k3*. 1.2, as in figure 4(c).
    pub k3: f64,
}

impl Default for SmR3 {
    fn default() -> Self {
        Self { k3: 1.2 }
    }
}

impl SmR3 {
    pub(super) fn spare(&self, node: &NodeView, request: &Request) -> Option<f64> {
        let (share, wanted) =
            (bytes_f64(node.average) / f64::from(node.active + 1), asked(request) * self.k3);
        // An idle node passes with less than nothing to spare, so it comes after the nodes that pass by the
        // rule.
        if node.active == 0 { Some(share - wanted) } else { super::more(share, wanted) }
    }
}
