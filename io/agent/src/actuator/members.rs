//! The elements of the agent's maps: which connection's packets enter which leaf.

use std::net::{IpAddr, SocketAddr};

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use weir_throttle::{Connection, LeafId};

use super::attributes::{Attributes, attribute, host32};
use super::family::Family;
use super::nftables::{NFTA_LIST_ELEM, elements, look_at_elements, of_elements};
use super::queues;
use super::wire::Message;

const NFT_MSG_NEWSETELEM: u16 = 12;
const NFT_MSG_DELSETELEM: u16 = 14;

const NFTA_SET_ELEM_KEY: u16 = 1;
const NFTA_SET_ELEM_DATA: u16 = 2;
const NFTA_DATA_VALUE: u16 = 1;

/// Adds elements, which must not be there. No message if there are none.
pub(super) fn add(leaf: LeafId, connections: &[Connection]) -> Vec<Message> {
    let classid = queues::number(leaf).to_ne_bytes();
    let element = |key: &[u8]| {
        let data = Attributes::new().bytes(NFTA_DATA_VALUE, &classid);
        keyed(key).nest(NFTA_SET_ELEM_DATA, &data)
    };
    lists("add connections", NFT_MSG_NEWSETELEM, NLM_F_CREATE | NLM_F_EXCL, connections, element)
}

/// Removes elements, which must be there. No message if there are none.
pub(super) fn remove(connections: &[Connection]) -> Vec<Message> {
    lists("remove connections", NFT_MSG_DELSETELEM, 0, connections, keyed)
}

/// Asks for the elements of a family's map.
pub(super) fn look(family: Family) -> Message {
    look_at_elements("look at the connections", family.map())
}

/// The elements in a part of an answer to [`look`], each with its leaf.
pub(super) fn read(body: &[u8]) -> impl Iterator<Item = (Connection, LeafId)> {
    elements(body).filter_map(|element| {
        let value = |kind| attribute(attribute(element, kind)?, NFTA_DATA_VALUE);
        let classid = host32(value(NFTA_SET_ELEM_DATA)?)?;
        let [.., high, low] = classid.to_be_bytes();
        let connection = connection(value(NFTA_SET_ELEM_KEY)?)?;
        Some((connection, LeafId(u16::from_be_bytes([high, low]))))
    })
}

/// A message for each family that has one of the connections.
fn lists(
    what: &str,
    kind: u16,
    flags: u16,
    connections: &[Connection],
    element: impl Fn(&[u8]) -> Attributes,
) -> Vec<Message> {
    let mut messages = Vec::new();
    for family in Family::ALL {
        let keys = connections.iter().filter_map(key).filter(|(of, _)| *of == family);
        let list = keys.fold(Attributes::new(), |list, (_, key)| list.nest(NFTA_LIST_ELEM, &element(&key)));
        if list != Attributes::new() {
            messages.push(of_elements(what, kind, flags, family.map(), &list));
        }
    }
    messages
}

fn keyed(key: &[u8]) -> Attributes {
    let value = Attributes::new().bytes(NFTA_DATA_VALUE, key);
    Attributes::new().nest(NFTA_SET_ELEM_KEY, &value)
}

/// The key of a connection, as the rule makes it of a packet: each part padded to 4 bytes. A connection
/// between addresses of two families has no packets, and no key.
fn key(connection: &Connection) -> Option<(Family, Vec<u8>)> {
    let port = |address: &SocketAddr| u32::from(address.port()) << 16;
    let [source, destination] = [connection.local, connection.peer];
    let (source_port, destination_port) = (port(&source).to_be_bytes(), port(&destination).to_be_bytes());
    match (source.ip().to_canonical(), destination.ip().to_canonical()) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let key = [source.octets(), source_port, destination.octets(), destination_port].concat();
            Some((Family::V4, key))
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let (source, destination) = (source.octets(), destination.octets());
            let key = [&source[..], &source_port, &destination, &destination_port].concat();
            Some((Family::V6, key))
        }
        _ => None,
    }
}

/// The connection of a key.
fn connection(key: &[u8]) -> Option<Connection> {
    let (source, destination) = key.split_at_checked(key.len() / 2)?;
    let end = |half: &[u8]| {
        let (address, port) = half.split_last_chunk::<4>()?;
        let address = match address.len() {
            4 => IpAddr::from(*address.first_chunk::<4>()?),
            16 => IpAddr::from(*address.first_chunk::<16>()?),
            _ => return None,
        };
        Some(SocketAddr::new(address, u16::from_be_bytes(*port.first_chunk()?)))
    };
    Some(Connection { local: end(source)?, peer: end(destination)? })
}

#[cfg(test)]
mod tests {
    use super::super::nftables::HEAD;
    use super::*;

    /// The lists of elements that `nft add element inet weir_throttle members4 { 10.0.0.1 . 3260 . 10.0.0.2 .
    /// 5000 : 7e17:3 }` sends, and the same with `members6`, `fd00::1` and `fd00::2` (nft 1.0.6).
    const NFT_V4: &str = "28000180180001801400010\
        00a0000010cbc00000a000002138800000c000280080001000300177e";
    const NFT_V6: &str = "40000180300001802c000100fd0000000000000000000000000000010cbc0000\
        fd000000000000000000000000000002138800000c000280080001000300177e";

    fn connection(local: &str, peer: &str) -> Connection {
        Connection { local: local.parse().expect("an address"), peer: peer.parse().expect("an address") }
    }

    fn elements(message: &Message) -> String {
        let list = attribute(&message.body[HEAD..], 3).expect("it has elements");
        list.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn elements_are_what_nft_would_send() {
        let v4 = connection("10.0.0.1:3260", "10.0.0.2:5000");
        let v6 = connection("[fd00::1]:3260", "[fd00::2]:5000");
        let sent: Vec<_> = add(LeafId(3), &[v6, v4]).iter().map(elements).collect();
        assert_eq!(sent, [NFT_V4, NFT_V6]);
        assert_eq!(remove(&[v4]).len(), 1);
        assert_eq!(add(LeafId(3), &[]), []);
    }

    #[test]
    fn an_address_of_ipv4_in_one_of_ipv6_is_one_of_ipv4() {
        let mapped = connection("[::ffff:10.0.0.1]:3260", "[::ffff:10.0.0.2]:5000");
        let sent: Vec<_> = add(LeafId(3), &[mapped]).iter().map(elements).collect();
        assert_eq!(sent, [NFT_V4]);
        assert_eq!(add(LeafId(3), &[connection("10.0.0.1:1", "[fd00::2]:1")]), []);
    }

    #[test]
    fn what_is_dumped_is_read_and_what_is_cut_off_is_not() {
        let (v4, v6) =
            (connection("10.0.0.1:3260", "10.0.0.2:5000"), connection("[fd00::1]:1", "[fd00::2]:2"));
        for connection in [v4, v6] {
            let data = Attributes::new().bytes(NFTA_DATA_VALUE, &queues::number(LeafId(7)).to_ne_bytes());
            let (family, key) = key(&connection).expect("one family");
            let element = keyed(&key).nest(NFTA_SET_ELEM_DATA, &data);
            let list = Attributes::new().nest(NFTA_LIST_ELEM, &element);
            let answer = of_elements("", 0, 0, family.map(), &list).body;
            assert_eq!(read(&answer).collect::<Vec<_>>(), [(connection, LeafId(7))]);
            for length in 0..answer.len() {
                assert_eq!(read(&answer[..length]).count(), 0, "{length} bytes");
            }
        }
    }
}
