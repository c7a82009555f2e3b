//! The server's side of NBD: handshake, requests, and the replies to them.
//!
//! Accepted requests are judged once more, by the specification's rules as written here a second time.
//! Answers are read by the decoder of the client's side, which must find in them what was meant. The same
//! bytes must give the same result in one portion, in the script's pieces, and byte by byte.

use weir_nbd::client::{Awaited, Received, ReplyDecoder, request_header};
use weir_nbd::{
    BlockSizes, Command, CommandKind, ExportInfo, Exports, HandshakeLimits, Handshaking, Parsed,
    REQUEST_LENGTH, ServerHandshake, Session, block_status_reply, parse_request, push_done, push_error,
    read_reply,
};

use super::Target;
use crate::script::Script;
use crate::seen::Seen;
use crate::transcripts;

pub(super) const TARGET: Target = Target {
    name: "nbd-server",
    run,
    seeds: || [transcripts::of_clients("db"), transcripts::of_clients("archive")].concat(),
    words: &[b"IHAVEOPT", b"\x25\x60\x95\x13", b"base:allocation", b"db", b"archive", &[0, 0, 0, 7]],
    must_reach: &[
        "drain",
        "ready",
        "closed",
        "session of EXPORT_NAME or GO",
        "structured session",
        "block status session",
        "read",
        "write",
        "flush",
        "trim",
        "zeroes",
        "cache",
        "status",
        "goodbye",
        "refused",
        "refused write",
        "out of step",
    ],
};

const LIMITS: HandshakeLimits = HandshakeLimits {
    max_options: 40,
    max_option_length: 512,
    max_skipped_length: 2048,
    max_output_length: 100,
};

/// The longest answer to one option: the list, or all facts about an export.
const LONGEST_ANSWER: usize = 300;

/// The result of a conversation.
#[derive(PartialEq, Eq, Default, Debug)]
struct Heard {
    output: Vec<u8>,
    commands: Vec<String>,
}

struct Two;

impl Exports for Two {
    fn names(&self) -> Vec<String> {
        vec!["db".to_owned(), "archive".to_owned()]
    }

    fn find(&self, name: &str) -> Option<ExportInfo> {
        let db = ExportInfo {
            name: "db".to_owned(),
            description: "the database".to_owned(),
            size: 16 << 20,
            read_only: false,
            fast_zero: true,
            multi_conn: true,
            block: BlockSizes { minimum: 1, preferred: 4096, maximum: 192 << 10 },
        };
        match name {
            "" | "db" => Some(db),
            "archive" => Some(ExportInfo {
                name: "archive".to_owned(),
                read_only: true,
                block: BlockSizes { minimum: 512, ..db.block },
                ..db
            }),
            _ => None,
        }
    }
}

fn run(script: &Script, seen: &mut Seen) {
    let portions: Vec<&[u8]> = script.pieces.iter().map(Vec::as_slice).collect();
    let heard = converse(&portions, seen);
    let joined = script.joined();
    let mut unseen = Seen::default();
    assert_eq!(converse(&[&joined], &mut unseen), heard, "all in one portion");
    if joined.len() <= 1500 {
        let single: Vec<&[u8]> = joined.chunks(1).collect();
        assert_eq!(converse(&single, &mut unseen), heard, "byte by byte");
    }
}

/// A driver without a socket, which gets the input in these portions.
fn converse(portions: &[&[u8]], seen: &mut Seen) -> Heard {
    let mut handshake = ServerHandshake::new(LIMITS);
    let mut heard = Heard { output: handshake.take_output(), ..Heard::default() };
    for (i, portion) in portions.iter().enumerate() {
        seen.message();
        let mut outcome = handshake.handle_input(portion, &Two);
        loop {
            let output = handshake.take_output();
            assert!(output.len() <= LIMITS.max_output_length + LONGEST_ANSWER, "{} bytes", output.len());
            heard.output.extend(output);
            if outcome != Handshaking::Drain {
                break;
            }
            seen.reach("drain");
            outcome = handshake.handle_input(&[], &Two);
        }
        match outcome {
            Handshaking::NeedMore | Handshaking::Drain => {}
            Handshaking::Closed(reason) => {
                seen.reach("closed");
                heard.commands.push(reason.to_string());
                break;
            }
            Handshaking::Ready { session, mut rest } => {
                seen.reach("ready");
                rest.extend(portions[i + 1..].concat());
                transmit(&session, &rest, &mut heard, seen);
                break;
            }
        }
    }
    check_answers(&heard);
    heard
}

