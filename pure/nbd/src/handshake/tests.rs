//! Tests of the handshake, option by option.

mod contexts;

use super::*;
use crate::fixtures::two_exports;
use crate::wire::{client_flag, info, option_reply, transmission_flag};

const FIXED: u32 = client_flag::FIXED_NEWSTYLE;

/// An answer: option, type and data.
type Answer = (u32, u32, Vec<u8>);

/// A handshake and the client's end of it.
struct Talk {
    handshake: ServerHandshake,
    received: Vec<u8>,
}

impl Talk {
    fn new(client_flags: u32) -> Self {
        Self::with_limits(HandshakeLimits::default(), client_flags)
    }

    fn with_limits(limits: HandshakeLimits, client_flags: u32) -> Self {
        let mut handshake = ServerHandshake::new(limits);
        assert_eq!(handshake.take_output().len(), wire::GREETING_LENGTH);
        let mut talk = Self { handshake, received: Vec::new() };
        assert_eq!(talk.send(&client_flags.to_be_bytes()), Handshaking::NeedMore);
        talk
    }

    fn send(&mut self, input: &[u8]) -> Handshaking {
        let outcome = self.handshake.handle_input(input, &two_exports());
        self.received.extend(self.handshake.take_output());
        outcome
    }

    /// Sends an option, and returns all answers to it.
    fn ask(&mut self, option: u32, data: &[u8]) -> Vec<Answer> {
        assert_eq!(self.send(&option_bytes(option, data)), Handshaking::NeedMore);
        self.answers()
    }

    fn answers(&mut self) -> Vec<Answer> {
        answers_in(&mem::take(&mut self.received))
    }

    /// The type of the only answer to an option.
    fn verdict(&mut self, option: u32, data: &[u8]) -> u32 {
        let answers = self.ask(option, data);
        assert_eq!((answers.len(), answers[0].0), (1, option), "{answers:?}");
        answers[0].1
    }

    fn go(mut self, name: &str) -> Session {
        match self.send(&option_bytes(option::GO, &info_data(name, &[]))) {
            Handshaking::Ready { session, rest } if rest.is_empty() => session,
            other => panic!("{other:?}"),
        }
    }
}

fn option_bytes(option: u32, data: &[u8]) -> Vec<u8> {
    let length = u32::try_from(data.len()).unwrap();
    [&wire::OPTION_MAGIC.to_be_bytes()[..], &option.to_be_bytes(), &length.to_be_bytes(), data].concat()
}

fn counted(text: &[u8]) -> Vec<u8> {
    [&u32::try_from(text.len()).unwrap().to_be_bytes(), text].concat()
}

fn info_data(name: &str, requests: &[u16]) -> Vec<u8> {
    let mut data = counted(name.as_bytes());
    data.extend(u16::try_from(requests.len()).unwrap().to_be_bytes());
    data.extend(requests.iter().flat_map(|request| request.to_be_bytes()));
    data
}

fn answers_in(received: &[u8]) -> Vec<Answer> {
    let mut fields = Fields::new(received);
    let mut answers = Vec::new();
    while !fields.is_empty() {
        assert_eq!(fields.u64(), Some(wire::OPTION_REPLY_MAGIC));
        let (option, kind) = (fields.u32().unwrap(), fields.u32().unwrap());
        answers.push((option, kind, fields.counted_bytes().unwrap().to_vec()));
    }
    answers
}

fn export_info(size: u64, flags: u16) -> Vec<u8> {
    [&info::EXPORT.to_be_bytes()[..], &size.to_be_bytes(), &flags.to_be_bytes()].concat()
}

const WRITABLE: u16 = transmission_flag::HAS_FLAGS
    | transmission_flag::SEND_FLUSH
    | transmission_flag::SEND_FUA
    | transmission_flag::SEND_TRIM
    | transmission_flag::SEND_WRITE_ZEROES
    | transmission_flag::CAN_MULTI_CONN
    | transmission_flag::SEND_CACHE
    | transmission_flag::SEND_FAST_ZERO;

#[test]
fn the_greeting_is_there_at_once_and_offers_fixed_newstyle_without_zeroes() {
    let greeting = ServerHandshake::new(HandshakeLimits::default()).take_output();
    assert_eq!(greeting, b"NBDMAGICIHAVEOPT\x00\x03");
}

