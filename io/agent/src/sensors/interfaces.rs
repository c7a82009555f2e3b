//! The interface through which the packets of a connection leave: what the kernel's routing says.
//!
//! The kernel is asked for the route of each connection (`RTM_GETROUTE`, `man 7 rtnetlink`), with both
//! addresses and both ports, because a route over several links may choose by ports. The answer names the
//! upper interface: the bond, the VLAN or the bridge, which is where its packets are queued first.
//!
//! The answers are kept until a route, an address, a rule or a link changes, of which the kernel tells.

use std::collections::BTreeMap;

use netlink_packet_route::route::{RouteAddress, RouteAttribute, RouteMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};
use rustix::fd::OwnedFd;
use rustix::net::netdevice::index_to_name;
use rustix::net::{AddressFamily as Family, SocketFlags, SocketType, socket_with};
use weir_throttle::Connection;

use super::connections::Connections;
use super::netlink::{Inquiry, InquiryError};

/// TCP (RFC 9293, section 3.1).
const TCP: u8 = 6;

/// The groups of messages about links, addresses, routes and rules (`RTNLGRP_*` of linux/rtnetlink.h).
const GROUPS: [u32; 7] = [1, 5, 7, 8, 9, 11, 19];

/// The most messages about changes that are taken at a time. What is left says the same next time.
const MOST_MESSAGES: usize = 256;

/// Finds interfaces.
pub(super) struct Interfaces {
    inquiry: Inquiry,
    changes: Socket,
    names: OwnedFd,
    known: BTreeMap<Connection, Option<String>>,
}

impl Interfaces {
    pub(super) fn new() -> Result<Self, InquiryError> {
        let mut changes = Socket::new(NETLINK_ROUTE)?;
        changes.bind(&SocketAddr::new(0, 0))?;
        changes.set_non_blocking(true)?;
        for group in GROUPS {
            changes.add_membership(group)?;
        }
        let names = socket_with(Family::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None);
        Ok(Self {
            inquiry: Inquiry::new(NETLINK_ROUTE)?,
            changes,
            names: names.map_err(InquiryError::Refused)?,
            known: BTreeMap::new(),
        })
    }

    /// Whether routes may lead elsewhere than at the last call. Then all answers are forgotten.
    pub(super) fn have_changed(&mut self) -> bool {
        let mut changed = false;
        let mut buffer = Vec::with_capacity(64);
        for _ in 0..MOST_MESSAGES {
            buffer.clear();
            match self.changes.recv(&mut buffer, 0) {
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => break,
                // A message, or the news that some were lost.
                Ok(_) | Err(_) => changed = true,
            }
        }
        if changed {
            self.known.clear();
        }
        changed
    }

    /// The interface of each connection. Those to which no route leads are left out.
    pub(super) fn of(
        &mut self,
        connections: &Connections,
    ) -> Result<BTreeMap<Connection, String>, InquiryError> {
        self.known.retain(|connection, _| connections.contains_key(connection));
        let mut found = BTreeMap::new();
        let mut names = BTreeMap::new();
        for (connection, bound_to) in connections {
            let name = match self.known.get(connection) {
                Some(known) => known.clone(),
                None => {
                    let index = self.index(*connection, *bound_to)?;
                    let name = index.and_then(|index| {
                        let name =
                            names.entry(index).or_insert_with(|| index_to_name(&self.names, index).ok());
                        name.clone()
                    });
                    self.known.insert(*connection, name.clone());
                    name
                }
            };
            found.extend(name.map(|name| (*connection, name)));
        }
        Ok(found)
    }

    /// The number of the interface, if there is a route.
    fn index(&mut self, connection: Connection, bound_to: u32) -> Result<Option<u32>, InquiryError> {
        let mut index = None;
        let asked = self.inquiry.ask(question(connection, bound_to), false, |answer| {
            let RouteNetlinkMessage::NewRoute(route) = answer else { return };
            index = route.attributes.iter().find_map(|attribute| match attribute {
                RouteAttribute::Oif(index) => Some(*index),
                _ => None,
            });
        });
        match asked {
            Ok(()) => Ok(index),
            // There is no route, or the address is no longer this host's.
            Err(InquiryError::Refused(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Asks for the route of the packets from the portal to the initiator.
fn question(Connection { local, peer }: Connection, bound_to: u32) -> RouteNetlinkMessage {
    let mut message = RouteMessage::default();
    let (family, bits) = if peer.is_ipv4() { (AddressFamily::Inet, 32) } else { (AddressFamily::Inet6, 128) };
    message.header.address_family = family;
    message.header.destination_prefix_length = bits;
    message.header.source_prefix_length = bits;
    message.attributes = vec![
        RouteAttribute::Destination(RouteAddress::from(peer.ip())),
        RouteAttribute::Source(RouteAddress::from(local.ip())),
        RouteAttribute::IpProto(TCP),
        RouteAttribute::Sport(local.port()),
        RouteAttribute::Dport(peer.port()),
    ];
    if bound_to != 0 {
        message.attributes.push(RouteAttribute::Oif(bound_to));
    }
    RouteNetlinkMessage::GetRoute(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_within_the_host_leave_through_lo() {
        let connection = |ip: &str| {
            let at = |port| std::net::SocketAddr::new(ip.parse().unwrap(), port);
            Connection { local: at(3260), peer: at(40_000) }
        };
        let mut interfaces = Interfaces::new().unwrap();
        let connections = ["127.0.0.1", "::1"].map(|ip| (connection(ip), 0)).into();
        let found = interfaces.of(&connections).unwrap();
        assert!(found.contains_key(&connection("127.0.0.1")));
        assert!(found.values().all(|name| name == "lo"), "{found:?}");
        assert_eq!(interfaces.of(&connections).unwrap(), found);
        assert_eq!(interfaces.of(&Connections::new()).unwrap(), BTreeMap::new());
        assert!(interfaces.known.is_empty());
    }

    #[test]
    fn a_connection_without_a_route_has_no_interface() {
        let at = |text: &str| text.parse().unwrap();
        // The local address is of a range for documentation (RFC 5737), and is no host's.
        let nowhere = Connection { local: at("192.0.2.1:3260"), peer: at("192.0.2.2:40000") };
        let found = Interfaces::new().unwrap().of(&[(nowhere, 0)].into()).unwrap();
        assert_eq!(found, BTreeMap::new());
    }
}