/// NBD protocol, "Fixed newstyle negotiation": checks that the output is a greeting, and answers as long as
/// they say.
fn check_answers(heard: &Heard) {
    let mut rest = heard.output.strip_prefix(b"NBDMAGICIHAVEOPT\0\x03").expect("the greeting comes first");
    while let Some(after) = rest.strip_prefix(&0x0003_e889_0455_65a9_u64.to_be_bytes()) {
        let length = after.get(8..12).and_then(|field| field.first_chunk()).expect("an answer has a length");
        let length = u32::from_be_bytes(*length) as usize;
        rest = after.get(12 + length..).expect("an answer is as long as it says");
    }
    // Only the reply to `EXPORT_NAME` may follow: size, flags, and perhaps zeroes.
    assert!([0, 10, 134].contains(&rest.len()), "{rest:?}");
}

fn transmit(session: &Session, mut stream: &[u8], heard: &mut Heard, seen: &mut Seen) {
    seen.reach("session of EXPORT_NAME or GO");
    if session.structured_replies {
        seen.reach("structured session");
    }
    if session.base_allocation {
        seen.reach("block status session");
        assert!(session.structured_replies, "block status needs structured replies");
    }
    while let Some((header, rest)) = stream.split_first_chunk::<REQUEST_LENGTH>() {
        seen.message();
        stream = rest;
        let parsed = parse_request(session, header);
        heard.commands.push(format!("{parsed:?}"));
        match parsed {
            Parsed::Close(_) => return seen.reach("out of step"),
            Parsed::Refuse { cookie, error, skip } => {
                seen.reach(if skip > 0 { "refused write" } else { "refused" });
                check_refusal(session, header, cookie, error);
                let Some((_, rest)) = stream.split_at_checked(skip as usize) else { return };
                stream = rest;
            }
            Parsed::Execute(command) => {
                check_legal(session, header, &command);
                check_request_again(session, &command);
                if command.kind == CommandKind::Disconnect {
                    return seen.reach("goodbye");
                }
                check_reply(session, &command, seen);
                if command.kind == CommandKind::Write {
                    let Some((_, rest)) = stream.split_at_checked(command.length as usize) else { return };
                    stream = rest;
                }
            }
        }
    }
}

