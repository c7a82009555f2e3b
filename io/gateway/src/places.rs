//! Places for the peers of a gateway: places for handshakes, and places for clients, with a share for each
//! address and each volume.
//!
//! A client is a peer that has finished its handshake. Until then it has one of `handshakes` places, which a
//! peer cannot keep for long: see `weir-newcomers`. Counting both kinds together would let silent peers
//! keep clients out.
//!
//! A client has one of `connections` places. Of these, an address and a volume each may have a limited
//! number. Each volume keeps a few places that clients of other volumes cannot take. This file counts without
//! sockets and without time.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use weir_newcomers::{Newcomers, Origin, Ticket};

use crate::spec::Limits;

/// The limit that kept a peer out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Full {
    /// `limits.connections`, or the places that other volumes keep of it.
    Connections,
    /// `limits.connections_per_address`.
    Address,
    /// `limits.connections_per_volume`.
    Volume,
}

/// All places.
#[derive(Debug)]
pub(crate) struct Places {
    limits: Limits,
    /// The unfinished handshakes.
    handshakes: Newcomers,
    /// The clients of each address and of each volume. An address or volume without clients has no entry.
    addresses: BTreeMap<Origin, u32>,
    volumes: BTreeMap<String, u32>,
    clients: u32,
    /// The volumes that are served, each of which keeps some places.
    served: BTreeSet<String>,
}

impl Places {
    pub(crate) const fn new(limits: Limits) -> Self {
        Self {
            limits,
            handshakes: Newcomers::new(limits.handshakes),
            addresses: BTreeMap::new(),
            volumes: BTreeMap::new(),
            clients: 0,
            served: BTreeSet::new(),
        }
    }

    /// Changes the limits for later peers.
    pub(crate) fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
        self.handshakes.set_most(limits.handshakes);
    }

    /// Changes the volumes that are served.
    pub(crate) fn set_served(&mut self, volumes: BTreeSet<String>) {
        self.served = volumes;
    }

    /// How many peers are connected: clients and unfinished handshakes.
    pub(crate) fn connected(&self) -> u64 {
        u64::from(self.clients) + self.handshakes.count()
    }

    /// Gives a peer that has connected a place for its handshake. If another handshake has to give way, it is
    /// over, and the second ticket names it.
    ///
    /// # Errors
    /// If the peer could not become a client, because no volume has a place for it.
    pub(crate) fn begin(&mut self, origin: Origin) -> Result<(Ticket, Option<(Ticket, Origin)>), Full> {
        if self.clients >= self.limits.connections {
            return Err(Full::Connections);
        }
        Ok(self.handshakes.begin(origin))
    }

    /// Ends a handshake that has led to no client. If it gave way to another, it is over already.
    pub(crate) fn end(&mut self, ticket: Ticket, origin: Origin) {
        self.handshakes.end(ticket, origin);
    }

    /// Makes a peer a client of this volume, at the end of its handshake. The handshake is over in any case.
    ///
    /// # Errors
    /// If there is no place for the client.
    pub(crate) fn settle(&mut self, ticket: Ticket, origin: Origin, volume: &str) -> Result<(), Full> {
        self.end(ticket, origin);
        if self.of_volume(volume) >= self.limits.connections_per_volume {
            return Err(Full::Volume);
        }
        // The places that the volume keeps are there for its clients wherever they come from: on one host, or
        // behind one router, all clients have one address.
        let is_kept = self.of_volume(volume) < self.kept_by_each();
        if !is_kept && self.of_address(origin) >= self.limits.connections_per_address {
            return Err(Full::Address);
        }
        if self.clients.saturating_add(self.kept_by_others(volume)) >= self.limits.connections {
            return Err(Full::Connections);
        }
        *self.addresses.entry(origin).or_default() += 1;
        *self.volumes.entry(volume.to_owned()).or_default() += 1;
        self.clients += 1;
        Ok(())
    }

    /// Frees the place of a client that has gone.
    pub(crate) fn leave(&mut self, origin: Origin, volume: &str) {
        self.clients -= 1;
        if let Some(clients) = self.addresses.get_mut(&origin) {
            *clients -= 1;
            if *clients == 0 {
                self.addresses.remove(&origin);
            }
        }
        if let Some(clients) = self.volumes.get_mut(volume) {
            *clients -= 1;
            if *clients == 0 {
                self.volumes.remove(volume);
            }
        }
    }

    fn of_address(&self, origin: Origin) -> u32 {
        self.addresses.get(&origin).copied().unwrap_or(0)
    }

    fn of_volume(&self, volume: &str) -> u32 {
        self.volumes.get(volume).copied().unwrap_or(0)
    }

    fn kept_by_each(&self) -> u32 {
        let volumes = u32::try_from(self.served.len()).unwrap_or(u32::MAX).max(1);
        self.limits.connections_kept.min(self.limits.connections / 2 / volumes)
    }

    /// Places that the other volumes keep for clients that may still come. All volumes together keep half of
    /// all places at most.
    fn kept_by_others(&self, volume: &str) -> u32 {
        let each = self.kept_by_each();
        if each == 0 {
            return 0;
        }
        let others = self.served.iter().filter(|served| *served != volume);
        others.map(|served| each.saturating_sub(self.of_volume(served))).sum()
    }
}

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Connections => "limits.connections are connected, or kept for other volumes",
            Self::Address => "limits.connections_per_address are connected from there",
            Self::Volume => "limits.connections_per_volume are connected to this volume",
        })
    }
}

#[cfg(test)]
mod tests;
