//! Tests of the reply decoder.

use super::*;

const READ: Awaited = Awaited { offset: 8192, data: 4096 };
const OTHER: Awaited = Awaited { offset: 0, data: 0 };

/// The outstanding requests: cookie 1 is a read, and cookie 2 is a request without data.
fn awaited(cookie: u64) -> Option<Awaited> {
    match cookie {
        1 => Some(READ),
        2 => Some(OTHER),
        _ => None,
    }
}

fn decode(structured: bool, bytes: &[u8]) -> Result<Vec<Reply>, ReplyError> {
    decode_in_pieces(structured, bytes, bytes.len().max(1))
}

fn decode_in_pieces(structured: bool, bytes: &[u8], piece: usize) -> Result<Vec<Reply>, ReplyError> {
    let mut decoder = ReplyDecoder::new(structured);
    let mut replies = Vec::new();
    for mut input in bytes.chunks(piece) {
        while let Some(reply) = decoder.next_reply(&mut input, awaited)? {
            replies.push(reply);
        }
        assert!(input.is_empty());
    }
    Ok(replies)
}

fn simple(cookie: u64, error: u32, data: usize) -> Vec<u8> {
    let mut out = wire::SIMPLE_REPLY_MAGIC.to_be_bytes().to_vec();
    out.extend(error.to_be_bytes());
    out.extend(cookie.to_be_bytes());
    out.extend(vec![0x67; data]);
    out
}

fn chunk(cookie: u64, flags: u16, kind: u16, payload: &[u8]) -> Vec<u8> {
    let mut out = wire::STRUCTURED_REPLY_MAGIC.to_be_bytes().to_vec();
    out.extend(flags.to_be_bytes());
    out.extend(kind.to_be_bytes());
    out.extend(cookie.to_be_bytes());
    out.extend(u32::try_from(payload.len()).unwrap().to_be_bytes());
    out.extend(payload);
    out
}

fn data_chunk(flags: u16, offset: u64, length: usize) -> Vec<u8> {
    let mut payload = offset.to_be_bytes().to_vec();
    payload.extend(vec![0x66; length]);
    chunk(1, flags, chunk_type::OFFSET_DATA, &payload)
}

fn hole_chunk(flags: u16, offset: u64, length: u32) -> Vec<u8> {
    let mut payload = offset.to_be_bytes().to_vec();
    payload.extend(length.to_be_bytes());
    chunk(1, flags, chunk_type::OFFSET_HOLE, &payload)
}

fn error_chunk(cookie: u64, flags: u16, error: u32, text: &str) -> Vec<u8> {
    let mut payload = error.to_be_bytes().to_vec();
    payload.extend(u16::try_from(text.len()).unwrap().to_be_bytes());
    payload.extend(text.as_bytes());
    chunk(cookie, flags, chunk_type::ERROR, &payload)
}

fn ok(cookie: u64) -> Reply {
    Reply { cookie, error: 0 }
}

#[test]
fn simple_replies_are_told_apart_whatever_their_payload_looks_like() {
    let stream = [simple(1, 0, 4096), simple(2, 0, 0), simple(1, 5, 0), simple(1, 0, 4096)].concat();
    assert_eq!(decode(false, &stream).unwrap(), [ok(1), ok(2), Reply { cookie: 1, error: 5 }, ok(1)]);
}

#[test]
fn a_reply_is_complete_with_its_last_byte_and_not_before() {
    let stream = simple(1, 0, 4096);
    assert_eq!(decode(false, &stream[..stream.len() - 1]).unwrap(), []);
    assert_eq!(decode(false, &stream).unwrap(), [ok(1)]);
}

#[test]
fn a_structured_reply_counts_once_its_last_chunk_came_also_if_others_came_between() {
    let stream = [
        hole_chunk(0, 8192, 1024),
        chunk(2, chunk_flag::DONE, chunk_type::NONE, &[]),
        data_chunk(0, 8192 + 1024, 3072),
        simple(2, 0, 0),
        chunk(1, chunk_flag::DONE, chunk_type::NONE, &[]),
        data_chunk(chunk_flag::DONE, 8192, 4096),
    ]
    .concat();
    assert_eq!(decode(true, &stream).unwrap(), [ok(2), ok(2), ok(1), ok(1)]);
}

