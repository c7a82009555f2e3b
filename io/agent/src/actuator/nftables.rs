//! What all messages about the agent's table of nftables begin with (linux/netfilter/nfnetlink.h).

use netlink_packet_core::NLM_F_DUMP;

use super::attributes::{Attributes, attribute, attributes};
use super::wire::Message;

/// The name of the table.
pub(super) const TABLE: &str = "weir_throttle";

/// linux/netfilter.h: a table for IPv4 and IPv6.
const NFPROTO_INET: u8 = 1;
const NFNL_SUBSYS_NFTABLES: u16 = 10;

const NFTA_SET_ELEM_LIST_TABLE: u16 = 1;
const NFTA_SET_ELEM_LIST_SET: u16 = 2;
const NFTA_SET_ELEM_LIST_ELEMENTS: u16 = 3;
/// One of several of a kind, in a list.
pub(super) const NFTA_LIST_ELEM: u16 = 1;

const NFT_MSG_GETSETELEM: u16 = 13;

/// The length of `struct nfgenmsg`.
pub(super) const HEAD: usize = 4;

/// A message about the agent's table, with `struct nfgenmsg`.
pub(super) fn message(what: &str, kind: u16, flags: u16, attributes: &Attributes) -> Message {
    let body = [&[NFPROTO_INET, 0, 0, 0], attributes.as_bytes()].concat();
    let what = format!("nftables: {what}");
    Message { what, kind: NFNL_SUBSYS_NFTABLES << 8 | kind, flags, body, needs: None }
}

/// A message about elements of a set or a map.
pub(super) fn of_elements(what: &str, kind: u16, flags: u16, set: &str, list: &Attributes) -> Message {
    message(what, kind, flags, &of_set(set).nest(NFTA_SET_ELEM_LIST_ELEMENTS, list))
}

/// Asks for the elements of a set or a map.
pub(super) fn look_at_elements(what: &str, set: &str) -> Message {
    message(what, NFT_MSG_GETSETELEM, NLM_F_DUMP, &of_set(set))
}

/// The elements in a part of an answer to [`look_at_elements`].
pub(super) fn elements(body: &[u8]) -> impl Iterator<Item = &[u8]> {
    let list = body.get(HEAD..).and_then(|body| attribute(body, NFTA_SET_ELEM_LIST_ELEMENTS));
    attributes(list.unwrap_or_default()).map(|(_, element)| element)
}

fn of_set(name: &str) -> Attributes {
    Attributes::new().text(NFTA_SET_ELEM_LIST_TABLE, TABLE).text(NFTA_SET_ELEM_LIST_SET, name)
}
