//! What gateways hear, in the time of the tests.

use super::*;

const RUN: u64 = 1;

fn at(millis: u64) -> Instant {
    Instant::from_nanos(millis * 1_000_000)
}

fn hello(run: u64) -> Hello {
    Hello { run, is_of_promises: true, ..Hello::default() }
}

fn promised(cuts: u32) -> Standing {
    Standing { is_promised: true, is_there: true, cuts, ..Standing::default() }
}

fn messenger(names: &[&str]) -> Messenger {
    Messenger::new(at(0), names.iter().map(|name| (*name).to_owned()))
}

/// A controller of gateways that have all come and said how they stand at time zero, and their streams.
fn settled<const N: usize>(names: [&str; N]) -> (Messenger, [Connection; N]) {
    let mut messenger = messenger(&names);
    let streams = names.map(|name| messenger.handle_connected(at(0), name, &hello(RUN)).unwrap());
    streams.iter().for_each(|stream| messenger.handle_standing(at(0), *stream, Standing::default()));
    messages(&mut messenger, at(0));
    (messenger, streams)
}

fn messages(messenger: &mut Messenger, now: Instant) -> Vec<(Connection, Standing)> {
    messenger.handle_timeout(now);
    std::iter::from_fn(|| messenger.poll_message(now)).collect()
}

#[test]
fn what_a_gateway_says_reaches_all_others_at_once_and_not_itself() {
    let (mut messenger, [a, b, c]) = settled(["a", "b", "c"]);
    messenger.handle_standing(at(100), a, promised(7));
    assert_eq!(messenger.poll_timeout(), at(5), "no later than the gap after the last message");
    assert_eq!(messages(&mut messenger, at(100)), [(b, promised(7)), (c, promised(7))]);
}

#[test]
fn a_flood_of_standings_becomes_a_message_every_5_ms_and_the_last_one_is_in_it() {
    let (mut messenger, [a, b]) = settled(["a", "b"]);
    let mut told = Vec::new();
    for tenth in 0..1_000_u32 {
        let now = Instant::from_nanos(1_000_000_000 + u64::from(tenth) * 100_000);
        messenger.handle_standing(now, a, promised(tenth));
        told.extend(messages(&mut messenger, now).into_iter().filter(|(to, _)| *to == b));
    }
    assert_eq!(told.len(), 20, "in 100 ms");
    let rest = messages(&mut messenger, at(1_105));
    assert_eq!(rest.last(), Some(&(b, promised(999))));
}

#[test]
fn a_gateway_hears_something_every_half_second_even_if_it_is_the_only_one() {
    let mut messenger = messenger(&["a", "b"]);
    let a = messenger.handle_connected(at(0), "a", &hello(RUN)).unwrap();
    let mut told = Vec::new();
    while messenger.poll_timeout() <= at(10_000) {
        let now = messenger.poll_timeout();
        told.extend(messages(&mut messenger, now).into_iter().map(|message| (now, message)));
    }
    let expected = (0..15).map(|n| (at(3_000 + n * 500), (a, Standing::default())));
    assert_eq!(told, expected.collect::<Vec<_>>(), "nothing in the first three seconds");
}

/// Otherwise the background volumes of the first gateway to come would be let go.
#[test]
fn a_controller_that_starts_anew_says_nothing_until_it_knows_how_all_gateways_stand() {
    let mut messenger = messenger(&["a", "b"]);
    let a = messenger.handle_connected(at(0), "a", &hello(RUN)).unwrap();
    messenger.handle_standing(at(1), a, Standing::default());
    assert_eq!(messages(&mut messenger, at(1)), []);
    let b = messenger.handle_connected(at(800), "b", &hello(RUN)).unwrap();
    assert_eq!(messages(&mut messenger, at(800)), []);
    messenger.handle_standing(at(801), b, promised(0));
    assert_eq!(messages(&mut messenger, at(801)), [(a, promised(0)), (b, Standing::default())]);
}

#[test]
fn a_gateway_that_is_gone_counts_for_two_seconds_and_one_that_is_removed_no_more() {
    let (mut messenger, [a, b]) = settled(["a", "b"]);
    messenger.handle_standing(at(1_000), b, promised(0));
    messenger.handle_disconnected(at(1_000), b);
    let told = |messenger: &mut Messenger, now| messages(messenger, at(now)).last().map(|(_, told)| *told);
    assert_eq!(told(&mut messenger, 1_000), Some(promised(0)));
    assert_eq!(told(&mut messenger, 2_999), Some(promised(0)));
    assert_eq!(told(&mut messenger, 3_600), Some(Standing::default()));
    let b = messenger.handle_connected(at(4_000), "b", &hello(RUN)).unwrap();
    messenger.handle_standing(at(4_000), b, promised(0));
    assert_eq!(told(&mut messenger, 4_000), Some(Standing::default()), "what b hears of a");
    messenger.set_gateways(at(4_010), ["a".to_owned()]);
    assert_eq!(messages(&mut messenger, at(4_010)), [(a, Standing::default())]);
    assert!(!messenger.is_connected(b));
}

#[test]
fn who_is_not_named_or_has_another_law_or_another_run_of_a_gateway_is_refused() {
    let (mut messenger, [a]) = settled(["a"]);
    let mut refusal = |now, name, hello| messenger.handle_connected(at(now), name, &hello);
    let unknown = Refused::Unknown { name: "x".to_owned(), accepted: "a".to_owned() };
    assert_eq!(refusal(1, "x", hello(RUN)), Err(unknown));
    let other_law = Refused::OtherLaw { name: "a".to_owned(), found: "maestro", accepted: "promise" };
    assert_eq!(refusal(1, "a", Hello { run: RUN, ..Hello::default() }), Err(other_law));
    assert_eq!(refusal(1_999, "a", hello(2)), Err(Refused::Taken { name: "a".to_owned(), by: a }));
    let second = refusal(2_000, "a", hello(2)).expect("the first run was silent for two seconds");
    assert!(!messenger.is_connected(a) && messenger.is_connected(second));
    assert!(messenger.handle_connected(at(2_001), "a", &hello(2)).is_ok(), "its own place");
}