#[test]
fn an_error_chunk_makes_the_reply_an_error_wherever_it_comes() {
    let none = chunk(1, chunk_flag::DONE, chunk_type::NONE, &[]);
    let stream = [
        data_chunk(0, 8192, 512),
        error_chunk(1, 0, 5, "bad sector"),
        error_chunk(1, 0, 22, ""),
        none,
        error_chunk(2, chunk_flag::DONE, 28, "full"),
    ]
    .concat();
    assert_eq!(
        decode(true, &stream).unwrap(),
        [Reply { cookie: 1, error: 5 }, Reply { cookie: 2, error: 28 }]
    );
}

#[test]
fn every_split_of_the_stream_gives_the_same_replies() {
    let structured = [
        hole_chunk(0, 8192, 1024),
        error_chunk(2, chunk_flag::DONE, 5, "text"),
        data_chunk(chunk_flag::DONE, 8192 + 1024, 3072),
        simple(2, 0, 0),
    ]
    .concat();
    let plain = [simple(1, 0, 4096), simple(2, 22, 0), simple(1, 0, 4096)].concat();
    for (negotiated, stream) in [(true, structured), (false, plain)] {
        let whole = decode(negotiated, &stream).unwrap();
        for piece in (1..64).chain([1000, 4095, 4096, 4097, 4112]) {
            assert_eq!(decode_in_pieces(negotiated, &stream, piece).unwrap(), whole, "pieces of {piece}");
        }
    }
}

#[test]
fn what_violates_the_protocol_is_an_error() {
    let done = chunk_flag::DONE;
    for (structured, bytes, error) in [
        (false, vec![1, 2, 3, 4], ReplyError::BadMagic(0x0102_0304)),
        (false, chunk(2, done, chunk_type::NONE, &[]), ReplyError::BadMagic(wire::STRUCTURED_REPLY_MAGIC)),
        (false, simple(3, 0, 0), ReplyError::UnknownCookie(3)),
        (true, chunk(3, done, chunk_type::NONE, &[]), ReplyError::UnknownCookie(3)),
        (true, simple(1, 5, 0), ReplyError::SimpleReplyToRead),
        (true, chunk(2, done, chunk_type::OFFSET_DATA, &[0; 9]), ReplyError::UnexpectedChunk(1)),
        (true, chunk(1, done, chunk_type::BLOCK_STATUS, &[0; 12]), ReplyError::UnexpectedChunk(5)),
        (true, chunk(1, 0, chunk_type::NONE, &[]), ReplyError::BadChunkLength { kind: 0, length: 0 }),
        (true, data_chunk(done, 8192, 0), ReplyError::BadChunkLength { kind: 1, length: 8 }),
        (true, data_chunk(done, 8191, 1), ReplyError::OutsideOfRead { offset: 8191, length: 1 }),
        (true, data_chunk(done, 8193, 4096), ReplyError::OutsideOfRead { offset: 8193, length: 4096 }),
        (true, hole_chunk(done, u64::MAX, 1), ReplyError::OutsideOfRead { offset: u64::MAX, length: 1 }),
        (true, hole_chunk(done, 8192, 0), ReplyError::OutsideOfRead { offset: 8192, length: 0 }),
        (true, data_chunk(done, 8192, 4095), ReplyError::TooLittle { found: 4095, asked: 4096 }),
        (true, error_chunk(1, done, 0, ""), ReplyError::ErrorWithoutNumber),
        (
            true,
            error_chunk(1, done, 5, &"x".repeat(4097)),
            ReplyError::BadChunkLength { kind: chunk_type::ERROR, length: 4103 },
        ),
    ] {
        assert_eq!(decode(structured, &bytes), Err(error), "{error}");
        assert_eq!(decode_in_pieces(structured, &bytes, 1), Err(error), "{error}, byte by byte");
    }
}