#[test]
fn an_unknown_client_flag_closes() {
    let mut handshake = ServerHandshake::new(HandshakeLimits::default());
    let outcome = handshake.handle_input(&7_u32.to_be_bytes(), &two_exports());
    assert_eq!(outcome, Handshaking::Closed(CloseReason::UnknownClientFlags(7)));
}

#[test]
fn a_wrong_option_magic_closes() {
    let mut talk = Talk::new(FIXED);
    let outcome = talk.send(b"IHAVENOT\0\0\0\x03\0\0\0\0");
    assert!(matches!(outcome, Handshaking::Closed(CloseReason::BadOptionMagic(_))));
}

#[test]
fn without_fixed_newstyle_export_name_works_and_every_other_option_closes() {
    let mut talk = Talk::new(0);
    let outcome = talk.send(&option_bytes(option::EXPORT_NAME, b"db"));
    assert!(matches!(outcome, Handshaking::Ready { .. }));
    for option in [option::ABORT, option::LIST, option::GO, 77] {
        let outcome = Talk::new(client_flag::NO_ZEROES).send(&option_bytes(option, &[]));
        assert_eq!(outcome, Handshaking::Closed(CloseReason::NotFixedNewstyle(option)));
    }
}

#[test]
fn export_name_answers_with_size_flags_and_124_zeroes() {
    let mut talk = Talk::new(FIXED);
    let outcome = talk.send(&option_bytes(option::EXPORT_NAME, b"db"));
    assert!(matches!(outcome, Handshaking::Ready { session, .. } if session.export.name == "db"));
    let expected = [&(16_u64 << 20).to_be_bytes()[..], &WRITABLE.to_be_bytes(), &[0; 124]].concat();
    assert_eq!(talk.received, expected);
}

#[test]
fn export_name_leaves_the_zeroes_out_if_the_client_says_so() {
    let mut talk = Talk::new(FIXED | client_flag::NO_ZEROES);
    talk.send(&option_bytes(option::EXPORT_NAME, b"db"));
    assert_eq!(talk.received.len(), 10);
}

#[test]
fn export_name_of_an_unknown_or_malformed_name_closes_without_an_answer() {
    for name in [&b"nothing"[..], b"\xff\xfe", b"d\0b", &[b'x'; 5000]] {
        let mut talk = Talk::new(FIXED);
        let outcome = talk.send(&option_bytes(option::EXPORT_NAME, name));
        assert_eq!(outcome, Handshaking::Closed(CloseReason::UnknownExport));
        assert_eq!(talk.received, b"");
    }
}

#[test]
fn export_name_with_more_data_than_are_stored_closes_before_they_are_sent() {
    let mut talk = Talk::new(FIXED);
    let outcome = talk.send(&option_bytes(option::EXPORT_NAME, &[b'x'; 8193])[..16]);
    let reason = CloseReason::OptionTooLong { option: option::EXPORT_NAME, length: 8193 };
    assert_eq!(outcome, Handshaking::Closed(reason));
}

#[test]
fn an_empty_name_means_the_default_export() {
    assert_eq!(Talk::new(FIXED).go("").export.name, "db");
}

#[test]
fn list_gives_each_export_with_its_description_and_then_an_acknowledgement() {
    let answers = Talk::new(FIXED).ask(option::LIST, &[]);
    let db = [&counted(b"db")[..], b"the database"].concat();
    let expected = [
        (option::LIST, option_reply::SERVER, db),
        (option::LIST, option_reply::SERVER, counted(b"backup")),
        (option::LIST, option_reply::ACK, vec![]),
    ];
    assert_eq!(answers, expected);
}

#[test]
fn data_with_list_or_structured_reply_are_invalid_and_skipped() {
    let mut talk = Talk::new(FIXED);
    assert_eq!(talk.verdict(option::LIST, b"x"), option_reply::ERR_INVALID);
    assert_eq!(talk.verdict(option::STRUCTURED_REPLY, &[0; 20_000]), option_reply::ERR_INVALID);
    assert!(!talk.go("db").structured_replies);
}

#[test]
fn abort_is_acknowledged_and_closes_also_with_data() {
    for data in [&b""[..], b"good-bye"] {
        let mut talk = Talk::new(FIXED);
        let outcome = talk.send(&option_bytes(option::ABORT, data));
        assert_eq!(outcome, Handshaking::Closed(CloseReason::Aborted));
        assert_eq!(talk.answers(), [(option::ABORT, option_reply::ACK, vec![])]);
    }
}

