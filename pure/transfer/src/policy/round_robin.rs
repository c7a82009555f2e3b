//! RR: "the next available storage node is selected for the current transfer" (§III-B).
//!
//! Nothing is measured, so nothing ever waits.

use crate::{NodeIndex, NodeView};

/// Round robin.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct RoundRobin {
    last: Option<NodeIndex>,
}

impl RoundRobin {
    /// The next node after the last, among those that may serve the transfer.
    pub(crate) fn place(&mut self, nodes: &[NodeView]) -> Option<NodeIndex> {
        let after = nodes.iter().find(|node| Some(node.node) > self.last);
        let next = after.or_else(|| nodes.first())?.node;
        self.last = Some(next);
        Some(next)
    }
}
