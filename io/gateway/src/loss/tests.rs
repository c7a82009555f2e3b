//! Each test is a history of one volume. `flush` is a flush that the device reports as successful, and whose
//! reply the socket took.

use super::*;

/// Sends a flush, ends it and has the socket take its reply. Returns whether the flush succeeded.
fn flush(losses: &mut Losses, witness: &mut Witness) -> bool {
    let flush = losses.send_flush(witness);
    finish(losses, witness, flush)
}

/// A connection comes and flushes, and stays.
fn newcomer_flushes(losses: &mut Losses) -> bool {
    let mut newcomer = losses.join();
    flush(losses, &mut newcomer)
}

/// As `flush`, for a flush that was sent before.
fn finish(losses: &mut Losses, witness: &mut Witness, flush: Flush) -> bool {
    losses.end_flush(flush);
    let tells = losses.untold(flush);
    if let Some(up_to) = tells {
        losses.tell(witness, up_to);
    }
    tells.is_none()
}

#[test]
fn each_connection_that_was_there_is_told_once() {
    let mut losses = Losses::default();
    let mut connections = [losses.join(), losses.join(), losses.join()];
    losses.happen();
    for connection in &mut connections {
        assert!(!flush(&mut losses, connection));
        assert!(flush(&mut losses, connection));
    }
    losses.happen();
    for connection in &mut connections {
        assert!(!flush(&mut losses, connection), "the second loss is told, too");
    }
}

#[test]
fn a_newcomer_is_told_if_nobody_was_and_not_if_somebody_was() {
    let mut losses = Losses::default();
    let mut there = losses.join();
    losses.happen();
    let mut first = losses.join();
    assert!(!flush(&mut losses, &mut first));
    assert!(newcomer_flushes(&mut losses));
    assert!(!flush(&mut losses, &mut there), "it was there");
    assert!(newcomer_flushes(&mut losses));
}

#[test]
fn a_flush_that_failed_at_the_device_is_not_hidden_by_one_that_succeeds() {
    let mut losses = Losses::default();
    let (mut a, mut b) = (losses.join(), losses.join());
    let failed = losses.send_flush(&a);
    losses.happen();
    assert_eq!(losses.untold(failed), Some(1));
    losses.tell(&mut a, 1);
    assert!(!flush(&mut losses, &mut b));
}

#[test]
fn a_flush_that_was_sent_before_a_loss_and_ends_after_it_fails() {
    let mut losses = Losses::default();
    let mut a = losses.join();
    let sent = losses.send_flush(&a);
    losses.happen();
    assert!(!finish(&mut losses, &mut a, sent));
    assert!(flush(&mut losses, &mut a));
}

#[test]
fn two_flushes_in_flight_at_a_loss_fail_both() {
    // Two threads of one client may have sent them, each for writes of its own.
    let mut losses = Losses::default();
    let mut a = losses.join();
    let (first, second) = (losses.send_flush(&a), losses.send_flush(&a));
    losses.happen();
    assert!(!finish(&mut losses, &mut a, first));
    assert!(!finish(&mut losses, &mut a, second), "told in between, but sent before");
    assert!(flush(&mut losses, &mut a));
}

#[test]
fn a_loss_between_the_reply_and_its_last_byte_is_told_by_the_next_flush() {
    let mut losses = Losses::default();
    let mut a = losses.join();
    losses.happen();
    let sent = losses.send_flush(&a);
    let tells = losses.untold(sent).expect("it fails");
    losses.happen();
    losses.tell(&mut a, tells);
    assert!(!flush(&mut losses, &mut a));
    assert!(flush(&mut losses, &mut a));
}

#[test]
fn a_reply_that_is_not_taken_tells_nobody() {
    let mut losses = Losses::default();
    let a = losses.join();
    losses.happen();
    let sent = losses.send_flush(&a);
    assert!(losses.untold(sent).is_some());
    losses.leave(a); // with the reply in its output
    assert!(!newcomer_flushes(&mut losses));
    assert!(newcomer_flushes(&mut losses));
}

