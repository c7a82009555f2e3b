//! Who is delayed at each resource, and through which connections: decided anew at each survey.
//!
//! - An **exempt** initiator is never delayed. A connection that may be an exempt initiator's is not delayed
//!   either, whoever else may have it.
//! - A **forced** one always is, at each resource that it uses.
//! - Any other is a **member** while its write rate is above the limit. Once in, it stays until its rate is
//!   below half of the limit. Its own delay lowers its rate; without the gap, it would come and go each
//!   second, and with it the delay of its packets.
//!
//! An initiator that leaves while packets of it are delayed may send a later packet past these. It writes
//! little then, so there are few of them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use crate::initiators::Initiator;
use crate::kernel::LeafId;
use crate::roster::Roster;
use crate::settings::{Listed, Settings};
use crate::survey::Connection;
use crate::writers::{Writer, Writers};

/// Why an initiator is delayed at a resource, or is not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standing {
    /// It writes less than the limit.
    Below,
    /// It writes more than the limit, or did and still writes more than half of it: a member.
    Above,
    /// The operator wants it delayed: a member.
    Forced,
    /// The operator wants it never delayed.
    Exempt,
}

impl Standing {
    /// Whether the packets to the initiator are to be delayed.
    pub fn is_member(self) -> bool {
        matches!(self, Self::Above | Self::Forced)
    }
}

/// Who is delayed, decided.
#[derive(Default, Debug)]
pub(crate) struct Decision {
    /// Of each initiator at each resource.
    pub(crate) standings: BTreeMap<Writer, Standing>,
    /// The leaves that each connection may enter: those of the resources at which it is a member's.
    pub(crate) eligible: BTreeMap<Connection, BTreeSet<LeafId>>,
    /// How many connections of each member are to be delayed. A member with none is out of reach.
    pub(crate) reached: BTreeMap<Writer, usize>,
}

/// What the operator says of the initiators and the connections of a roster.
#[derive(Default, Debug)]
pub(crate) struct Lists {
    /// Of each initiator, by its name and all of its known addresses.
    listed: BTreeMap<Initiator, Listed>,
    /// The connections that nobody may delay: those from exempt addresses and from known addresses of exempt
    /// initiators, and those that may be an exempt initiator's.
    protected: BTreeSet<Connection>,
    /// The connections from forced addresses.
    forced: BTreeSet<Connection>,
}

impl Lists {
    /// What `settings` say of a roster.
    pub(crate) fn new(settings: &Settings, roster: &Roster) -> Self {
        let mut addresses: BTreeMap<&Initiator, Vec<IpAddr>> = BTreeMap::new();
        for (login, used) in &roster.logins {
            addresses.entry(&login.initiator).or_default().extend(&used.addresses);
        }
        let listed = |(initiator, addresses): (&Initiator, Vec<IpAddr>)| {
            (initiator.clone(), settings.listed(initiator.name(), &addresses))
        };
        let listed: BTreeMap<_, _> = addresses.into_iter().map(listed).collect();
        let from = |list: Listed| {
            let is_from = move |connection: &&Connection| settings.listed_at(connection.peer.ip()) == list;
            roster.connections.keys().filter(is_from).copied().collect::<BTreeSet<_>>()
        };
        let (mut protected, forced) = (from(Listed::Exempt), from(Listed::Forced));
        for (login, used) in &roster.logins {
            if listed.get(&login.initiator) == Some(&Listed::Exempt) {
                let from = |connection: &&Connection| used.addresses.contains(&connection.peer.ip());
                protected.extend(roster.connections.keys().filter(from));
                protected.extend(used.reachable.iter().flat_map(|reachable| reachable.connections.iter()));
            }
        }
        Self { listed, protected, forced }
    }
}

/// Decides, from the rates and from who was a member before. `lacking` are the interfaces on which nothing
/// can be delayed.
pub(crate) fn decide(
    lists: &Lists,
    roster: &Roster,
    writers: &Writers,
    limit_of: impl Fn(LeafId) -> u64,
    lacking: &BTreeSet<String>,
    before: &Decision,
) -> Decision {
    let standing = |(writer, &rate): (&Writer, &u64)| {
        let was = before.standings.get(writer).is_some_and(|standing| *standing == Standing::Above);
        let standing = match lists.listed.get(&writer.1) {
            Some(Listed::Exempt) => Standing::Exempt,
            Some(Listed::Forced) => Standing::Forced,
            _ => by_rate(rate, limit_of(writer.0), was),
        };
        (writer.clone(), standing)
    };
    let standings = writers.rates().iter().map(standing).collect();
    let mut decision = Decision { standings, ..Decision::default() };
    decision.find_connections(lists, roster, lacking);
    decision
}

fn by_rate(rate: u64, limit: u64, was_above: bool) -> Standing {
    let limit = if was_above { limit / 2 } else { limit };
    if rate > limit { Standing::Above } else { Standing::Below }
}

impl Decision {
    /// Finds the connections of all members, and those that are forced by their address alone.
    fn find_connections(&mut self, lists: &Lists, roster: &Roster, lacking: &BTreeSet<String>) {
        let may_be_delayed = |connection: &&Connection| {
            !lists.protected.contains(connection)
                && matches!(roster.connections.get(connection), Some(Some(to)) if !lacking.contains(to))
        };
        // Sessions that cannot be told apart share a set of connections, which is gone through once for each
        // leaf: a thousand such sessions have a thousand connections each.
        let mut counts = BTreeMap::new();
        for (login, used) in &roster.logins {
            let Some(reachable) = &used.reachable else { continue };
            for leaf in used.leaves(&roster.luns) {
                let writer = (leaf, login.initiator.clone());
                let standing = self.standings.get(&writer).copied().unwrap_or(Standing::Below);
                let by_address = !reachable.certain && standing == Standing::Below;
                if !standing.is_member() && !by_address {
                    continue;
                }
                let key = (Arc::as_ptr(&reachable.connections), leaf, by_address);
                let count = *counts.entry(key).or_insert_with(|| {
                    let connections = reachable
                        .connections
                        .iter()
                        .filter(may_be_delayed)
                        .filter(|connection| !by_address || lists.forced.contains(connection));
                    self.eligible_for(leaf, connections)
                });
                if standing.is_member() {
                    *self.reached.entry(writer).or_default() += count;
                }
            }
        }
    }

    fn eligible_for<'a>(&mut self, leaf: LeafId, connections: impl Iterator<Item = &'a Connection>) -> usize {
        let mut count = 0;
        for connection in connections {
            self.eligible.entry(*connection).or_default().insert(leaf);
            count += 1;
        }
        count
    }

    /// All members, at all resources.
    pub(crate) fn members(&self) -> impl Iterator<Item = (&Writer, Standing)> {
        self.standings
            .iter()
            .filter(|entry| entry.1.is_member())
            .map(|(writer, &standing)| (writer, standing))
    }
}
