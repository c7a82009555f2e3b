//! What the controller knows of each gateway. What a gateway may hold is in the ledger.

use std::collections::{BTreeMap, BTreeSet};

use weir_control::PortObservation;
use weir_model::{Instant, Span};

use crate::amounts::{Holding, VolumeKey};
use crate::connection::Connection;

/// A gateway.
#[derive(Default, Debug)]
pub(crate) struct Gateway {
    /// Whether the configuration names it.
    pub configured: bool,
    /// Its stream, if it is connected.
    pub stream: Option<Stream>,
    /// The run of it that was accepted last.
    pub run: Option<u64>,
    /// Until when another run may still hold what it was granted. Until then, this run gets no part of what
    /// is shared out.
    pub waits_until: Instant,
    /// When it reported last, on any stream; if it never did, when it first came.
    pub reported: Instant,
    /// The number of the last message to it, on any stream.
    pub number: u64,
    /// Its volumes.
    pub volumes: BTreeSet<VolumeKey>,
    /// What the law wants it to hold, or else what it holds.
    pub wanted: Holding,
    /// What is wanted, made to fit into what there is.
    pub target: Holding,
    /// Whether there was no room for the whole target.
    pub is_short: bool,
}

/// A stream of a gateway.
#[derive(Debug)]
pub(crate) struct Stream {
    /// Which stream this is.
    pub connection: Connection,
    /// When it began.
    pub began: Instant,
    /// The number of the report that was heard last, and when.
    pub heard: (u64, Instant),
    /// What the gateway saw, by volume, and when the report came.
    pub report: Option<(Instant, BTreeMap<VolumeKey, PortObservation>)>,
    /// What the gateway held when the stream began.
    pub held: Holding,
    /// What was left of its lease then.
    pub left: Span,
    /// Whether the gateway has acknowledged anything on this stream.
    pub confirmed: bool,
}

/// Why a message is due to a gateway. Each reason includes those before it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Due {
    /// Its target may differ from what it was told, or there may be room for a raise by now.
    Change,
    /// Its lease is to be renewed.
    Renewal,
    /// It has just come: it is told what it holds, and its acknowledgement shows that it listens.
    Welcome,
}

impl Gateway {
    /// Whether its stream is `connection`.
    pub(crate) fn is(&self, connection: Connection) -> bool {
        self.stream.as_ref().is_some_and(|stream| stream.connection == connection)
    }

    /// What it saw, if its report did not come before `since`.
    pub(crate) fn report(&self, since: Instant) -> Option<&BTreeMap<VolumeKey, PortObservation>> {
        let (at, volumes) = self.stream.as_ref()?.report.as_ref()?;
        (*at >= since).then_some(volumes)
    }
}
