//! Which connections are a session's.
//!
//! A target framework tells at best the addresses of a session's initiator, and never its ports. So a session
//! has the connections between its target's portals and these addresses. A session without known addresses
//! has those that another session of the same initiator is known to have. If that finds nothing, it has every
//! connection at the portals that no other session explains: it may be any of them.
//!
//! Only connections at a portal are ever a session's, so nothing else on the host is ever delayed.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use crate::survey::{Connection, Session, Target};

/// The connections that a session may have. Sessions that cannot be told apart share one set.
#[derive(Clone, Debug)]
pub(crate) struct Reachable {
    pub(crate) connections: Arc<BTreeSet<Connection>>,
    /// Whether the session has all of them, for certain. Otherwise it has some of them.
    pub(crate) certain: bool,
}

/// The connections at all portals, by what they are looked up with.
pub(crate) struct Connections {
    by_peer: BTreeMap<IpAddr, Vec<Connection>>,
    /// The addresses of an initiator, from the sessions of which they are known.
    addresses: BTreeMap<String, BTreeSet<IpAddr>>,
    /// Those that no session with known addresses explains.
    unexplained: Vec<Connection>,
    /// The unexplained connections at the same portals are the same set for all targets.
    at_portals: BTreeMap<Portals, Arc<BTreeSet<Connection>>>,
    /// The connections between the same portals and addresses are the same set for all sessions. One host may
    /// have thousands of sessions and of connections; a set for each session would take gigabytes.
    known: BTreeMap<(Portals, BTreeSet<IpAddr>), Arc<BTreeSet<Connection>>>,
}

type Portals = BTreeSet<SocketAddr>;

/// A connection with addresses as they are on the wire: an IPv4 address that a socket shows as an IPv6 one is
/// an IPv4 address, and a link-local address has no interface.
pub(crate) fn on_the_wire(connection: &Connection) -> Connection {
    let plain = |end: SocketAddr| SocketAddr::new(end.ip().to_canonical(), end.port());
    Connection { local: plain(connection.local), peer: plain(connection.peer) }
}

impl Connections {
    /// The connections of a survey, all on the wire, and its targets.
    pub(crate) fn new(connections: &BTreeSet<Connection>, targets: &[Target]) -> Self {
        let mut by_peer: BTreeMap<_, Vec<Connection>> = BTreeMap::new();
        for &connection in connections {
            by_peer.entry(connection.peer.ip()).or_default().push(connection);
        }
        let mut addresses: BTreeMap<_, BTreeSet<IpAddr>> = BTreeMap::new();
        for session in targets.iter().flat_map(|target| &target.sessions) {
            if !session.addresses.is_empty() {
                addresses.entry(session.initiator.clone()).or_default().extend(canonical(&session.addresses));
            }
        }
        let (unexplained, at_portals, known) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
        let mut all = Self { by_peer, addresses, unexplained, at_portals, known };
        for target in targets {
            for session in &target.sessions {
                all.known(target, session);
            }
        }
        let explained: BTreeSet<_> = all.known.values().flat_map(|known| known.iter().copied()).collect();
        all.unexplained = connections.difference(&explained).copied().collect();
        all
    }

    /// The connections of a session of `target`.
    pub(crate) fn of(&mut self, target: &Target, session: &Session) -> Reachable {
        let known = self.known(target, session);
        if !known.is_empty() || !session.addresses.is_empty() {
            return Reachable { connections: known, certain: true };
        }
        let unexplained = &self.unexplained;
        let connections = self.at_portals.entry(target.portals.clone()).or_insert_with(|| {
            let at_portals =
                unexplained.iter().filter(|connection| is_at_portal(connection, &target.portals));
            Arc::new(at_portals.copied().collect())
        });
        Reachable { connections: Arc::clone(connections), certain: false }
    }

    /// The connections of a session by the addresses that its initiator is known to have.
    fn known(&mut self, target: &Target, session: &Session) -> Arc<BTreeSet<Connection>> {
        let own: BTreeSet<_> = canonical(&session.addresses).collect();
        let others = self.addresses.get(&session.initiator).filter(|_| own.is_empty());
        let addresses = others.cloned().unwrap_or(own);
        let (by_peer, portals) = (&self.by_peer, &target.portals);
        let known = self.known.entry((portals.clone(), addresses.clone())).or_insert_with(|| {
            let from = addresses.iter().filter_map(|address| by_peer.get(address)).flatten();
            Arc::new(from.copied().filter(|connection| is_at_portal(connection, portals)).collect())
        });
        Arc::clone(known)
    }
}

/// Addresses as they are on the wire.
pub(crate) fn canonical(addresses: &BTreeSet<IpAddr>) -> impl Iterator<Item = IpAddr> {
    addresses.iter().map(IpAddr::to_canonical)
}

