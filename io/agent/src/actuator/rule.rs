//! The rules that send the packets of members into their leaves while the agent is alive, as nf_tables runs
//! them: `meta l4proto @alive0 goto members`, and in that chain
//! `meta l4proto tcp meta priority set ip saddr . tcp sport . ip daddr . tcp dport map @members4`.
//!
//! The latter loads source and destination into registers, side by side, and looks them up. A packet that is
//! not in the map leaves the rule there, untouched. The names and numbers are those of
//! linux/netfilter/nf_tables.h.
//!
//! An agent that delays acknowledgements only, or all else only, has `meta length <= 80` or `> 80` before the
//! look-up. It tells them apart: an IPv4 packet without payload has a header of 20 bytes and one of TCP of at
//! most 60. The shortest message of iSCSI is one of 48 bytes, behind headers of at least 40.

use weir_throttle::Packets;

use super::alive::Sign;
use super::attributes::Attributes;
use super::family::Family;
use super::nftables::NFTA_LIST_ELEM;

const NFTA_EXPR_NAME: u16 = 1;
const NFTA_EXPR_DATA: u16 = 2;

const NFTA_META_DREG: u16 = 1;
const NFTA_META_KEY: u16 = 2;
const NFTA_META_SREG: u16 = 3;
const NFT_META_LEN: u32 = 0;
const NFT_META_PRIORITY: u32 = 2;
const NFT_META_NFPROTO: u32 = 15;
const NFT_META_L4PROTO: u32 = 16;

const NFTA_CMP_SREG: u16 = 1;
const NFTA_CMP_OP: u16 = 2;
const NFTA_CMP_DATA: u16 = 3;
const NFTA_DATA_VALUE: u16 = 1;
const NFT_CMP_EQ: u32 = 0;
const NFT_CMP_LTE: u32 = 3;
const NFT_CMP_GT: u32 = 4;

const NFTA_BYTEORDER_SREG: u16 = 1;
const NFTA_BYTEORDER_DREG: u16 = 2;
const NFTA_BYTEORDER_OP: u16 = 3;
const NFTA_BYTEORDER_LEN: u16 = 4;
const NFTA_BYTEORDER_SIZE: u16 = 5;
const NFT_BYTEORDER_HTON: u32 = 1;

const NFTA_PAYLOAD_DREG: u16 = 1;
const NFTA_PAYLOAD_BASE: u16 = 2;
const NFTA_PAYLOAD_OFFSET: u16 = 3;
const NFTA_PAYLOAD_LEN: u16 = 4;
const NFT_PAYLOAD_NETWORK_HEADER: u32 = 1;
const NFT_PAYLOAD_TRANSPORT_HEADER: u32 = 2;

const NFTA_LOOKUP_SET: u16 = 1;
const NFTA_LOOKUP_SREG: u16 = 2;
const NFTA_LOOKUP_DREG: u16 = 3;
const NFTA_LOOKUP_SET_ID: u16 = 4;

const NFTA_IMMEDIATE_DREG: u16 = 1;
const NFTA_IMMEDIATE_DATA: u16 = 2;
const NFTA_DATA_VERDICT: u16 = 2;
const NFTA_VERDICT_CODE: u16 = 1;
const NFTA_VERDICT_CHAIN: u16 = 2;
const NFT_GOTO: i32 = -4;
/// The register for what is to become of the packet.
const VERDICT: u32 = 0;

/// The chain in which packets are looked up.
pub(super) const LOOK_UP: &str = "members";

/// The first register of 16 bytes. It is the same memory as the four registers of 4 bytes from 8 on.
const REGISTER: u32 = 1;
/// The registers of 4 bytes behind an IPv4 address in `REGISTER`: 4 bytes further each.
const V4_REGISTERS: [u32; 3] = [9, 10, 11];
/// The registers behind an IPv6 address in `REGISTER`: 16, 20 and 36 bytes further. The first is the second
/// one of 16 bytes.
const V6_REGISTERS: [u32; 3] = [2, 13, 17];

const IPPROTO_TCP: u8 = 6;
const NFPROTO_IPV4: u8 = 2;
const NFPROTO_IPV6: u8 = 10;

