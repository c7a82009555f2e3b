//! What the controller knows of each gateway, beside what it may be holding.

use std::collections::{BTreeMap, BTreeSet};

use weir_control::PortObservation;
use weir_model::{Instant, Span};

use crate::amounts::{Holding, VolumeKey};
use crate::arrivals::Connection;

/// A gateway.
#[derive(Default, Debug)]
pub(crate) struct Gateway {
    /// Whether the configuration names it.
    pub configured: bool,
    /// Its stream.
    pub stream: Option<Stream>,
    /// Which run of it was accepted last.
    pub run: Option<u64>,
    /// Until when another run may still hold what it was granted: until then this one is given nothing of
    /// what there is to share out.
    pub waits_until: Instant,
    /// When it reported last, on whatever stream; if it never did, when it came first.
    pub reported: Instant,
    /// The number of the last message to it, on whatever stream.
    pub number: u64,
    /// Its volumes.
    pub volumes: BTreeSet<VolumeKey>,
    /// What the law wants it to hold, or else what it holds.
    pub wanted: Holding,
    /// The same, made to fit into what there is.
    pub target: Holding,
    /// Whether there was no room for all of it.
    pub is_short: bool,
}

/// A stream of a gateway.
#[derive(Debug)]
pub(crate) struct Stream {
    /// Which of all streams.
    pub connection: Connection,
    /// When it began.
    pub began: Instant,
    /// The number of the report that was heard last, and when.
    pub heard: (u64, Instant),
    /// What it saw, by volume, and when it said so.
    pub report: Option<(Instant, BTreeMap<VolumeKey, PortObservation>)>,
    /// What it held when the stream began.
    pub held: Holding,
    /// What was left of its lease then.
    pub left: Span,
    /// Whether it has acknowledged anything on this stream.
    pub confirmed: bool,
}

/// Why a message is due to a gateway; a later one includes an earlier.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Due {
    /// It may hold something else than it is to hold, and there may be room for a raise.
    Change,
    /// What it may do, anew.
    Renewal,
    /// What it holds, back to it as it is: the acknowledgement says that it listens.
    Welcome,
}

impl Gateway {
    /// Whether its stream is `connection`.
    pub(crate) fn is(&self, connection: Connection) -> bool {
        self.stream.as_ref().is_some_and(|stream| stream.connection == connection)
    }

    /// What it saw, if it said so after `since`.
    pub(crate) fn report(&self, since: Instant) -> Option<&BTreeMap<VolumeKey, PortObservation>> {
        let (at, volumes) = self.stream.as_ref()?.report.as_ref()?;
        (*at >= since).then_some(volumes)
    }
}
