//! Tests of request headers: which become commands, and which are refused with which error.

use weir_model::IoKind;

use super::*;
use crate::fixtures::{header, session, simple_session};
use crate::wire::command;

const MIB: u32 = 1 << 20;
const END: u64 = 16 << 20;
const WITH_RANGE: [u16; 6] = [
    command::READ,
    command::WRITE,
    command::TRIM,
    command::CACHE,
    command::WRITE_ZEROES,
    command::BLOCK_STATUS,
];

fn parse(session: &Session, flags: u16, command: u16, offset: u64, length: u32) -> Parsed {
    parse_request(session, &header(flags, command, 42, offset, length))
}

fn executed(session: &Session, flags: u16, command: u16) -> Command {
    match parse(session, flags, command, 4096, 512) {
        Parsed::Execute(command) => command,
        other => panic!("{other:?}"),
    }
}

/// The error and the bytes to skip.
fn refused(session: &Session, flags: u16, command: u16, offset: u64, length: u32) -> (NbdError, u32) {
    match parse(session, flags, command, offset, length) {
        Parsed::Refuse { cookie: 42, error, skip } => (error, skip),
        other => panic!("command {command} at {offset}+{length}: {other:?}"),
    }
}

fn payload(command: u16, length: u32) -> u32 {
    if command == command::WRITE { length } else { 0 }
}

#[test]
fn a_request_becomes_a_command_with_its_range() {
    let kinds = [
        CommandKind::Read,
        CommandKind::Write,
        CommandKind::Trim,
        CommandKind::Cache,
        CommandKind::WriteZeroes,
        CommandKind::BlockStatus,
    ];
    for (number, kind) in WITH_RANGE.into_iter().zip(kinds) {
        assert_eq!(executed(&session(), 0, number), Command::new(kind, 42, 4096, 512));
    }
}

#[test]
fn a_wrong_magic_closes() {
    let mut bytes = header(0, command::READ, 1, 0, 512);
    bytes[0] = 0;
    let closed = parse_request(&session(), &bytes);
    assert_eq!(closed, Parsed::Close(CloseReason::BadRequestMagic(0x0060_9513)));
}

#[test]
fn an_unknown_command_is_invalid() {
    for number in [8, 9, 0x1000, u16::MAX] {
        assert_eq!(refused(&session(), 0, number, 0, 512), (NbdError::Inval, 0));
    }
}

#[test]
fn each_flag_is_allowed_only_on_the_command_that_it_is_documented_for() {
    let allowed = |number| match number {
        command::READ => flag::FUA | flag::DF,
        command::WRITE_ZEROES => flag::FUA | flag::NO_HOLE | flag::FAST_ZERO,
        command::BLOCK_STATUS => flag::FUA | flag::REQ_ONE,
        _ => flag::FUA,
    };
    for number in WITH_RANGE {
        for flags in (0..16).map(|bit| 1 << bit) {
            if flags & allowed(number) != 0 {
                executed(&session(), flags, number);
            } else {
                let expected = (NbdError::Inval, payload(number, 512));
                assert_eq!(refused(&session(), flags, number, 4096, 512), expected);
            }
        }
    }
}

#[test]
fn flags_arrive_with_the_command() {
    let zeroes = executed(&session(), flag::FUA | flag::NO_HOLE | flag::FAST_ZERO, command::WRITE_ZEROES);
    assert!(zeroes.fua && zeroes.no_hole && zeroes.fast_zero);
    assert!(executed(&session(), flag::FUA, command::WRITE).fua);
    assert!(executed(&session(), flag::FUA, command::TRIM).fua);
    assert!(executed(&session(), flag::DF, command::READ).dont_fragment);
    assert!(executed(&session(), flag::REQ_ONE, command::BLOCK_STATUS).one_extent);
}

#[test]
fn fua_on_what_changes_nothing_is_accepted_and_ignored() {
    for number in [command::READ, command::CACHE, command::BLOCK_STATUS] {
        assert!(!executed(&session(), flag::FUA, number).fua);
    }
    let flush = parse(&session(), flag::FUA, command::FLUSH, 0, 0);
    assert_eq!(flush, Parsed::Execute(Command::new(CommandKind::Flush, 42, 0, 0)));
}

#[test]
fn df_needs_structured_replies_and_fast_zero_an_export_that_offers_it() {
    assert_eq!(refused(&simple_session(), flag::DF, command::READ, 0, 512), (NbdError::Inval, 0));
    let mut slow = session();
    slow.export.fast_zero = false;
    assert_eq!(refused(&slow, flag::FAST_ZERO, command::WRITE_ZEROES, 0, 512), (NbdError::Inval, 0));
    executed(&slow, flag::NO_HOLE, command::WRITE_ZEROES);
}

