//! Metadata contexts: when a client may list and choose them, and when its choice counts.

use super::*;

fn context_data(name: &str, queries: &[&str]) -> Vec<u8> {
    let mut data = counted(name.as_bytes());
    data.extend(u32::try_from(queries.len()).unwrap().to_be_bytes());
    data.extend(queries.iter().flat_map(|query| counted(query.as_bytes())));
    data
}

fn structured() -> Talk {
    let mut talk = Talk::new(FIXED);
    talk.ask(option::STRUCTURED_REPLY, &[]);
    talk
}

fn context(option: u32, id: u32) -> Answer {
    (option, option_reply::META_CONTEXT, [&id.to_be_bytes()[..], b"base:allocation"].concat())
}

#[test]
fn metadata_contexts_before_structured_replies_are_invalid() {
    let mut talk = Talk::new(FIXED);
    for option in [option::LIST_META_CONTEXT, option::SET_META_CONTEXT] {
        let verdict = talk.verdict(option, &context_data("db", &["base:allocation"]));
        assert_eq!(verdict, option_reply::ERR_INVALID);
    }
    talk.ask(option::STRUCTURED_REPLY, &[]);
    assert!(!talk.go("db").base_allocation);
}

#[test]
fn listing_contexts_finds_base_allocation_by_no_query_wildcard_and_name_once() {
    const LIST: u32 = option::LIST_META_CONTEXT;
    let mut talk = structured();
    for queries in [&[][..], &["base:"], &["base:allocation"], &["x-foo:", "base:allocation", "base:"]] {
        let answers = talk.ask(LIST, &context_data("db", queries));
        assert_eq!(answers, [context(LIST, 0), (LIST, option_reply::ACK, vec![])]);
    }
    for queries in [&["qemu:"][..], &["base:other"], &["nonsense"], &[""]] {
        assert_eq!(talk.verdict(LIST, &context_data("db", queries)), option_reply::ACK);
    }
    assert!(!talk.go("db").base_allocation, "a list chooses nothing");
}

#[test]
fn setting_a_context_chooses_it_by_its_full_name_only() {
    const SET: u32 = option::SET_META_CONTEXT;
    let mut talk = structured();
    for queries in [&[][..], &["base:"], &["qemu:dirty-bitmap:x"]] {
        assert_eq!(talk.verdict(SET, &context_data("db", queries)), option_reply::ACK);
    }
    let answers = talk.ask(SET, &context_data("db", &["base:allocation", "base:allocation"]));
    assert_eq!(answers, [context(SET, 1), (SET, option_reply::ACK, vec![])]);
    assert!(talk.go("db").base_allocation);
}

#[test]
fn a_context_counts_only_for_the_export_that_it_was_chosen_for() {
    for (chosen, entered) in [("db", "backup"), ("", "db")] {
        let mut talk = structured();
        talk.ask(option::SET_META_CONTEXT, &context_data(chosen, &["base:allocation"]));
        assert!(!talk.go(entered).base_allocation);
    }
}

#[test]
fn a_context_counts_after_export_name_too() {
    let mut talk = structured();
    talk.ask(option::SET_META_CONTEXT, &context_data("db", &["base:allocation"]));
    let outcome = talk.send(&option_bytes(option::EXPORT_NAME, b"db"));
    assert!(matches!(outcome, Handshaking::Ready { session, .. } if session.base_allocation));
}

#[test]
fn setting_contexts_again_forgets_those_before_even_if_it_fails() {
    let failing = [
        context_data("db", &[]),
        context_data("nothing", &["base:allocation"]),
        b"malformed".to_vec(),
        vec![0; 9000],
    ];
    for data in failing {
        let mut talk = structured();
        talk.ask(option::SET_META_CONTEXT, &context_data("db", &["base:allocation"]));
        talk.ask(option::SET_META_CONTEXT, &data);
        assert!(!talk.go("db").base_allocation);
    }
}

#[test]
fn malformed_context_requests_are_invalid_and_unknown_exports_unknown() {
    let query_over_the_end =
        [&counted(b"db")[..], &1_u32.to_be_bytes(), &99_u32.to_be_bytes(), b"base:"].concat();
    let many_queries_promised = [&counted(b"db")[..], &u32::MAX.to_be_bytes()].concat();
    let trailing = [&context_data("db", &["base:"])[..], b"x"].concat();
    let mut talk = structured();
    for option in [option::LIST_META_CONTEXT, option::SET_META_CONTEXT] {
        for data in [&b""[..], &query_over_the_end, &many_queries_promised, &trailing] {
            assert_eq!(talk.verdict(option, data), option_reply::ERR_INVALID);
        }
        let verdict = talk.verdict(option, &context_data("nothing", &["base:allocation"]));
        assert_eq!(verdict, option_reply::ERR_UNKNOWN);
    }
}
