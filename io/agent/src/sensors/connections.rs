//! The established TCP connections at the portals, by `NETLINK_SOCK_DIAG` (`man 7 sock_diag`).
//!
//! `/proc/net/tcp` says the same as text of all sockets of the host, twice as slowly. The kernel filters by
//! state and by the port at this host (`inet_diag_dump_icsk` compares `idiag_sport`). It goes through its
//! table of connections for each question, so only those families are asked for that the portals have.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

use netlink_packet_sock_diag::inet::{ExtensionFlags, InetRequest, InetResponse, SocketId, StateFlags};
use netlink_packet_sock_diag::{AF_INET, AF_INET6, IPPROTO_TCP, SockDiagMessage};
use netlink_sys::protocols::NETLINK_SOCK_DIAG;
use weir_throttle::Connection;

use super::netlink::{Inquiry, InquiryError};
use super::text::address::is_at;

/// The most connections: four for each of the most sessions.
const MOST_CONNECTIONS: usize = 16_384;

/// Connections, each with the interface to which its socket is bound; 0 if to none.
pub(super) type Connections = BTreeMap<Connection, u32>;

/// Reads connections.
pub(super) struct ConnectionSensor {
    inquiry: Inquiry,
}

impl ConnectionSensor {
    pub(super) fn new() -> Result<Self, InquiryError> {
        Ok(Self { inquiry: Inquiry::new(NETLINK_SOCK_DIAG)? })
    }

    /// The connections at these portals now.
    pub(super) fn read(&mut self, portals: &BTreeSet<SocketAddr>) -> Result<Connections, InquiryError> {
        let questions: BTreeSet<_> = portals.iter().map(|portal| (portal.is_ipv6(), portal.port())).collect();
        let mut connections = Connections::new();
        for (is_ipv6, port) in questions {
            self.inquiry.ask(question(is_ipv6, port), true, |answer| {
                let SockDiagMessage::InetResponse(answer) = answer else { return };
                let (connection, bound_to) = connection(&answer);
                let ours = portals.iter().any(|portal| is_at(connection.local, *portal));
                if ours && connections.len() < MOST_CONNECTIONS {
                    connections.insert(connection, bound_to);
                }
            })?;
        }
        Ok(connections)
    }
}

fn question(is_ipv6: bool, port: u16) -> SockDiagMessage {
    let any = if is_ipv6 { SocketId::new_v6() } else { SocketId::new_v4() };
    SockDiagMessage::InetRequest(InetRequest {
        family: if is_ipv6 { AF_INET6 } else { AF_INET },
        protocol: IPPROTO_TCP,
        extensions: ExtensionFlags::empty(),
        states: StateFlags::ESTABLISHED,
        socket_id: SocketId { source_port: port, ..any },
    })
}

/// The connection of a socket. An IPv6 socket may have a connection of IPv4, whose addresses are mapped.
fn connection(answer: &InetResponse) -> (Connection, u32) {
    let socket = &answer.header.socket_id;
    let end = |ip: IpAddr, port| SocketAddr::new(ip.to_canonical(), port);
    let local = end(socket.source_address, socket.source_port);
    let peer = end(socket.destination_address, socket.destination_port);
    (Connection { local, peer }, socket.interface_id)
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    /// A listener at `at`, a client from `from`, and what the sensor sees at `portal`.
    fn seen(at: &str, from: &str, portal: &str) -> (Connection, Connections) {
        let listener = TcpListener::bind(at).unwrap();
        let port = listener.local_addr().unwrap().port();
        let client = TcpStream::connect((from, port)).unwrap();
        let (_accepted, _) = listener.accept().unwrap();
        let local = client.peer_addr().unwrap();
        let expected = Connection { local, peer: client.local_addr().unwrap() };
        let portal = portal.replace("PORT", &port.to_string()).parse().unwrap();
        (expected, ConnectionSensor::new().unwrap().read(&[portal].into()).unwrap())
    }

    #[test]
    fn a_connection_at_a_portal_is_seen_and_only_the_end_of_this_host() {
        for portal in ["127.0.0.1:PORT", "0.0.0.0:PORT"] {
            let (expected, seen) = seen("127.0.0.1:0", "127.0.0.1", portal);
            assert_eq!(seen.into_keys().collect::<Vec<_>>(), [expected], "{portal}");
        }
        let (_, other) = seen("127.0.0.1:0", "127.0.0.1", "127.0.0.2:PORT");
        assert_eq!(other, Connections::new());
    }

    #[test]
    fn ipv6_and_mapped_ipv4_are_seen_at_a_portal_of_all_addresses() {
        let (expected, seen_v6) = seen("[::]:0", "::1", "[::]:PORT");
        assert_eq!(seen_v6.into_keys().collect::<Vec<_>>(), [expected]);
        let (expected, seen_v4) = seen("[::]:0", "127.0.0.1", "[::]:PORT");
        assert!(expected.local.is_ipv4());
        assert_eq!(seen_v4.into_keys().collect::<Vec<_>>(), [expected]);
    }
}
