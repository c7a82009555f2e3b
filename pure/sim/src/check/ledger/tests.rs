//! The life of a request. Each step out of turn is caught.

use weir_model::Span;

use super::*;

const VOLUME: VolumeId = VolumeId(0);

const fn at(nanos: u64) -> Instant {
    Instant::from_nanos(nanos)
}

fn io(slot: u32) -> Io {
    let id = IoId { slot, generation: 0 };
    Io { id, volume: VOLUME, kind: IoKind::Read, offset: 0, length: 4096, arrived: at(10) }
}

fn finished(total: u64) -> Event {
    let span = Span::from_nanos;
    let (queued, device, total) = (span(5), span(total - 5), span(total));
    Event::Finished { volume: VOLUME, kind: IoKind::Read, length: 4096, ok: true, queued, device, total }
}

/// A request at the array.
fn issued() -> Ledger {
    let mut ledger = Ledger::default();
    ledger.on_submit(&io(3)).unwrap();
    ledger.on_issue(at(15), &io(3)).unwrap();
    ledger
}

fn found(result: Result<impl std::fmt::Debug, Box<Breach>>) -> &'static str {
    match *result.unwrap_err() {
        Breach::OutOfTurn { found, .. } => found,
        other => panic!("{other}"),
    }
}

#[test]
fn a_request_that_is_answered_and_reported_once_is_right() {
    let mut ledger = issued();
    assert_eq!(ledger.on_answer(at(30), 3, true), Ok((VOLUME, io(3).id)));
    assert_eq!(ledger.on_reply(at(30), 3), Ok((VOLUME, Span::ZERO)));
    assert_eq!(ledger.on_report(&finished(20)), Ok(io(3).id));
    assert_eq!((ledger.at_rest(), ledger.at_end(VOLUME, 0)), (Ok(()), Ok(())));
}

#[test]
fn a_second_answer_is_caught() {
    let mut ledger = issued();
    assert_eq!(found(ledger.on_reply(at(29), 3)), "is at the array");
    ledger.on_answer(at(30), 3, true).unwrap();
    assert_eq!(found(ledger.on_answer(at(31), 3, true)), "is answered");
    ledger.on_reply(at(31), 3).unwrap();
    assert_eq!(found(ledger.on_reply(at(31), 3)), "is not outstanding");
    assert_eq!(found(ledger.on_answer(at(31), 3, true)), "is not outstanding");
}

#[test]
fn an_answer_to_what_was_never_issued_is_caught() {
    let mut ledger = Ledger::default();
    assert_eq!(found(ledger.on_answer(at(30), 7, true)), "is not outstanding");
    ledger.on_submit(&io(7)).unwrap();
    assert_eq!(found(ledger.on_answer(at(30), 7, true)), "is queued");
}

#[test]
fn a_second_issue_and_an_abort_of_what_is_at_the_array_are_caught() {
    let mut ledger = issued();
    assert_eq!(found(ledger.on_issue(at(16), &io(3))), "is at the array");
    assert_eq!(found(ledger.on_abort(io(3).id)), "is at the array");
}

#[test]
fn a_slot_that_is_given_twice_is_caught() {
    let mut ledger = issued();
    assert_eq!(found(ledger.on_submit(&io(3))), "is at the array");
    let later = IoId { slot: 3, generation: 1 };
    assert_eq!(found(ledger.on_abort(later)), "is another request by now");
}

#[test]
fn a_wrong_report_is_caught() {
    let mut ledger = issued();
    ledger.on_answer(at(30), 3, true).unwrap();
    ledger.on_reply(at(30), 3).unwrap();
    let wrong = ledger.on_report(&finished(21)).unwrap_err();
    assert_eq!(*wrong, Breach::Report { reported: finished(21), seen: Some(finished(20)) });
    let more = ledger.on_report(&finished(20)).unwrap_err();
    assert_eq!(*more, Breach::Report { reported: finished(20), seen: None });
}

#[test]
fn an_answer_that_is_not_reported_is_caught() {
    let mut ledger = issued();
    ledger.on_answer(at(30), 3, true).unwrap();
    ledger.on_reply(at(30), 3).unwrap();
    assert_eq!(*ledger.at_rest().unwrap_err(), Breach::Unreported { seen: finished(20) });
}

#[test]
fn a_request_that_the_engine_has_forgotten_is_caught() {
    let lost = Breach::Lost { volume: VOLUME, engine: 0, counted: 1 };
    assert_eq!(*issued().at_end(VOLUME, 0).unwrap_err(), lost);
}

#[test]
fn a_reply_that_is_held_is_known_with_its_time_and_is_not_part_of_the_time_at_the_array() {
    let mut ledger = issued();
    assert_eq!(ledger.longest_held(at(30)), None);
    ledger.on_answer(at(30), 3, true).unwrap();
    assert_eq!(ledger.longest_held(at(37)), Some((VOLUME, Span::from_nanos(7))));
    assert_eq!(ledger.at_end(VOLUME, 1), Ok(()), "it is outstanding");
    assert_eq!(ledger.on_reply(at(40), 3), Ok((VOLUME, Span::from_nanos(10))));
    let span = Span::from_nanos;
    let (queued, device, total) = (span(5), span(15), span(30));
    let finished =
        Event::Finished { volume: VOLUME, kind: IoKind::Read, length: 4096, ok: true, queued, device, total };
    assert_eq!(ledger.on_report(&finished), Ok(io(3).id));
}
