//! The ledger on its own: two gateways, one volume.

use super::*;

const LEASE: Span = Span::from_secs(3);
const VOLUME: VolumeKey = 0;
const LIMIT: Bounds = Bounds { iops: Bound::AtMost(100), ..Bounds::UNLIMITED };

fn at(seconds: u64) -> Instant {
    Instant::ORIGIN + Span::from_secs(seconds)
}

fn requests(requests: u32) -> Amounts {
    Amounts { requests, iops: Bound::AtMost(requests.into()), bandwidth: Bound::Unlimited }
}

fn holding(amount: u32) -> Holding {
    Holding::from([(VOLUME, requests(amount))])
}

fn sent(number: u64, at: Instant, amount: u32) -> Sent {
    Sent { number, at, until: at + LEASE, grants: holding(amount), fallback: holding(20) }
}

/// A hundred requests; gateways 0 and 1 hold so many.
fn ledger(held: [u32; 2]) -> GrantLedger {
    let mut ledger = GrantLedger::new();
    ledger.set_total(100);
    ledger.set_limits(VOLUME, LIMIT);
    for (gateway, held) in (0..).zip(held) {
        ledger.add(at(0), gateway, at(0), holding(20), 20);
        ledger.connect(gateway, sent(0, at(0), held));
        ledger.record(gateway, sent(1, at(0), held));
        assert!(ledger.acknowledge(gateway, 1, LEASE));
    }
    ledger
}

fn permitted(ledger: &mut GrantLedger, now: Instant, gateway: GatewayKey, wanted: u32) -> u32 {
    let permitted = ledger.permit(now, gateway, &holding(wanted))[&VOLUME];
    assert_eq!(permitted, requests(permitted.requests), "rates as requests");
    permitted.requests
}

#[test]
fn a_raise_waits_until_the_cut_that_makes_room_for_it_is_acknowledged() {
    let mut ledger = ledger([60, 30]);
    assert_eq!(permitted(&mut ledger, at(1), 1, 70), 40, "what is free");
    ledger.record(0, sent(2, at(1), 30));
    assert_eq!(permitted(&mut ledger, at(1), 1, 70), 40);
    assert!(ledger.acknowledge(0, 2, LEASE));
    assert_eq!(permitted(&mut ledger, at(1), 1, 80), 70);
}

#[test]
fn what_was_sent_and_may_come_late_is_held_until_something_later_is_acknowledged() {
    let mut ledger = ledger([10, 30]);
    ledger.record(0, sent(2, at(1), 60));
    ledger.record(0, sent(3, at(1), 10));
    assert_eq!(permitted(&mut ledger, at(1), 1, 90), 40);
    assert!(ledger.acknowledge(0, 3, LEASE) && !ledger.acknowledge(0, 2, LEASE));
    assert_eq!(permitted(&mut ledger, at(1), 1, 90), 90);
}

#[test]
fn when_its_lease_is_over_a_gateway_holds_its_fallback_at_most() {
    let mut ledger = ledger([60, 30]);
    assert_eq!(permitted(&mut ledger, at(2), 1, 90), 40);
    assert_eq!(permitted(&mut ledger, at(3), 1, 90), 80);
}

#[test]
fn a_gateway_that_is_silent_for_a_lease_is_counted_with_the_fallback_that_it_will_take() {
    let mut ledger = ledger([1, 30]);
    assert_eq!(permitted(&mut ledger, at(2), 1, 99), 99);
    assert_eq!(permitted(&mut ledger, at(3), 1, 99), 80);
}

#[test]
fn while_more_is_held_than_there_is_no_message_grants_more_than_the_one_before() {
    let mut ledger = ledger([60, 40]);
    ledger.set_total(50);
    ledger.set_limits(VOLUME, Bounds { iops: Bound::AtMost(50), ..LIMIT });
    ledger.record(0, sent(2, at(1), 30));
    assert_eq!(permitted(&mut ledger, at(1), 0, 35), 30, "though it may still hold 60");
    ledger.record(1, sent(2, at(1), 20));
    assert!(ledger.acknowledge(0, 2, LEASE));
    assert_eq!(permitted(&mut ledger, at(1), 0, 35), 30, "the other may hold 40");
    assert!(ledger.acknowledge(1, 2, LEASE));
    assert_eq!(permitted(&mut ledger, at(1), 0, 35), 30, "nothing is free");
    assert_eq!(permitted(&mut ledger, at(1), 1, 10), 10, "a cut is always possible");
}

#[test]
fn nobody_is_raised_while_a_gateway_may_hold_anything() {
    let mut ledger = ledger([10, 10]);
    ledger.add(at(0), 2, at(2), holding(20), 20);
    assert_eq!(permitted(&mut ledger, at(1), 1, 70), 10);
    assert_eq!(permitted(&mut ledger, at(2), 1, 70), 70);
}