#[test]
fn an_unknown_option_is_unsupported_and_its_data_are_skipped() {
    let mut talk = Talk::new(FIXED);
    assert_eq!(talk.verdict(4242, &[0xff; 60_000]), option_reply::ERR_UNSUP);
    assert_eq!(talk.verdict(4, b""), option_reply::ERR_UNSUP);
    assert_eq!(talk.ask(option::LIST, &[]).len(), 3);
}

#[test]
fn starttls_is_unsupported_and_the_handshake_goes_on() {
    let mut talk = Talk::new(FIXED);
    assert_eq!(talk.verdict(option::STARTTLS, &[]), option_reply::ERR_UNSUP);
    talk.go("db");
}

#[test]
fn a_moderately_long_option_is_too_big_and_skipped_and_beyond_that_closes() {
    let mut talk = Talk::new(FIXED);
    for option in [option::INFO, option::GO, option::LIST_META_CONTEXT, option::SET_META_CONTEXT] {
        assert_eq!(talk.verdict(option, &[0; 8193]), option_reply::ERR_TOO_BIG);
        assert_eq!(talk.verdict(option, &[0; 65_536]), option_reply::ERR_TOO_BIG);
    }
    for option in [option::GO, option::ABORT, 4242] {
        let outcome = Talk::new(FIXED).send(&option_bytes(option, &[0; 65_537]));
        assert_eq!(outcome, Handshaking::Closed(CloseReason::OptionTooLong { option, length: 65_537 }));
    }
}

#[test]
fn one_option_more_than_allowed_closes() {
    let limits = HandshakeLimits { max_options: 2, ..HandshakeLimits::default() };
    let mut talk = Talk::with_limits(limits, FIXED);
    talk.ask(option::LIST, &[]);
    talk.ask(99, &[]);
    let outcome = talk.send(&option_bytes(option::LIST, &[]));
    assert_eq!(outcome, Handshaking::Closed(CloseReason::TooManyOptions));
}

#[test]
fn info_tells_size_flags_and_block_sizes_and_stays_in_the_handshake() {
    let mut talk = Talk::new(FIXED);
    let answers = talk.ask(option::INFO, &info_data("backup", &[]));
    let sizes = b"\0\x03\0\0\0\x01\0\0\x10\0\0\x10\0\0".to_vec();
    let expected = [
        (option::INFO, option_reply::INFO, export_info(1 << 30, WRITABLE)),
        (option::INFO, option_reply::INFO, sizes),
        (option::INFO, option_reply::ACK, vec![]),
    ];
    assert_eq!(answers, expected);
    assert_eq!(talk.go("db").export.name, "db");
}

#[test]
fn name_and_description_are_told_on_request_and_unknown_requests_are_ignored() {
    let requests = [info::DESCRIPTION, 999, info::NAME, info::EXPORT, info::BLOCK_SIZE];
    let answers = Talk::new(FIXED).ask(option::INFO, &info_data("", &requests));
    let texts: Vec<&[u8]> = answers[1..3].iter().map(|(_, _, data)| &data[..]).collect();
    assert_eq!(texts, [&b"\0\x01db"[..], b"\0\x02the database"]);
    assert_eq!(answers.len(), 5);
}

#[test]
fn an_export_without_a_description_has_none() {
    let answers = Talk::new(FIXED).ask(option::INFO, &info_data("backup", &[info::DESCRIPTION]));
    assert!(answers.iter().all(|(_, _, data)| !data.starts_with(b"\0\x02")));
}

#[test]
fn go_answers_as_info_does_and_enters_with_the_bytes_that_follow() {
    let mut asking = Talk::new(FIXED);
    let described = asking.ask(option::INFO, &info_data("db", &[info::NAME]));
    let mut talk = Talk::new(FIXED);
    let sent = [&option_bytes(option::GO, &info_data("db", &[info::NAME]))[..], b"first request"].concat();
    match talk.send(&sent) {
        Handshaking::Ready { session, rest } => {
            assert_eq!((session.export.name.as_str(), &rest[..]), ("db", &b"first request"[..]));
        }
        other => panic!("{other:?}"),
    }
    let entered = talk.answers().into_iter().map(|(_, kind, data)| (option::INFO, kind, data));
    assert_eq!(entered.collect::<Vec<_>>(), described);
}

