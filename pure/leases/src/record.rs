//! What the controller tells about itself: events for the log, its state, and why each volume gets its part.

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
    /// A gateway's stream has ended. When its lease is over, its share goes to the others, except its static
    /// part.
    GatewayLost {
        /// Its name.
        gateway: String,
    },
    /// A gateway of a pool under the law of promises has come, for the first time or again.
    GatewayJoined {
        /// Its name.
        gateway: String,
    },
    /// The stream of a gateway of a pool under the law of promises has ended. In two seconds its promises do
    /// not count any more.
    GatewayLeft {
        /// Its name.
        gateway: String,
    },
    /// A gateway serves a volume that the controller has no configuration of. The volume is promised nothing.
    /// The event comes once for each volume, for as long as a gateway serves it.
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
    /// What each volume got, in the order of their names.
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
    /// What each gateway is to hold as soon as there is room, in the order of their names.
    pub split: Vec<(String, Grant)>,
}

/// The controller at a glance.
#[derive(Clone, PartialEq, Debug)]
pub struct ArrayStatus {
    /// How many requests there are to share out.
    pub total: u32,
    /// The most requests that gateways may hold at this instant; `None` while some have not yet said what
    /// they hold.
    pub held: Option<u32>,
    /// The gateways of the configuration, gateways that were removed and whose leases are not yet over, and
    /// other runs of a gateway that may hold something beside the run that is connected.
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
    /// The most requests that it may hold.
    pub held: u32,
    /// What its volumes were told last.
    pub volumes: Vec<(String, Grant)>,
}

/// How many intervals are remembered.
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
