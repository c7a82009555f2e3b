//! Tests of replies without data, byte by byte.

use super::*;
use crate::CommandKind;
use crate::fields::Fields;
use crate::fixtures::{session, simple_session};
use crate::wire::state;

fn block_status(length: u32) -> Command {
    Command::new(CommandKind::BlockStatus, 9, 4096, length)
}

/// The extents of a block status reply. Checks the rest of the reply.
fn reported(session: &Session, command: &Command, extents: &[(u64, u32)]) -> Vec<(u32, u32)> {
    let mut out = b"before".to_vec();
    block_status_reply(&mut out, session, command, extents.iter().copied());
    let mut fields = Fields::new(out.strip_prefix(b"before").unwrap());
    assert_eq!(fields.u32(), Some(wire::STRUCTURED_REPLY_MAGIC));
    assert_eq!((fields.u16(), fields.u16()), (Some(chunk_flag::DONE), Some(chunk_type::BLOCK_STATUS)));
    assert_eq!(fields.u64(), Some(command.cookie));
    let mut payload = Fields::new(fields.counted_bytes().unwrap());
    assert!(fields.is_empty());
    assert_eq!(payload.u32(), Some(BASE_ALLOCATION_ID));
    let mut extents = Vec::new();
    while !payload.is_empty() {
        extents.push((payload.u32().unwrap(), payload.u32().unwrap()));
    }
    extents
}

#[test]
fn success_is_a_simple_reply_of_sixteen_bytes() {
    let mut out = Vec::new();
    push_done(&mut out, 0x0102_0304_0506_0708);
    assert_eq!(out, b"\x67\x44\x66\x98\0\0\0\0\x01\x02\x03\x04\x05\x06\x07\x08");
}

#[test]
fn an_error_is_a_simple_reply_without_structured_replies() {
    let mut out = Vec::new();
    push_error(&mut out, &simple_session(), 9, NbdError::NoSpc);
    assert_eq!(out, b"\x67\x44\x66\x98\0\0\0\x1c\0\0\0\0\0\0\0\x09");
}

#[test]
fn an_error_is_a_last_chunk_with_structured_replies() {
    let mut out = Vec::new();
    push_error(&mut out, &session(), 9, NbdError::Io);
    assert_eq!(out, b"\x66\x8e\x33\xef\0\x01\x80\x01\0\0\0\0\0\0\0\x09\0\0\0\x06\0\0\0\x05\0\0");
}

#[test]
fn extents_are_reported_in_order() {
    let extents = [(4096, 0), (8192, state::HOLE | state::ZERO), (4096, state::ZERO)];
    assert_eq!(reported(&session(), &block_status(16_384), &extents), [(4096, 0), (8192, 3), (4096, 2)]);
}

#[test]
fn extents_end_where_the_request_ends() {
    assert_eq!(reported(&session(), &block_status(6000), &[(4096, 0), (1 << 40, 3)]), [(4096, 0), (1904, 3)]);
    assert_eq!(reported(&session(), &block_status(4096), &[(4096, 0), (4096, 3)]), [(4096, 0)]);
}

#[test]
fn equal_neighbours_are_joined_and_empty_extents_left_out() {
    let extents = [(100, 0), (0, 3), (200, 0), (0, 0), (50, 3), (50, 3)];
    assert_eq!(reported(&session(), &block_status(400), &extents), [(300, 0), (100, 3)]);
}

#[test]
fn one_extent_is_what_a_client_gets_that_wants_one() {
    let command = Command { one_extent: true, ..block_status(1000) };
    assert_eq!(reported(&session(), &command, &[(100, 3), (100, 3), (5000, 0)]), [(200, 3)]);
    assert_eq!(reported(&session(), &command, &[(5000, 3)]), [(1000, 3)]);
}

#[test]
fn a_device_that_knows_nothing_is_reported_as_data() {
    assert_eq!(reported(&session(), &block_status(1000), &[]), [(1000, 0)]);
    assert_eq!(reported(&session(), &block_status(1000), &[(0, 3)]), [(1000, 0)]);
}

#[test]
fn a_reply_is_cut_short_where_it_would_exceed_the_maximum_payload() {
    let mut small = session();
    small.export.block.maximum = 4096;
    let extents: Vec<(u64, u32)> = (0..1000).map(|i| (512, i % 2)).collect();
    assert_eq!(reported(&small, &block_status(512_000), &extents).len(), 512);
}