/// Whether the near end of a connection is one of these portals. The unspecified address of IPv6 takes
/// connections of IPv4, too.
fn is_at_portal(connection: &Connection, portals: &BTreeSet<SocketAddr>) -> bool {
    let (local, any) = (connection.local, IpAddr::V6(Ipv6Addr::UNSPECIFIED));
    portals.iter().any(|portal| {
        let address = portal.ip().to_canonical();
        let takes = address == local.ip()
            || address == any
            || address.is_unspecified() && address.is_ipv4() && local.is_ipv4();
        takes && portal.port() == local.port()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::survey::Framework;

    fn connection(local: &str, peer: &str) -> Connection {
        Connection { local: local.parse().unwrap(), peer: peer.parse().unwrap() }
    }

    fn session(initiator: &str, addresses: &[&str]) -> Session {
        let addresses = addresses.iter().map(|address| address.parse().unwrap()).collect();
        Session { initiator: initiator.into(), addresses, written: BTreeMap::new() }
    }

    fn target(portals: &[&str], sessions: &[Session]) -> Target {
        Target {
            framework: Framework::Lio,
            name: "t".into(),
            portals: portals.iter().map(|portal| portal.parse().unwrap()).collect(),
            luns: BTreeMap::new(),
            sessions: sessions.to_vec(),
            out_of_reach: None,
        }
    }

    /// The peers of the connections of each session, and a `?` where they are not certain.
    fn peers(targets: &[Target], connections: &[Connection]) -> Vec<String> {
        let connections = connections.iter().map(on_the_wire).collect();
        let mut all = Connections::new(&connections, targets);
        let mut peers = |target: &Target, session: &Session| {
            let reachable = all.of(target, session);
            let peers: Vec<_> = reachable.connections.iter().map(|found| found.peer.to_string()).collect();
            format!("{}{}", peers.join(" "), if reachable.certain { "" } else { "?" })
        };
        let sessions =
            targets.iter().flat_map(|target| target.sessions.iter().map(move |session| (target, session)));
        sessions.map(|(target, session)| peers(target, session)).collect()
    }

    #[test]
    fn a_session_has_all_connections_between_its_addresses_and_its_targets_portals() {
        let multipath = session("a", &["10.0.0.11", "10.0.1.11"]);
        let found = peers(
            &[target(&["10.0.0.1:3260", "10.0.1.1:3260"], &[multipath])],
            &[
                connection("10.0.0.1:3260", "10.0.0.11:1"),
                connection("10.0.1.1:3260", "10.0.1.11:2"),
                connection("10.0.0.1:3260", "10.0.0.12:3"),
            ],
        );
        assert_eq!(found, ["10.0.0.11:1 10.0.1.11:2"]);
    }

    #[test]
    fn no_connection_that_is_at_no_portal_is_a_sessions() {
        let found = peers(
            &[target(&["10.0.0.1:3260"], &[session("a", &["10.0.0.11"]), session("b", &[])])],
            &[connection("10.0.0.1:22", "10.0.0.11:1"), connection("10.0.9.1:3260", "10.0.0.11:2")],
        );
        assert_eq!(found, ["", "?"]);
    }

    #[test]
    fn an_unspecified_portal_stands_for_all_addresses_of_its_family_and_that_of_ipv6_for_both() {
        let all = [
            connection("10.0.0.1:3260", "10.0.0.11:1"),
            connection("[::ffff:10.0.0.2]:3260", "[::ffff:10.0.0.11]:2"),
            connection("[fd00::1]:3260", "[fd00::11]:3"),
        ];
        for (portal, expected) in [
            ("0.0.0.0:3260", "10.0.0.11:1 10.0.0.11:2"),
            ("[::]:3260", "10.0.0.11:1 10.0.0.11:2 [fd00::11]:3"),
            ("[::]:860", ""),
        ] {
            let session = session("a", &["10.0.0.11", "fd00::11"]);
            assert_eq!(peers(&[target(&[portal], &[session])], &all), [expected], "{portal}");
        }
    }

    #[test]
    fn a_session_without_addresses_may_have_each_connection_that_no_other_session_explains() {
        let sessions = [session("known", &["10.0.0.11"]), session("b", &[]), session("c", &[])];
        let all = ["10.0.0.11:1", "10.0.0.12:2", "10.0.0.13:3"].map(|peer| connection("10.0.0.1:3260", peer));
        let found = peers(&[target(&["10.0.0.1:3260"], &sessions)], &all);
        assert_eq!(found, ["10.0.0.11:1", "10.0.0.12:2 10.0.0.13:3?", "10.0.0.12:2 10.0.0.13:3?"]);
    }

    #[test]
    fn an_initiators_addresses_at_one_target_hold_at_the_others_on_that_portal() {
        let portal = ["10.0.0.1:3260"];
        let targets =
            [target(&portal, &[session("a", &["10.0.0.11"])]), target(&portal, &[session("a", &[])])];
        let found =
            peers(&targets, &[("10.0.0.11:1"), "10.0.0.12:2"].map(|peer| connection(portal[0], peer)));
        assert_eq!(found, ["10.0.0.11:1", "10.0.0.11:1"]);
    }

    #[test]
    fn sessions_from_the_same_addresses_share_one_set() {
        let sessions = ["a", "b"].map(|name| session(name, &["10.0.0.11"]));
        let target = target(&["10.0.0.1:3260"], &sessions);
        let known = BTreeSet::from([connection("10.0.0.1:3260", "10.0.0.11:1")]);
        let mut all = Connections::new(&known, std::slice::from_ref(&target));
        let [one, other] = sessions.map(|session| all.of(&target, &session).connections);
        assert!(Arc::ptr_eq(&one, &other) && one.len() == 1);
    }
}