/// The rule for what the host sends: on to the look-up, if the sign has the packet's protocol.
pub(super) fn while_alive(sign: Sign) -> Attributes {
    let found = Attributes::new()
        .net32(NFTA_LOOKUP_SREG, REGISTER)
        .text(NFTA_LOOKUP_SET, sign.set())
        .net32(NFTA_LOOKUP_SET_ID, sign.set_number());
    let verdict =
        Attributes::new().bytes(NFTA_VERDICT_CODE, &NFT_GOTO.to_be_bytes()).text(NFTA_VERDICT_CHAIN, LOOK_UP);
    let data = Attributes::new().nest(NFTA_DATA_VERDICT, &verdict);
    let on = Attributes::new().net32(NFTA_IMMEDIATE_DREG, VERDICT).nest(NFTA_IMMEDIATE_DATA, &data);
    list(&[load_meta(NFT_META_L4PROTO), expression("lookup", &found), expression("immediate", &on)])
}

/// The rule of a family: into the leaf of its connection.
pub(super) fn into_leaf(family: Family, packets: Packets) -> Attributes {
    // Where the addresses begin in the header, how long one is, and the headers of a packet without payload.
    let (protocol, source, destination, length, registers, longest_ack) = match family {
        Family::V4 => (NFPROTO_IPV4, 12, 16, 4, V4_REGISTERS, 80),
        Family::V6 => (NFPROTO_IPV6, 8, 24, 16, V6_REGISTERS, 100),
    };
    let [source_port, destination_address, destination_port] = registers;
    let mut expressions = vec![
        load_meta(NFT_META_L4PROTO),
        must(NFT_CMP_EQ, &[IPPROTO_TCP]),
        load_meta(NFT_META_NFPROTO),
        must(NFT_CMP_EQ, &[protocol]),
    ];
    expressions.extend(match packets {
        Packets::All => Vec::new(),
        Packets::Acks => length_must(NFT_CMP_LTE, longest_ack),
        Packets::Payload => length_must(NFT_CMP_GT, longest_ack),
    });
    expressions.extend([
        load(NFT_PAYLOAD_NETWORK_HEADER, source, length, REGISTER),
        load(NFT_PAYLOAD_TRANSPORT_HEADER, 0, 2, source_port),
        load(NFT_PAYLOAD_NETWORK_HEADER, destination, length, destination_address),
        load(NFT_PAYLOAD_TRANSPORT_HEADER, 2, 2, destination_port),
        look_up(family),
        set_priority(),
    ]);
    list(&expressions)
}

fn list(expressions: &[Attributes]) -> Attributes {
    expressions.iter().fold(Attributes::new(), |list, expression| list.nest(NFTA_LIST_ELEM, expression))
}

fn expression(name: &str, data: &Attributes) -> Attributes {
    Attributes::new().text(NFTA_EXPR_NAME, name).nest(NFTA_EXPR_DATA, data)
}

fn load_meta(key: u32) -> Attributes {
    expression("meta", &Attributes::new().net32(NFTA_META_KEY, key).net32(NFTA_META_DREG, REGISTER))
}

/// Ends the rule unless the packet's length compares so with this one. The kernel compares bytes from the
/// first to the last, so the length must begin with its highest one.
fn length_must(comparison: u32, length: u32) -> Vec<Attributes> {
    let to_network = Attributes::new()
        .net32(NFTA_BYTEORDER_SREG, REGISTER)
        .net32(NFTA_BYTEORDER_DREG, REGISTER)
        .net32(NFTA_BYTEORDER_OP, NFT_BYTEORDER_HTON)
        .net32(NFTA_BYTEORDER_LEN, 4)
        .net32(NFTA_BYTEORDER_SIZE, 4);
    vec![
        load_meta(NFT_META_LEN),
        expression("byteorder", &to_network),
        must(comparison, &length.to_be_bytes()),
    ]
}

/// Ends the rule unless the register compares so with this value.
fn must(comparison: u32, value: &[u8]) -> Attributes {
    let data = Attributes::new().bytes(NFTA_DATA_VALUE, value);
    let comparison = Attributes::new().net32(NFTA_CMP_SREG, REGISTER).net32(NFTA_CMP_OP, comparison);
    expression("cmp", &comparison.nest(NFTA_CMP_DATA, &data))
}

