//! The agent's table of nftables as messages of nfnetlink (linux/netfilter/nf_tables.h): two maps from
//! connections to leaves, two [signs of life](super::alive), and two chains. While the agent is alive, the
//! first chain sends TCP to the second one, which looks up what the host sends.
//!
//! The table has an owner, the socket that made it. The kernel removes it when that socket closes, whatever
//! ended the process, and lets nobody else change it meanwhile. So it is also what keeps a second agent out.

use netlink_packet_core::{NLM_F_APPEND, NLM_F_CREATE, NLM_F_EXCL};
use weir_model::Span;
use weir_throttle::Packets;

use super::alive::Sign;
use super::attributes::{Attributes, attribute, net32};
use super::family::Family;
use super::nftables::{HEAD, TABLE, message};
use super::rule::{self, LOOK_UP};
use super::wire::Message;

/// The chain of what the host sends.
const OUTPUT: &str = "output";

/// linux/netfilter.h: the hook for what the host itself sends.
const NF_INET_LOCAL_OUT: u32 = 3;
/// linux/netfilter.h, NF_ACCEPT: what the rules do not touch goes on.
const NF_ACCEPT: u32 = 1;
/// nft(8), "mangle": where packets are marked, before anything is filtered.
const PRIORITY: i32 = -150;

const NFT_MSG_NEWTABLE: u16 = 0;
const NFT_MSG_GETTABLE: u16 = 1;
const NFT_MSG_DELTABLE: u16 = 2;
const NFT_MSG_NEWCHAIN: u16 = 3;
const NFT_MSG_GETCHAIN: u16 = 4;
const NFT_MSG_DELCHAIN: u16 = 5;
const NFT_MSG_NEWRULE: u16 = 6;
const NFT_MSG_DELRULE: u16 = 8;
const NFT_MSG_NEWSET: u16 = 9;

const NFTA_TABLE_NAME: u16 = 1;
const NFTA_TABLE_FLAGS: u16 = 2;
const NFTA_TABLE_OWNER: u16 = 7;
const NFT_TABLE_F_OWNER: u32 = 2;

const NFTA_CHAIN_TABLE: u16 = 1;
const NFTA_CHAIN_NAME: u16 = 3;
const NFTA_CHAIN_HOOK: u16 = 4;
const NFTA_CHAIN_POLICY: u16 = 5;
const NFTA_CHAIN_TYPE: u16 = 7;
const NFTA_HOOK_HOOKNUM: u16 = 1;
const NFTA_HOOK_PRIORITY: u16 = 2;

const NFTA_RULE_TABLE: u16 = 1;
const NFTA_RULE_CHAIN: u16 = 2;
const NFTA_RULE_EXPRESSIONS: u16 = 4;

const NFTA_SET_TABLE: u16 = 1;
const NFTA_SET_NAME: u16 = 2;
const NFTA_SET_FLAGS: u16 = 3;
const NFTA_SET_KEY_TYPE: u16 = 4;
const NFTA_SET_KEY_LEN: u16 = 5;
const NFTA_SET_DATA_TYPE: u16 = 6;
const NFTA_SET_DATA_LEN: u16 = 7;
const NFTA_SET_ID: u16 = 10;
const NFTA_SET_TIMEOUT: u16 = 11;
const NFTA_SET_USERDATA: u16 = 13;
const NFT_SET_MAP: u32 = 0x8;
const NFT_SET_TIMEOUT: u32 = 0x10;

/// For nft(8): the byte orders of key and leaf, so that it prints `7e17:1`. Each is a type, a length and a
/// number in 32 bits (libnftnl/udata.h, `NFTNL_UDATA_SET_KEYBYTEORDER` and `…DATABYTEORDER`).
const BYTE_ORDERS: [u8; 12] = [0, 4, 0, 0, 0, 0, 1, 4, 1, 0, 0, 0];
/// nft(8)'s number for the type of a leaf. The kernel only keeps it.
const TYPE_CLASSID: u32 = 23;
/// nft(8)'s number for the type of a protocol above IP.
const TYPE_PROTOCOL: u32 = 12;

/// Makes the table with its maps, and with the signs of life, which last for `lasts`. The kernel refuses if
/// there is such a table.
pub(super) fn create(lasts: Span) -> Vec<Message> {
    let attributes =
        Attributes::new().text(NFTA_TABLE_NAME, TABLE).net32(NFTA_TABLE_FLAGS, NFT_TABLE_F_OWNER);
    let table = message("add the table", NFT_MSG_NEWTABLE, NLM_F_CREATE | NLM_F_EXCL, &attributes);
    let maps = Family::ALL.map(|family| {
        let (key_type, key_length) = family.key();
        let attributes = set(family.map(), family.map_number(), NFT_SET_MAP, key_type, key_length)
            .net32(NFTA_SET_DATA_TYPE, TYPE_CLASSID)
            .net32(NFTA_SET_DATA_LEN, 4)
            .bytes(NFTA_SET_USERDATA, &BYTE_ORDERS);
        message("add a map of connections", NFT_MSG_NEWSET, NLM_F_CREATE, &attributes)
    });
    let signs = Sign::ALL.map(|sign| {
        let attributes = set(sign.set(), sign.set_number(), NFT_SET_TIMEOUT, TYPE_PROTOCOL, 1)
            .net64(NFTA_SET_TIMEOUT, lasts.as_nanos() / 1_000_000);
        message("add a sign of life", NFT_MSG_NEWSET, NLM_F_CREATE, &attributes)
    });
    [table].into_iter().chain(maps).chain(signs).map(needing_nf_tables).collect()
}