#[test]
fn data_that_comes_twice_is_an_error_also_if_as_much_comes_as_was_asked_for() {
    let more = [data_chunk(0, 8192, 4096), data_chunk(0, 8192, 1)].concat();
    assert_eq!(decode(true, &more), Err(ReplyError::SentTwice { offset: 8192, length: 1 }));
    let done = chunk_flag::DONE;
    for second in [data_chunk(done, 8192 + 2048, 2048), hole_chunk(done, 8192 + 2048, 2048)] {
        let half_twice = [data_chunk(0, 8192 + 2048, 2048), second].concat();
        assert_eq!(decode(true, &half_twice), Err(ReplyError::SentTwice { offset: 10_240, length: 2048 }));
    }
    let backwards = [data_chunk(0, 8192 + 2048, 2048), hole_chunk(done, 8192, 2048)].concat();
    assert_eq!(decode(true, &backwards).unwrap(), [ok(1)], "any order is allowed");
}

#[test]
fn a_read_that_comes_in_too_many_places_is_an_error_and_not_memory() {
    let stream: Vec<_> = (0..2048).map(|n| data_chunk(0, 8192 + 2 * n, 1)).collect();
    assert_eq!(decode(true, &stream.concat()), Err(ReplyError::Scattered));
}

#[test]
fn errors_without_end_are_a_violation() {
    let stream = error_chunk(2, 0, 5, "no").repeat(100);
    assert_eq!(decode(true, &stream), Err(ReplyError::TooManyErrors(2)));
}

#[test]
fn replies_that_are_left_half_said_are_kept_apart() {
    let mut decoder = ReplyDecoder::new(true);
    let half = |cookie: u64, flags| chunk(cookie, flags, chunk_type::ERROR, &[0, 0, 0, 5, 0, 0]);
    let stream: Vec<_> = (0..100).rev().map(|n| half(n, 0)).chain((0..100).map(|n| half(n, 1))).collect();
    let stream = stream.concat();
    let (mut input, mut cookies) = (&stream[..], Vec::new());
    while let Some(reply) = decoder.next_reply(&mut input, |_| Some(OTHER)).unwrap() {
        assert_eq!(reply.error, 5);
        cookies.push(reply.cookie);
    }
    assert!(cookies.into_iter().eq(0..100));
    assert!(decoder.partial.is_empty());
}

/// What the decoder tells the caller, and the data that the caller takes off, if the stream comes in pieces.
fn receive(bytes: &[u8], piece: usize) -> (Vec<Received>, Vec<u8>) {
    let mut decoder = ReplyDecoder::new(true);
    let (mut received, mut data, mut left) = (Vec::new(), Vec::new(), 0);
    for mut input in bytes.chunks(piece) {
        loop {
            let (taken, rest) = input.split_at(input.len().min(left));
            data.extend_from_slice(taken);
            left -= taken.len();
            input = rest;
            if left > 0 {
                break;
            }
            let Some(next) = decoder.next_received(&mut input, awaited).unwrap() else { break };
            if let Received::Data { length, .. } = next {
                left = length as usize;
            }
            received.push(next);
        }
    }
    assert_eq!(left, 0);
    (received, data)
}

#[test]
fn data_is_told_with_its_place_and_left_to_the_caller_however_the_stream_is_cut() {
    let stream = [
        hole_chunk(0, 8192, 1024),
        simple(2, 0, 0),
        data_chunk(0, 8192 + 1024, 3000),
        error_chunk(2, chunk_flag::DONE, 5, "no"),
        data_chunk(chunk_flag::DONE, 8192 + 4024, 72),
    ]
    .concat();
    let expected = [
        Received::Zeroes { cookie: 1, start: 0, length: 1024 },
        Received::Reply(ok(2)),
        Received::Data { cookie: 1, start: 1024, length: 3000 },
        Received::Reply(Reply { cookie: 2, error: 5 }),
        Received::Data { cookie: 1, start: 4024, length: 72 },
        Received::Reply(ok(1)),
    ];
    for piece in [1, 7, 28, 1000, stream.len()] {
        assert_eq!(receive(&stream, piece), (expected.to_vec(), vec![0x66; 3072]), "pieces of {piece}");
    }
}
