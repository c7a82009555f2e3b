//! The client's side of NBD: handshake and replies, with a server that sends anything.

use std::collections::BTreeMap;

use weir_nbd::client::{Awaited, ClientHandshake, Connecting, HandshakeError, Received, ReplyDecoder};

use super::Target;
use crate::script::Script;
use crate::seen::Seen;
use crate::transcripts;

pub(super) const TARGET: Target = Target {
    name: "nbd-client",
    run,
    seeds: transcripts::of_servers,
    words: &[
        b"NBDMAGIC",
        b"IHAVEOPT",
        b"\x67\x44\x66\x98",
        b"\x66\x8e\x33\xef",
        b"\x80\x00\x00\x06",
        b"\x80\x01",
    ],
    must_reach: &[
        "ready",
        "refused",
        "no such export",
        "bad handshake",
        "ended early",
        "data",
        "zeroes",
        "success",
        "failure",
        "bad reply",
    ],
};

/// The most bytes that a server may make a client send before there is a session.
const MOST_OUTPUT: usize = 4096;

/// What the client has sent, and what it has made of the server's bytes.
#[derive(PartialEq, Eq, Default, Debug)]
struct Heard {
    output: Vec<u8>,
    said: Vec<String>,
}

fn run(script: &Script, seen: &mut Seen) {
    let portions: Vec<&[u8]> = script.pieces.iter().map(Vec::as_slice).collect();
    let joined = script.joined();
    let mut unseen = Seen::default();
    for structured in [true, false] {
        let heard = converse(&portions, structured, seen);
        assert_eq!(converse(&[&joined], structured, &mut unseen), heard, "all in one portion");
    }
}

fn converse(portions: &[&[u8]], structured: bool, seen: &mut Seen) -> Heard {
    let mut handshake = ClientHandshake::new("db", structured).expect("the name is short");
    let mut heard = Heard::default();
    for (i, portion) in portions.iter().enumerate() {
        seen.message();
        let outcome = handshake.handle_input(portion);
        heard.output.extend(handshake.take_output());
        assert!(heard.output.len() <= MOST_OUTPUT, "{} bytes of output", heard.output.len());
        match outcome {
            Ok(Connecting::NeedMore) => {}
            Ok(Connecting::Ready { export, mut rest }) => {
                seen.reach("ready");
                assert!(structured || !export.structured_replies, "what was not asked for is not agreed on");
                heard.said.push(format!("{export:?}"));
                rest.extend(portions[i + 1..].concat());
                replies(&rest, export.structured_replies, &mut heard, seen);
                return heard;
            }
            Err(error) => {
                seen.reach(match &error {
                    HandshakeError::Refused { .. } => "refused",
                    HandshakeError::UnknownExport { .. } => "no such export",
                    _ => "bad handshake",
                });
                heard.said.push(error.to_string());
                return heard;
            }
        }
    }
    seen.reach("ended early");
    heard.said.push(handshake.handle_end().to_string());
    heard
}

/// Checks that each request is answered at most once, with data inside the range that it asked for, and with
/// all of that range.
fn replies(mut input: &[u8], structured: bool, heard: &mut Heard, seen: &mut Seen) {
    let mut owed: BTreeMap<u64, Awaited> = transcripts::awaited()
        .into_iter()
        .map(|(cookie, offset, data)| (cookie, Awaited { offset, data }))
        .collect();
    let mut got: BTreeMap<u64, u64> = BTreeMap::new();
    let mut decoder = ReplyDecoder::new(structured);
    loop {
        let before = input.len();
        let next = match decoder.next_received(&mut input, |cookie| owed.get(&cookie).copied()) {
            Ok(Some(next)) => next,
            Ok(None) => {
                assert!(input.is_empty(), "the input is used up before more is asked for");
                return;
            }
            Err(error) => {
                seen.reach("bad reply");
                return heard.said.push(error.to_string());
            }
        };
        seen.message();
        assert!(input.len() <= before);
        heard.said.push(format!("{next:?}"));
        match next {
            Received::Data { cookie, start, length } | Received::Zeroes { cookie, start, length } => {
                let asked = owed[&cookie].data;
                assert!(length > 0 && u64::from(start) + u64::from(length) <= u64::from(asked), "{next:?}");
                *got.entry(cookie).or_default() += u64::from(length);
                assert!(got[&cookie] <= u64::from(asked), "more than was asked for");
                if matches!(next, Received::Zeroes { .. }) {
                    seen.reach("zeroes");
                    continue;
                }
                seen.reach("data");
                let Some((_, rest)) = input.split_at_checked(length as usize) else { return };
                input = rest;
            }
            Received::Reply(reply) => {
                seen.reach(if reply.error == 0 { "success" } else { "failure" });
                let asked = owed.remove(&reply.cookie).expect("only what is owed is answered");
                let came = got.remove(&reply.cookie).unwrap_or(0);
                assert!(reply.error != 0 || came == u64::from(asked.data), "{came} of {asked:?}");
            }
        }
    }
}
