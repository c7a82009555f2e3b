//! StaticQoS: a fixed number of transfers for each node (§III-B, equation 4).
//!
//! ```text
//! np < floor( peak / (rb k4) )
//! ```
//!
//! Nothing is measured. With a node of 300 MB/s, transfers that ask for 10 MB/s, and `k4 = 4`, the node takes
//! 7 transfers, whatever they get.

use super::asked;
use crate::request::bytes_f64;
use crate::{NodeView, Request};

/// StaticQoS.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct StaticQos {
    /// What concurrent transfers cost: *k4*. The paper names no value. 4 gives 7, 1 and 0 transfers on its
    /// three nodes; at some 26 MB/s for each, that is its 208 MB/s.
    pub k4: f64,
}

impl Default for StaticQos {
    fn default() -> Self {
        Self { k4: 4.0 }
    }
}

impl StaticQos {
    pub(super) fn spare(&self, node: &NodeView, request: &Request) -> Option<f64> {
        let most = (bytes_f64(node.peak.get()) / (asked(request) * self.k4)).floor();
        super::more(most, f64::from(node.active))
    }
}