fn set(name: &str, number: u32, flags: u32, key_type: u32, key_length: u32) -> Attributes {
    Attributes::new()
        .text(NFTA_SET_TABLE, TABLE)
        .text(NFTA_SET_NAME, name)
        .net32(NFTA_SET_FLAGS, flags)
        .net32(NFTA_SET_KEY_TYPE, key_type)
        .net32(NFTA_SET_KEY_LEN, key_length)
        .net32(NFTA_SET_ID, number)
}

/// Removes the table with all that is in it.
pub(super) fn remove() -> Vec<Message> {
    vec![message("remove the table", NFT_MSG_DELTABLE, 0, &Attributes::new().text(NFTA_TABLE_NAME, TABLE))]
}

/// Asks for the table.
pub(super) fn look() -> Message {
    let attributes = Attributes::new().text(NFTA_TABLE_NAME, TABLE);
    message("look for the table", NFT_MSG_GETTABLE, 0, &attributes)
}

/// The port of the socket that owns the table of an answer to [`look`]; `None` if it has no owner.
pub(super) fn owner(body: &[u8]) -> Option<u32> {
    body.get(HEAD..).and_then(|attributes| attribute(attributes, NFTA_TABLE_OWNER)).and_then(net32)
}

/// Adds the chains with their rules. The kernel refuses if there are such chains.
pub(super) fn classify(packets: Packets) -> Vec<Message> {
    let hook = Attributes::new()
        .net32(NFTA_HOOK_HOOKNUM, NF_INET_LOCAL_OUT)
        .bytes(NFTA_HOOK_PRIORITY, &PRIORITY.to_be_bytes());
    let output = chain(OUTPUT)
        .text(NFTA_CHAIN_TYPE, "filter")
        .net32(NFTA_CHAIN_POLICY, NF_ACCEPT)
        .nest(NFTA_CHAIN_HOOK, &hook);
    let chains = [chain(LOOK_UP), output]
        .map(|chain| message("add a chain", NFT_MSG_NEWCHAIN, NLM_F_CREATE | NLM_F_EXCL, &chain));
    let rule = |chain, expressions: &Attributes| {
        let attributes = rules_of(chain).nest(NFTA_RULE_EXPRESSIONS, expressions);
        message("add a rule", NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND, &attributes)
    };
    let look_up = Family::ALL.map(|family| rule(LOOK_UP, &rule::into_leaf(family, packets)));
    let output = Sign::ALL.map(|sign| rule(OUTPUT, &rule::while_alive(sign)));
    chains.into_iter().chain(look_up).chain(output).map(needing_nf_tables).collect()
}

/// Removes the rules and the chains. The kernel refuses if there are none.
pub(super) fn stop_classifying() -> Vec<Message> {
    let both = [OUTPUT, LOOK_UP];
    let rules = both.map(|chain| message("remove the rules", NFT_MSG_DELRULE, 0, &rules_of(chain)));
    let chains = both.map(|name| message("remove a chain", NFT_MSG_DELCHAIN, 0, &chain(name)));
    rules.into_iter().chain(chains).collect()
}

/// Asks for the chain of what the host sends.
pub(super) fn look_for_chain() -> Message {
    message("look for the chain", NFT_MSG_GETCHAIN, 0, &chain(OUTPUT))
}

/// Without nf_tables, the kernel refuses a transaction as a whole, whichever message is asked about.
fn needing_nf_tables(message: Message) -> Message {
    Message { needs: Some("nf_tables"), ..message }
}

fn chain(name: &str) -> Attributes {
    Attributes::new().text(NFTA_CHAIN_TABLE, TABLE).text(NFTA_CHAIN_NAME, name)
}

fn rules_of(chain: &str) -> Attributes {
    Attributes::new().text(NFTA_RULE_TABLE, TABLE).text(NFTA_RULE_CHAIN, chain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_maps_have_the_types_and_lengths_that_nft_would_send() {
        let maps = create(Span::from_secs(3));
        let sent = |map: usize, kind| attribute(&maps[map].body[HEAD..], kind).expect("it is sent").to_vec();
        assert_eq!(sent(1, NFTA_SET_KEY_TYPE), [0, 0x1c, 0xd1, 0xcd]);
        assert_eq!(sent(2, NFTA_SET_KEY_TYPE), [0, 0x20, 0xd2, 0x0d]);
        assert_eq!(sent(1, NFTA_SET_KEY_LEN), [0, 0, 0, 16]);
        assert_eq!(sent(2, NFTA_SET_KEY_LEN), [0, 0, 0, 40]);
        assert_eq!(sent(1, NFTA_SET_FLAGS), [0, 0, 0, 0x08]);
        assert_eq!(sent(3, NFTA_SET_FLAGS), [0, 0, 0, 0x10]);
        assert_eq!(sent(3, NFTA_SET_KEY_TYPE), [0, 0, 0, 12]);
        assert_eq!(sent(3, NFTA_SET_TIMEOUT), [0, 0, 0, 0, 0, 0, 0x0b, 0xb8]);
    }

    #[test]
    fn the_owner_is_read_where_there_is_one() {
        let owned = Attributes::new().text(NFTA_TABLE_NAME, TABLE).net32(NFTA_TABLE_OWNER, 4711);
        assert_eq!(owner(&message("", 0, 0, &owned).body), Some(4711));
        assert_eq!(owner(&look().body), None);
        assert_eq!(owner(&[1, 0]), None);
    }
}