#[test]
fn an_unknown_export_is_an_error_and_the_client_may_choose_another() {
    let mut talk = Talk::new(FIXED);
    for option in [option::INFO, option::GO] {
        assert_eq!(talk.verdict(option, &info_data("nothing", &[])), option_reply::ERR_UNKNOWN);
    }
    talk.go("db");
}

#[test]
fn malformed_data_of_info_and_go_are_invalid() {
    let too_long_name = [&100_u32.to_be_bytes()[..], b"db\0\0"].concat();
    let missing_request = [&counted(b"db")[..], &2_u16.to_be_bytes(), &[0, 0]].concat();
    let trailing = [&info_data("db", &[])[..], b"x"].concat();
    let with_nul = info_data("d\0b", &[]);
    let not_utf8 = [&counted(b"\xc3\x28")[..], &[0, 0]].concat();
    let over_4096_bytes = info_data(&"x".repeat(4097), &[]);
    let mut talk = Talk::new(FIXED);
    for data in [
        &b""[..],
        b"\0\0\0",
        &too_long_name,
        &missing_request,
        &trailing,
        &with_nul,
        &not_utf8,
        &over_4096_bytes,
    ] {
        for option in [option::INFO, option::GO] {
            assert_eq!(talk.verdict(option, data), option_reply::ERR_INVALID, "{data:?}");
        }
    }
}

#[test]
fn structured_replies_are_acknowledged_and_only_then_df_is_offered() {
    let mut talk = Talk::new(FIXED);
    assert_eq!(talk.verdict(option::STRUCTURED_REPLY, &[]), option_reply::ACK);
    let answers = talk.ask(option::INFO, &info_data("db", &[]));
    assert_eq!(answers[0].2, export_info(16 << 20, WRITABLE | transmission_flag::SEND_DF));
    let session = talk.go("db");
    assert!(session.structured_replies && !session.base_allocation);
}

#[test]
fn a_read_only_export_offers_nothing_that_changes_it() {
    let export = crate::ExportInfo { read_only: true, multi_conn: false, ..crate::fixtures::export("db", 1) };
    let expected = transmission_flag::HAS_FLAGS
        | transmission_flag::READ_ONLY
        | transmission_flag::SEND_FLUSH
        | transmission_flag::SEND_FUA
        | transmission_flag::SEND_CACHE;
    assert_eq!(export.transmission_flags(false), expected);
}

#[test]
fn many_options_in_one_read_are_all_answered_in_order() {
    let sent = [
        option_bytes(option::STRUCTURED_REPLY, &[]),
        option_bytes(4242, b"what is this"),
        option_bytes(option::INFO, &info_data("db", &[])),
        option_bytes(option::GO, &info_data("db", &[])),
    ]
    .concat();
    let mut talk = Talk::new(FIXED);
    assert!(matches!(talk.send(&sent), Handshaking::Ready { .. }));
    let options: Vec<u32> = talk.answers().iter().map(|answer| answer.0).collect();
    assert_eq!(options, [8, 4242, 6, 6, 6, 7, 7, 7]);
}

#[test]
fn a_flood_of_lists_is_answered_in_portions_that_are_bounded() {
    let limits = HandshakeLimits { max_output_length: 1000, ..HandshakeLimits::default() };
    let mut talk = Talk::with_limits(limits, FIXED);
    let one_answer = talk.ask(option::LIST, &[]).iter().map(|answer| 20 + answer.2.len()).sum::<usize>();
    let flood = option_bytes(option::LIST, &[]).repeat(500);
    let mut outcome = talk.handshake.handle_input(&flood, &two_exports());
    let mut received = 0;
    while outcome == Handshaking::Drain {
        let portion = talk.handshake.take_output().len();
        assert!(portion <= 1000 + one_answer);
        received += portion;
        outcome = talk.handshake.handle_input(&[], &two_exports());
    }
    assert_eq!(outcome, Handshaking::NeedMore);
    assert_eq!(received + talk.handshake.take_output().len(), 500 * one_answer);
}

#[test]
#[should_panic(expected = "the handshake is over")]
fn input_after_the_end_is_a_mistake_of_the_driver() {
    let mut talk = Talk::new(FIXED);
    talk.send(&option_bytes(option::ABORT, &[]));
    talk.send(b"more");
}
