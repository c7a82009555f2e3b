//! What the controller tells about itself: to a log, and to whoever asks why a volume gets what it gets.

use std::collections::VecDeque;

use weir_control::{Grant, Reasoning};
use weir_model::{Instant, Objective, Span};

/// Something for a log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// A gateway has come, for the first time or again.
    GatewayConnected {
        /// Its name.
        gateway: String,
        /// How many volumes it serves.
        volumes: usize,
    },
    /// A gateway's stream has ended. Its share, but the part that is left for it, goes to the others when its
    /// lease is over.
    GatewayLost {
        /// Its name.
        gateway: String,
    },
    /// A gateway serves a volume that the controller has no configuration of. It is served as one that is
    /// promised nothing. Said once for each volume, for as long as a gateway serves it.
    VolumeUnknown {
        /// The gateway's name.
        gateway: String,
        /// The volume's name.
        volume: String,
    },
}

/// What the law decided in a control interval.
#[derive(Clone, PartialEq, Debug)]
pub struct Record {
    /// When.
    pub at: Instant,
    /// How many requests there were to share out.
    pub total: u32,
    /// By volume, in the order of their names.
    pub volumes: Vec<Allocated>,
}

/// What a volume got.
#[derive(Clone, PartialEq, Debug)]
pub struct Allocated {
    /// Its name.
    pub volume: String,
    /// What it was to get.
    pub objective: Objective,
    /// How the law came to it.
    pub reasoning: Reasoning,
    /// By gateway, in the order of their names: what it is to hold as soon as there is room.
    pub split: Vec<(String, Grant)>,
}

/// The controller at a glance.
#[derive(Clone, PartialEq, Debug)]
pub struct ArrayStatus {
    /// How many requests there are to share out.
    pub total: u32,
    /// How many may be held at most at this instant; `None` while gateways have not said yet what they hold.
    pub held: Option<u32>,
    /// The gateways: those of the configuration, those that were removed until their leases are over, and
    /// what other runs of a gateway may hold beside the one that is connected.
    pub gateways: Vec<GatewayStatus>,
}

/// A gateway at a glance.
#[derive(Clone, PartialEq, Debug)]
pub struct GatewayStatus {
    /// Its name.
    pub gateway: String,
    /// Whether it has a stream.
    pub connected: bool,
    /// How long ago it reported last.
    pub reported: Option<Span>,
    /// How many requests it may be holding at most.
    pub held: u32,
    /// What its volumes were told last.
    pub volumes: Vec<(String, Grant)>,
}

/// Intervals that are remembered.
const REMEMBERED: usize = 30;

/// The last intervals.
#[derive(Default, Debug)]
pub(crate) struct History(VecDeque<Record>);

impl History {
    pub(crate) fn push(&mut self, record: Record) {
        if self.0.len() == REMEMBERED {
            self.0.pop_front();
        }
        self.0.push_back(record);
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &Record> {
        self.0.iter()
    }
}

impl Allocated {
    /// How many requests it is to hold at all gateways.
    pub fn total(&self) -> u32 {
        self.split.iter().map(|(_, grant)| grant.concurrency.get()).fold(0, u32::saturating_add)
    }
}
