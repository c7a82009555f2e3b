//! Tests of the client's handshake.

use proptest::prelude::*;

use super::*;

fn greeting(flags: u16) -> Vec<u8> {
    let mut out = wire::NBD_MAGIC.to_be_bytes().to_vec();
    out.extend(wire::OPTION_MAGIC.to_be_bytes());
    out.extend(flags.to_be_bytes());
    out
}

fn answer(option: u32, kind: u32, data: &[u8]) -> Vec<u8> {
    let mut out = wire::OPTION_REPLY_MAGIC.to_be_bytes().to_vec();
    out.extend(option.to_be_bytes());
    out.extend(kind.to_be_bytes());
    out.extend(length_of(data).to_be_bytes());
    out.extend(data);
    out
}

fn info_export(size: u64, flags: u16) -> Vec<u8> {
    let mut data = info::EXPORT.to_be_bytes().to_vec();
    data.extend(size.to_be_bytes());
    data.extend(flags.to_be_bytes());
    answer(option::GO, option_reply::INFO, &data)
}

fn info_block_size(sizes: [u32; 3]) -> Vec<u8> {
    let mut data = info::BLOCK_SIZE.to_be_bytes().to_vec();
    data.extend(sizes.iter().flat_map(|size| size.to_be_bytes()));
    answer(option::GO, option_reply::INFO, &data)
}

fn list_entry(name: &str) -> Vec<u8> {
    let mut data = length_of(name.as_bytes()).to_be_bytes().to_vec();
    data.extend(name.as_bytes());
    data.extend(b"a text for people");
    answer(option::LIST, option_reply::SERVER, &data)
}

fn option_message(option: u32, data: &[u8]) -> Vec<u8> {
    let mut out = wire::OPTION_MAGIC.to_be_bytes().to_vec();
    out.extend(option.to_be_bytes());
    out.extend(length_of(data).to_be_bytes());
    out.extend(data);
    out
}

/// Feeds the messages one after the other. Returns the last outcome, and everything that the client sent.
fn converse(
    structured: bool,
    messages: &[Vec<u8>],
) -> (Result<Connecting, HandshakeError>, Vec<u8>, ClientHandshake) {
    let mut client = ClientHandshake::new("disk", structured).unwrap();
    let mut sent = Vec::new();
    let mut last = Ok(Connecting::NeedMore);
    for message in messages {
        last = client.handle_input(message);
        sent.extend(client.take_output());
    }
    (last, sent, client)
}

fn go_message() -> Vec<u8> {
    option_message(option::GO, &[&[0, 0, 0, 4], b"disk".as_slice(), &[0, 1, 0, 3]].concat())
}

#[test]
fn go_tells_size_flags_and_block_sizes() {
    let (last, sent, _) = converse(
        false,
        &[
            greeting(3),
            info_block_size([512, 4096, 1 << 20]),
            info_export(1 << 30, 0x105),
            [answer(option::GO, option_reply::ACK, &[]), b"gH".to_vec()].concat(),
        ],
    );
    let export = RemoteExport {
        name: "disk".to_owned(),
        size: 1 << 30,
        flags: 0x105,
        block: Some(BlockSizes { minimum: 512, preferred: 4096, maximum: 1 << 20 }),
        structured_replies: false,
    };
    assert_eq!(last, Ok(Connecting::Ready { export, rest: b"gH".to_vec() }));
    assert_eq!(sent, [vec![0, 0, 0, 3], go_message()].concat());
}

#[test]
fn structured_replies_are_used_only_if_the_server_agrees() {
    for (reply, agreed) in [(option_reply::ACK, true), (option_reply::ERR_UNSUP, false)] {
        let (last, ..) = converse(
            true,
            &[
                greeting(3),
                answer(option::STRUCTURED_REPLY, reply, &[]),
                info_export(1, 1),
                answer(option::GO, option_reply::ACK, &[]),
            ],
        );
        assert!(matches!(last, Ok(Connecting::Ready { export, .. }) if export.structured_replies == agreed));
    }
}

#[test]
fn a_server_without_go_is_asked_with_export_name() {
    let reply = [vec![0, 0, 0, 0, 0, 0, 4, 0, 0, 1], vec![0; 124]].concat();
    let no_go = answer(option::GO, option_reply::ERR_UNSUP, b"what?");
    let (last, sent, _) = converse(false, &[greeting(1), no_go, reply]);
    assert!(matches!(last, Ok(Connecting::Ready { export, rest }) if export.size == 1024 && rest.is_empty()));
    assert_eq!(sent, [vec![0, 0, 0, 1], go_message(), option_message(option::EXPORT_NAME, b"disk")].concat());
}

