//! What the kernel is to hold, what it holds, and the commands that lead from one to the other.
//!
//! Each resource has a leaf: a class of each interface's HTB, with a netem queue that delays what enters it.
//! A map of nftables says which connection's packets enter which leaf. The kernel looks packets up in it only
//! for some seconds after the agent's last sign of life, so that it stops delaying even if the agent hangs.

use std::collections::{BTreeMap, BTreeSet};

use weir_model::Span;

use crate::survey::Connection;

/// How long an element of the map lasts unless it is renewed: the kernel stops delaying by itself within 3 s
/// after the agent stops renewing.
pub const MEMBER_LASTS: Span = Span::from_secs(3);

/// The leaf of a resource: the minor number of its class, on every interface. At least 1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct LeafId(pub u16);

/// What the kernel is to hold.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Wanted {
    /// The leaf of each resource, whether anything is delayed in it or not.
    pub leaves: BTreeMap<LeafId, WantedLeaf>,
    /// The interfaces through which the connections at portals leave.
    pub interfaces: BTreeSet<String>,
}

/// A leaf that is wanted.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct WantedLeaf {
    /// How long each packet stays in it.
    pub delay: Span,
    /// The connections whose packets enter it. A connection enters one leaf only.
    pub members: BTreeSet<Connection>,
}

/// What the kernel holds of the agent's.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Present {
    /// The leaves of each interface that has the agent's root queue.
    pub interfaces: BTreeMap<String, InterfaceLeaves>,
    /// Which leaf a connection's packets enter, and how long that lasts unless it is renewed. The time is the
    /// same for all; if it is zero, they are in the map, and enter no leaf until one of them is renewed.
    pub members: BTreeMap<Connection, (LeafId, Span)>,
    /// Whether a rule looks packets up in the map. Without it, no packet is touched.
    pub classifies: bool,
}

impl Present {
    /// What the kernel holds after a command. The time that elements last is that of a fresh one until the
    /// kernel is looked at again.
    pub fn assume(&mut self, command: &Command) {
        match command {
            Command::AddRoot { interface } => {
                self.interfaces.entry(interface.clone()).or_default();
            }
            Command::AddLeaf { interface, leaf, delay } | Command::SetDelay { interface, leaf, delay } => {
                let leaves = self.interfaces.entry(interface.clone()).or_default();
                leaves.entry(*leaf).or_default().0 = *delay;
            }
            Command::RemoveLeaf { interface, leaf } => {
                self.interfaces.entry(interface.clone()).or_default().remove(leaf);
            }
            Command::Enter { leaf, connections } => {
                self.members.extend(connections.iter().map(|&member| (member, (*leaf, MEMBER_LASTS))));
            }
            Command::Leave { connections } => {
                self.members.retain(|member, _| !connections.contains(member));
            }
            Command::Classify(classifies) => self.classifies = *classifies,
        }
    }
}

/// The leaves of an interface: for each its delay, and whether packets are in it.
pub type InterfaceLeaves = BTreeMap<LeafId, (Span, bool)>;

/// A change of what the kernel holds. The agent applies the commands of a plan in their order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Command {
    /// Gives an interface the agent's root queue, which sends everything on at once.
    AddRoot {
        /// The interface.
        interface: String,
    },
    /// Gives an interface a leaf.
    AddLeaf {
        /// The interface.
        interface: String,
        /// The leaf.
        leaf: LeafId,
        /// How long each packet stays in it.
        delay: Span,
    },
    /// Changes the delay of a leaf, for packets that enter it from now on. None overtakes an earlier one.
    SetDelay {
        /// The interface.
        interface: String,
        /// The leaf.
        leaf: LeafId,
        /// How long each packet stays in it.
        delay: Span,
    },
    /// Takes a leaf away. It is empty, or its packets are lost.
    RemoveLeaf {
        /// The interface.
        interface: String,
        /// The leaf.
        leaf: LeafId,
    },
    /// Puts connections into a leaf, in one transaction. It also renews all connections that are in a leaf.
    Enter {
        /// The leaf.
        leaf: LeafId,
        /// The connections.
        connections: BTreeSet<Connection>,
    },
    /// Takes connections out of whatever leaf they are in.
    Leave {
        /// The connections.
        connections: BTreeSet<Connection>,
    },
    /// Adds or removes the rule that looks packets up in the map.
    Classify(bool),
}
