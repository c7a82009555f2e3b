//! Room: the transfers of each peer, and the bytes that are coming to each node.
//!
//! Both are asked for with each request, for each node. To add up 20,000 transfers each time would hold up
//! all clients, so they are kept as counters. Transfers come, go and change their node only here.

use std::fmt::{self, Display, Formatter};
use std::sync::Arc;

use weir_model::Direction;
use weir_transfer::NodeIndex;

use super::{Desk, Live, MOST_LIVE, direction};

/// The most transfers of one peer that wait or run: half of all, so that others have room beside it.
pub(super) const MOST_OF_PEER: usize = MOST_LIVE / 2;

/// On whose behalf a client asks: a user of this machine, or who has a certificate. Cheap to clone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Peer(Arc<str>);

impl Peer {
    /// A user of this machine.
    pub(crate) fn user(uid: u32) -> Self {
        Self(format!("user {uid}").into())
    }

    /// Who has this certificate, in DER.
    pub(crate) fn certificate(der: &[u8]) -> Self {
        Self(format!("the certificate {}", &blake3::hash(der).to_hex()[..16]).into())
    }
}

impl Display for Peer {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Live {
    /// How many bytes are coming to its node.
    fn coming(&self) -> u128 {
        let writes = direction(self.kind) == Direction::Write;
        self.new.bytes.filter(|_| writes).map_or(0, u128::from)
    }
}

impl Desk {
    /// A transfer comes. It has no node yet.
    pub(super) fn enter(&mut self, id: u64, live: Live) {
        *self.peers.entry(live.peer.clone()).or_default() += 1;
        self.live.insert(id, live);
    }

    /// A transfer goes.
    pub(super) fn leave(&mut self, id: u64) -> Option<Live> {
        self.move_to(id, None);
        let live = self.live.remove(&id)?;
        if let Some(count) = self.peers.get_mut(&live.peer) {
            *count -= 1;
            if *count == 0 {
                self.peers.remove(&live.peer);
            }
        }
        Some(live)
    }

    /// A transfer runs on a node from now on, or on none.
    pub(super) fn move_to(&mut self, id: u64, node: Option<NodeIndex>) {
        let Some(live) = self.live.get_mut(&id) else { return };
        let bytes = live.coming();
        if let Some(before) = std::mem::replace(&mut live.node, node) {
            self.nodes[before.0].coming -= bytes;
        }
        if let Some(now) = node {
            self.nodes[now.0].coming += bytes;
        }
    }

    /// How many transfers of a peer wait or run.
    pub(super) fn of_peer(&self, peer: &Peer) -> usize {
        self.peers.get(peer).copied().unwrap_or(0)
    }

    /// Whether a replica of so many bytes fits on a node, beside those that are being written there.
    pub(super) fn has_room(&self, node: NodeIndex, bytes: Option<u64>) -> bool {
        let Some(capacity) = self.config.nodes[node.0].capacity else { return true };
        let known = &self.nodes[node.0];
        let here = self.live.values().filter(|live| live.node == Some(node));
        debug_assert_eq!(known.coming, here.map(Live::coming).sum(), "the counter is the sum");
        u128::from(known.stored) + known.coming + u128::from(bytes.unwrap_or(1)) <= u128::from(capacity)
    }
}