#[test]
fn a_connection_that_ends_untold_passes_it_on_though_others_were_told() {
    let mut losses = Losses::default();
    let (a, mut b) = (losses.join(), losses.join());
    losses.happen();
    losses.leave(a);
    assert!(!flush(&mut losses, &mut b));
    let mut again = losses.join();
    assert!(!flush(&mut losses, &mut again));
    assert!(flush(&mut losses, &mut again));
    assert!(newcomer_flushes(&mut losses), "told once");
}

#[test]
fn each_of_several_clients_that_end_untold_has_a_successor_that_is_told() {
    let mut losses = Losses::default();
    let (a, b, mut c) = (losses.join(), losses.join(), losses.join());
    losses.happen();
    assert!(!flush(&mut losses, &mut c));
    losses.leave(a);
    losses.leave(b);
    assert!(!newcomer_flushes(&mut losses));
    assert!(!newcomer_flushes(&mut losses));
    assert!(newcomer_flushes(&mut losses));
}

#[test]
fn clients_that_look_in_and_flush_nothing_neither_use_a_message_up_nor_add_one() {
    let mut losses = Losses::default();
    let (a, mut b) = (losses.join(), losses.join());
    losses.happen();
    assert!(!flush(&mut losses, &mut b));
    losses.leave(a);
    for _ in 0..1000 {
        losses.leave(losses.join());
    }
    assert!(!newcomer_flushes(&mut losses));
    losses.leave(b);
    assert!(newcomer_flushes(&mut losses));
}

#[test]
fn an_untold_newcomer_that_ends_passes_on_what_it_was_given() {
    let mut losses = Losses::default();
    losses.happen();
    let (given, mut told) = (losses.join(), losses.join());
    assert!(!flush(&mut losses, &mut told));
    losses.leave(given);
    assert!(!newcomer_flushes(&mut losses));
    assert!(newcomer_flushes(&mut losses));
}

#[test]
fn a_loss_in_the_middle_of_a_reconnection_is_told_to_who_comes_back() {
    let mut losses = Losses::default();
    let (mut a, mut b) = (losses.join(), losses.join());
    losses.answer(&mut a);
    losses.leave(a);
    losses.happen();
    assert!(!flush(&mut losses, &mut b), "so that newcomers would start after the loss");
    assert!(!newcomer_flushes(&mut losses));
    assert!(newcomer_flushes(&mut losses));
}

#[test]
fn a_client_whose_changes_were_flushed_before_it_left_is_not_waited_for() {
    let mut losses = Losses::default();
    let (mut a, mut b) = (losses.join(), losses.join());
    losses.answer(&mut a);
    assert!(flush(&mut losses, &mut b), "a flush covers what was answered on any connection");
    losses.leave(a);
    let mut c = losses.join();
    losses.answer(&mut c);
    losses.leave(c);
    assert!(flush(&mut losses, &mut b));
    losses.happen();
    assert!(!flush(&mut losses, &mut b));
    assert!(newcomer_flushes(&mut losses), "nobody has come back with something to lose");
}

#[test]
fn a_flush_that_was_sent_before_a_change_was_answered_does_not_cover_it() {
    let mut losses = Losses::default();
    let (mut a, mut b) = (losses.join(), losses.join());
    let early = losses.send_flush(&b);
    losses.answer(&mut a);
    losses.leave(a);
    assert!(finish(&mut losses, &mut b, early));
    losses.happen();
    assert!(!flush(&mut losses, &mut b));
    assert!(!newcomer_flushes(&mut losses), "the change was not flushed");
}

#[test]
fn what_was_not_told_when_a_volume_ended_is_told_when_it_is_served_again() {
    let estate = Estate::default();
    let mut losses = estate.take("v");
    let mut a = losses.join();
    losses.answer(&mut a);
    losses.happen(); // its last flush has failed
    losses.leave(a);
    assert!(estate.leave("v", losses));
    let mut losses = estate.take("v");
    assert!(!newcomer_flushes(&mut losses));
    assert!(newcomer_flushes(&mut losses));
    assert!(!estate.leave("v", losses));
    let mut losses = estate.take("v");
    assert!(newcomer_flushes(&mut losses));
}