#[test]
fn a_server_that_is_not_fixed_gets_nothing_but_export_name() {
    let reply = vec![0, 0, 0, 0, 0, 0, 4, 0, 0, 1];
    let (last, sent, _) = converse(true, &[greeting(2), reply]);
    assert!(matches!(last, Ok(Connecting::Ready { export, .. }) if export.size == 1024));
    assert_eq!(sent, [vec![0, 0, 0, 2], option_message(option::EXPORT_NAME, b"disk")].concat());
}

#[test]
fn an_unknown_export_is_reported_with_those_that_exist() {
    let unknown = answer(option::GO, option_reply::ERR_UNKNOWN, b"");
    let end = answer(option::LIST, option_reply::ACK, &[]);
    let (last, sent, _) = converse(false, &[greeting(3), unknown, list_entry("a"), list_entry("b"), end]);
    let text = last.unwrap_err().to_string();
    assert_eq!(text, r#"there is no export "disk"; the server has "a", "b""#);
    assert!(sent.ends_with(&option_message(option::ABORT, &[])), "a client that gives up says so");
}

#[test]
fn an_unknown_export_is_reported_also_if_the_server_does_not_list() {
    let unknown = answer(option::GO, option_reply::ERR_UNKNOWN, b"");
    let secret = answer(option::LIST, option_reply::ERR_POLICY, &[]);
    let (last, ..) = converse(false, &[greeting(3), unknown.clone(), secret]);
    assert!(last.unwrap_err().to_string().contains("does not tell"));
    let (_, _, client) = converse(false, &[greeting(3), unknown]);
    assert!(client.handle_end().to_string().contains("no export \"disk\""));
}

#[test]
fn of_a_long_list_of_exports_the_first_are_told_and_the_others_counted() {
    let mut messages = vec![greeting(3), answer(option::GO, option_reply::ERR_UNKNOWN, b"")];
    messages.extend((0..5000).map(|n| list_entry(&format!("{n:0100}"))));
    messages.push(answer(option::LIST, option_reply::ACK, &[]));
    let text = converse(false, &messages).0.unwrap_err().to_string();
    assert!(text.len() < 5000 && text.ends_with(", 4960 more"), "{text}");
}

#[test]
fn what_a_server_says_to_people_stays_on_one_line_and_within_bounds() {
    let text = [&b"no\n\x1b[2Jweir: all is well"[..], &[b'x'; 10_000]].concat();
    let refused = answer(option::GO, option_reply::ERR_POLICY, &text);
    let told = converse(false, &[greeting(3), refused]).0.unwrap_err().to_string();
    assert!(!told.contains(char::is_control) && told.len() < 4300, "{told}");
}

#[test]
fn what_is_no_nbd_server_is_called_so() {
    let (last, ..) = converse(false, &[b"HTTP/1.1 400 Bad".to_vec()]);
    assert!(last.unwrap_err().to_string().starts_with("this is no NBD server"));
    let old = [wire::NBD_MAGIC.to_be_bytes(), OLD_STYLE_MAGIC.to_be_bytes()].concat();
    assert_eq!(converse(false, &[old]).0, Err(HandshakeError::OldStyle));
    let refused = answer(option::GO, option_reply::ERR_TLS_REQD, b"use TLS");
    let text = converse(false, &[greeting(3), refused]).0.unwrap_err().to_string();
    assert!(text.contains("TLS, which is not supported here (use TLS)"), "{text}");
}

#[test]
fn a_reply_that_announces_too_much_is_refused_before_it_is_kept() {
    let mut huge = answer(option::GO, option_reply::INFO, &[]);
    huge[16..20].copy_from_slice(&u32::MAX.to_be_bytes());
    assert!(matches!(converse(false, &[greeting(3), huge]).0, Err(HandshakeError::BadReply(_))));
}

proptest! {
    #[test]
    fn no_answer_of_a_server_panics(
        structured: bool,
        flags in 0..4u16,
        answers in prop::collection::vec(
            (
                prop_oneof![Just(option::GO), Just(option::LIST), Just(option::STRUCTURED_REPLY), any::<u32>()],
                prop_oneof![1..5u32, (1..10u32).prop_map(|n| option_reply::ERROR_BIT | n)],
                prop::collection::vec(any::<u8>(), 0..24),
            ),
            0..6,
        ),
        noise in prop::collection::vec(any::<u8>(), 0..40),
    ) {
        let mut messages = vec![greeting(flags)];
        messages.extend(answers.iter().map(|(option, kind, data)| answer(*option, *kind, data)));
        messages.push(noise);
        let mut client = ClientHandshake::new("disk", structured).unwrap();
        for message in messages {
            if !matches!(client.handle_input(&message), Ok(Connecting::NeedMore)) {
                break;
            }
        }
    }
}