/// Loads a part of a header. What is left of the last register becomes zero.
fn load(header: u32, offset: u32, length: u32, register: u32) -> Attributes {
    let data = Attributes::new()
        .net32(NFTA_PAYLOAD_DREG, register)
        .net32(NFTA_PAYLOAD_BASE, header)
        .net32(NFTA_PAYLOAD_OFFSET, offset)
        .net32(NFTA_PAYLOAD_LEN, length);
    expression("payload", &data)
}

/// Replaces the key in the registers by the leaf, or ends the rule.
fn look_up(family: Family) -> Attributes {
    let data = Attributes::new()
        .net32(NFTA_LOOKUP_SREG, REGISTER)
        .net32(NFTA_LOOKUP_DREG, REGISTER)
        .text(NFTA_LOOKUP_SET, family.map())
        .net32(NFTA_LOOKUP_SET_ID, family.map_number());
    expression("lookup", &data)
}

fn set_priority() -> Attributes {
    let data = Attributes::new().net32(NFTA_META_KEY, NFT_META_PRIORITY).net32(NFTA_META_SREG, REGISTER);
    expression("meta", &data)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `nft add rule … meta priority set ip saddr . tcp sport . ip daddr . tcp dport map @members4`
    /// sends as expressions (nft 1.0.6).
    const NFT_V4: &str = "24000180090001006d6574610000000014000280080002000000001008000100000000012c000180\
        08000100636d700020000280080001000000000108000200000000000c0003800500010006000000\
        24000180090001006d6574610000000014000280080002000000000f08000100000000012c000180\
        08000100636d700020000280080001000000000108000200000000000c0003800500010002000000\
        340001800c0001007061796c6f616400240002800800010000000001080002000000000108000300\
        0000000c0800040000000004340001800c0001007061796c6f616400240002800800010000000009\
        080002000000000208000300000000000800040000000002340001800c0001007061796c6f616400\
        24000280080001000000000a08000200000000010800030000000010080004000000000434000180\
        0c0001007061796c6f61640024000280080001000000000b08000200000000020800030000000002\
        08000400000000023c0001800b0001006c6f6f6b757000002c000280080002000000000108000300\
        000000010d0001006d656d626572733400000000080004000000000124000180090001006d657461\
        000000001400028008000200000000020800030000000001";
    /// The same with `ip6` and `@members6`.
    const NFT_V6: &str = "24000180090001006d6574610000000014000280080002000000001008000100000000012c000180\
        08000100636d700020000280080001000000000108000200000000000c0003800500010006000000\
        24000180090001006d6574610000000014000280080002000000000f08000100000000012c000180\
        08000100636d700020000280080001000000000108000200000000000c000380050001000a000000\
        340001800c0001007061796c6f616400240002800800010000000001080002000000000108000300\
        000000080800040000000010340001800c0001007061796c6f616400240002800800010000000002\
        080002000000000208000300000000000800040000000002340001800c0001007061796c6f616400\
        24000280080001000000000d08000200000000010800030000000018080004000000001034000180\
        0c0001007061796c6f61640024000280080001000000001108000200000000020800030000000002\
        08000400000000023c0001800b0001006c6f6f6b757000002c000280080002000000000108000300\
        000000010d0001006d656d626572733600000000080004000000000224000180090001006d657461\
        000000001400028008000200000000020800030000000001";

    /// What `nft add rule … meta l4proto @alive0 goto members` sends, with the number of our set.
    const NFT_ALIVE: &str = "\
        24000180090001006d65746100000000140002800800020000000010080001000000000130000180\
        0b0001006c6f6f6b757000002000028008000200000000010b000100616c69766530000008000400\
        000000033c0001800e000100696d6d6564696174650000002800028008000100000000001c000280\
        1800028008000100fffffffc0c0002006d656d6265727300";

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn the_rules_are_what_nft_would_send() {
        assert_eq!(hex(into_leaf(Family::V4, Packets::All).as_bytes()), NFT_V4);
        assert_eq!(hex(into_leaf(Family::V6, Packets::All).as_bytes()), NFT_V6);
        assert_eq!(hex(while_alive(Sign::Even).as_bytes()), NFT_ALIVE);
    }
}