fn field<const N: usize>(header: &[u8; REQUEST_LENGTH], at: usize) -> u64 {
    header[at..at + N].iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// Checks a request by the specification's rules ("Request types", "Command flags", "Size constraints"),
/// written a second time.
fn check_legal(session: &Session, header: &[u8; REQUEST_LENGTH], command: &Command) {
    let (flags, number) = (field::<2>(header, 4), field::<2>(header, 6));
    let (offset, length) = (field::<8>(header, 16), field::<4>(header, 24));
    assert_eq!((field::<4>(header, 0), command.cookie), (0x2560_9513, field::<8>(header, 8)));
    if number == 2 {
        return;
    }
    assert_eq!((command.offset, u64::from(command.length)), (offset, length));
    let of_command = match number {
        0 if session.structured_replies => 4,
        6 => 2 | 16,
        7 => 8,
        _ => 0,
    };
    assert_eq!(flags & !(1 | of_command), 0, "{command:?} with flags {flags:#x}");
    assert!(!(session.export.read_only && [1, 4, 6].contains(&number)), "{command:?} of what is read-only");
    let BlockSizes { minimum, maximum, .. } = session.export.block;
    match number {
        3 => assert_eq!((offset, length), (0, 0)),
        _ => {
            assert!(u128::from(offset) + u128::from(length) <= u128::from(session.export.size));
            assert!(length > 0 && offset % u64::from(minimum) == 0 && length % u64::from(minimum) == 0);
            assert!(number > 1 || length <= u64::from(maximum), "{command:?} is too long");
        }
    }
    assert!(number != 7 || session.base_allocation);
}

/// Checks that the client's bytes for a command are read as that command.
fn check_request_again(session: &Session, command: &Command) {
    assert_eq!(parse_request(session, &request_header(command)), Parsed::Execute(*command));
}

fn check_refusal(session: &Session, header: &[u8; REQUEST_LENGTH], cookie: u64, error: weir_nbd::NbdError) {
    assert_eq!(cookie, field::<8>(header, 8));
    let mut out = Vec::new();
    push_error(&mut out, session, cookie, error);
    let data = if field::<2>(header, 6) == 0 { 1 } else { 0 };
    assert_eq!(
        read_by_client(session, &out, Awaited { offset: 0, data }),
        Ok((error.code(), vec![0; data as usize]))
    );
}

/// Answers a command as a driver would, and reads the answer as a client would.
fn check_reply(session: &Session, command: &Command, seen: &mut Seen) {
    let mut out = Vec::new();
    match command.kind {
        CommandKind::Read => {
            seen.reach("read");
            let data = content(command);
            let mut planned = 0;
            for piece in read_reply(session, command, &data) {
                out.extend_from_slice(&piece.header);
                out.extend_from_slice(&data[piece.data]);
                planned += 1;
            }
            assert!(!command.dont_fragment || planned == 1, "in pieces, though it must not be");
            assert!(out.len() <= data.len() + 32 * (2 + data.len() / (64 << 10)), "{} bytes", out.len());
            let awaited = Awaited { offset: command.offset, data: command.length };
            assert_eq!(read_by_client(session, &out, awaited), Ok((0, data)));
            return;
        }
        CommandKind::BlockStatus => {
            seen.reach("status");
            let extents =
                (0..command.cookie % 9).map(|i| (command.cookie >> (8 * i) & 0xffff, (i & 3) as u32));
            block_status_reply(&mut out, session, command, extents);
            return check_status(command, &out);
        }
        kind => {
            seen.reach(match kind {
                CommandKind::Write => "write",
                CommandKind::Flush => "flush",
                CommandKind::Trim => "trim",
                CommandKind::WriteZeroes => "zeroes",
                _ => "cache",
            });
            push_done(&mut out, command.cookie);
        }
    }
    let awaited = Awaited { offset: command.offset, data: 0 };
    assert_eq!(read_by_client(session, &out, awaited), Ok((0, Vec::new())));
}

/// Data with zeroes and other bytes, chosen by the cookie.
fn content(command: &Command) -> Vec<u8> {
    let mut data = vec![0; command.length as usize];
    for (i, granule) in data.chunks_mut(16 << 10).enumerate() {
        if command.cookie >> (i % 64) & 1 == 1 {
            granule.fill(0x5a);
        }
    }
    data
}

/// NBD protocol, `NBD_REPLY_TYPE_BLOCK_STATUS`.
fn check_status(command: &Command, out: &[u8]) {
    let extents = out.get(24..).expect("a header and a context");
    assert!(extents.len() >= 8 && extents.len() % 8 == 0);
    let lengths = extents
        .chunks_exact(8)
        .map(|pair| u64::from(u32::from_be_bytes([pair[0], pair[1], pair[2], pair[3]])));
    let (mut sum, mut count) = (0, 0);
    for length in lengths {
        assert!(length > 0);
        (sum, count) = (sum + length, count + 1);
    }
    assert!(sum <= u64::from(command.length) && (!command.one_extent || count == 1), "{sum} in {count}");
}

/// The error and the data of the one reply in `bytes`.
fn read_by_client(session: &Session, bytes: &[u8], awaited: Awaited) -> Result<(u32, Vec<u8>), String> {
    let mut decoder = ReplyDecoder::new(session.structured_replies);
    let (mut input, mut data) = (bytes, vec![0; awaited.data as usize]);
    loop {
        let next = decoder.next_received(&mut input, |_| Some(awaited)).map_err(|error| error.to_string())?;
        match next {
            None => return Err("no whole reply".to_owned()),
            Some(Received::Data { start, length, .. }) => {
                let (taken, rest) = input.split_at(length as usize);
                data[start as usize..][..length as usize].copy_from_slice(taken);
                input = rest;
            }
            Some(Received::Zeroes { start, length, .. }) => {
                data[start as usize..][..length as usize].fill(0);
            }
            Some(Received::Reply(reply)) => {
                assert!(input.is_empty(), "something behind the reply");
                return Ok((reply.error, data));
            }
        }
    }
}