#[test]
fn a_read_only_export_refuses_what_would_change_it_and_skips_the_payload() {
    let mut fixed = session();
    fixed.export.read_only = true;
    for number in [command::WRITE, command::TRIM, command::WRITE_ZEROES] {
        assert_eq!(refused(&fixed, 0, number, 0, 512), (NbdError::Perm, payload(number, 512)));
    }
    for number in [command::READ, command::CACHE, command::BLOCK_STATUS] {
        executed(&fixed, 0, number);
    }
    assert!(matches!(parse(&fixed, 0, command::FLUSH, 0, 0), Parsed::Execute(_)));
}

#[test]
fn a_length_of_zero_is_invalid() {
    for number in WITH_RANGE {
        assert_eq!(refused(&session(), 0, number, 0, 0), (NbdError::Inval, 0));
    }
}

#[test]
fn the_last_byte_can_be_reached_and_the_next_cannot() {
    for number in WITH_RANGE {
        assert!(matches!(parse(&session(), 0, number, END - 512, 512), Parsed::Execute(_)));
        let beyond = match number {
            command::WRITE | command::WRITE_ZEROES => NbdError::NoSpc,
            _ => NbdError::Inval,
        };
        for (offset, length) in [(END - 512, 513), (END, 1), (END + 1, 1), (u64::MAX, 1), (u64::MAX - 5, 100)]
        {
            assert_eq!(refused(&session(), 0, number, offset, length), (beyond, payload(number, length)));
        }
    }
}

#[test]
fn a_read_above_the_maximum_overflows_with_structured_replies_and_is_invalid_without() {
    assert!(matches!(parse(&session(), 0, command::READ, 0, MIB), Parsed::Execute(_)));
    assert_eq!(refused(&session(), 0, command::READ, 0, MIB + 1), (NbdError::Overflow, 0));
    assert_eq!(refused(&simple_session(), 0, command::READ, 0, MIB + 1), (NbdError::Inval, 0));
}

#[test]
fn a_write_above_the_maximum_is_invalid_and_its_payload_is_skipped_whole() {
    assert!(matches!(parse(&session(), 0, command::WRITE, 0, MIB), Parsed::Execute(_)));
    for length in [MIB + 1, u32::MAX] {
        assert_eq!(refused(&session(), 0, command::WRITE, 0, length), (NbdError::Inval, length));
    }
}

#[test]
fn what_has_no_payload_may_be_longer_than_the_maximum() {
    for number in [command::TRIM, command::CACHE, command::WRITE_ZEROES, command::BLOCK_STATUS] {
        assert!(matches!(parse(&session(), 0, number, 0, 16 * MIB), Parsed::Execute(_)));
    }
}

#[test]
fn a_read_whose_chunk_would_not_fit_into_32_bits_overflows_even_without_a_maximum() {
    let mut huge = session();
    huge.export.size = 1 << 40;
    huge.export.block.maximum = u32::MAX;
    assert!(matches!(parse(&huge, 0, command::READ, 0, u32::MAX - 8), Parsed::Execute(_)));
    assert_eq!(refused(&huge, 0, command::READ, 0, u32::MAX - 7), (NbdError::Overflow, 0));
}

#[test]
fn requests_must_keep_to_the_minimum_block_size() {
    let mut coarse = session();
    coarse.export.block.minimum = 512;
    for number in WITH_RANGE {
        executed(&coarse, 0, number);
        for (offset, length) in [(1, 512), (256, 512), (0, 511), (512, 513)] {
            assert_eq!(
                refused(&coarse, 0, number, offset, length),
                (NbdError::Inval, payload(number, length))
            );
        }
    }
}

#[test]
fn a_flush_must_have_no_range() {
    let flush = parse(&session(), 0, command::FLUSH, 0, 0);
    assert_eq!(flush, Parsed::Execute(Command::new(CommandKind::Flush, 42, 0, 0)));
    assert_eq!(refused(&session(), 0, command::FLUSH, 0, 512), (NbdError::Inval, 0));
    assert_eq!(refused(&session(), 0, command::FLUSH, 512, 0), (NbdError::Inval, 0));
}

#[test]
fn block_status_without_the_context_is_invalid() {
    let mut without = session();
    without.base_allocation = false;
    assert_eq!(refused(&without, 0, command::BLOCK_STATUS, 0, 512), (NbdError::Inval, 0));
}

#[test]
fn a_disconnect_is_obeyed_whatever_else_it_says() {
    for (flags, offset, length) in [(0, 0, 0), (0xffff, u64::MAX, u32::MAX)] {
        let parsed = parse(&session(), flags, command::DISC, offset, length);
        assert_eq!(parsed, Parsed::Execute(Command::new(CommandKind::Disconnect, 42, 0, 0)));
    }
}

#[test]
fn every_command_but_disconnect_is_a_request_to_the_engine() {
    let kinds: Vec<IoKind> =
        (0..8).filter_map(CommandKind::from_wire).filter_map(CommandKind::io_kind).collect();
    assert!(IoKind::ALL.iter().all(|kind| kinds.contains(kind)));
    assert_eq!(CommandKind::Disconnect.io_kind(), None);
}
