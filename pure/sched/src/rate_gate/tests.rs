//! A backlogged volume gets its rate in virtual time, and never more.

use proptest::prelude::*;

use super::*;

fn gate(requests: Option<f64>, bytes: Option<u64>) -> RateGate {
    let mut gate = RateGate::default();
    gate.set_limits(Instant::ORIGIN, requests.and_then(Iops::new), bytes.and_then(Bandwidth::new));
    gate
}

/// How many reads of `length` pass in `span` from `start` on. There is always another one, and the driver
/// wakes `late` after each opening.
fn passed(gate: &mut RateGate, start: Instant, span: Span, length: u32, late: Span) -> u64 {
    let (mut now, mut count) = (start, 0);
    loop {
        let opens = gate.opens_at(IoKind::Read);
        if opens > now {
            now = opens + late;
        }
        if now >= start + span {
            return count;
        }
        gate.charge(now, IoKind::Read, length);
        count += 1;
    }
}

#[allow(clippy::cast_precision_loss)]
fn assert_within_two_percent_or_one(count: u64, expected: f64) {
    let error = (count as f64 - expected).abs();
    assert!(error <= (0.02 * expected).max(1.0), "{count} passed, {expected} expected");
}

#[test]
fn the_rate_of_requests_is_exact_from_one_to_a_million_a_second() {
    for rate in [1.0, 3.0, 10.0, 99.5, 1_000.0, 70_001.0, 1_000_000.0] {
        let count =
            passed(&mut gate(Some(rate), None), Instant::ORIGIN, Span::from_secs(1), 4096, Span::ZERO);
        assert_within_two_percent_or_one(count, rate);
    }
}

#[test]
#[allow(clippy::cast_precision_loss)]
fn the_rate_of_bytes_is_exact_from_one_to_a_million_requests_a_second_and_4_kib_to_1_mib() {
    for length in [4 << 10, 64 << 10, 1 << 20] {
        for requests in [1, 10, 1_000, 1_000_000] {
            let rate = u64::from(length) * requests;
            let mut gate = gate(None, Some(rate));
            let count = passed(&mut gate, Instant::ORIGIN, Span::from_secs(1), length, Span::ZERO);
            assert_within_two_percent_or_one(count, requests as f64);
        }
    }
}

#[test]
fn a_driver_that_wakes_up_to_5_ms_late_loses_no_rate() {
    for (rate, late) in [(2.0, 4_900), (100.0, 4_900), (1_000.0, 3_900), (50_000.0, 4_900)] {
        let mut gate = gate(Some(rate), None);
        let count = passed(&mut gate, Instant::ORIGIN, Span::from_secs(10), 512, Span::from_micros(late));
        assert_within_two_percent_or_one(count, rate * 10.0);
    }
}

#[test]
fn a_request_that_is_larger_than_the_burst_passes_and_is_paid_off_afterwards() {
    let mut gate = gate(None, Some(1 << 20));
    assert_eq!(gate.opens_at(IoKind::Write), Instant::ORIGIN);
    gate.charge(Instant::ORIGIN, IoKind::Write, 8 << 20);
    assert_eq!(gate.opens_at(IoKind::Write), Instant::ORIGIN + Span::from_millis(7_995));
}

#[test]
fn a_flush_and_a_trim_cost_a_request_and_no_bandwidth() {
    for kind in [IoKind::Flush, IoKind::Trim, IoKind::BlockStatus] {
        let mut gate = gate(Some(10.0), Some(1_000));
        gate.charge(Instant::ORIGIN, kind, 1 << 30);
        let opens = Instant::ORIGIN + Span::from_millis(95);
        assert_eq!(IoKind::ALL.map(|next| gate.opens_at(next)), [opens; IoKind::ALL.len()], "after {kind:?}");
    }
}

#[test]
fn zeroes_cost_what_a_write_costs_and_a_range_to_be_cached_what_a_read_costs() {
    for kind in [IoKind::Write, IoKind::WriteZeroes, IoKind::Read, IoKind::Cache] {
        let mut gate = gate(None, Some(1 << 20));
        gate.charge(Instant::ORIGIN, kind, 8 << 20);
        let opens = Instant::ORIGIN + Span::from_millis(7_995);
        for next in [IoKind::Write, IoKind::WriteZeroes, IoKind::Read, IoKind::Cache] {
            assert_eq!(gate.opens_at(next), opens, "{next:?} after {kind:?}");
        }
        for next in [IoKind::Flush, IoKind::Trim, IoKind::BlockStatus] {
            assert_eq!(gate.opens_at(next), Instant::ORIGIN, "{next:?} after {kind:?}");
        }
    }
}

#[test]
fn a_debt_is_paid_off_at_the_new_rate() {
    let mut gate = gate(None, Some(1_000));
    gate.charge(Instant::ORIGIN, IoKind::Read, 10_000);
    gate.set_limits(Instant::ORIGIN, None, Bandwidth::new(100_000));
    let opens = gate.opens_at(IoKind::Read).as_nanos();
    assert!(
        opens.abs_diff(95_000_000) <= 1_000,
        "10,000 bytes at 100,000 a second are 100 ms, not {opens} ns"
    );
    gate.set_limits(Instant::ORIGIN, None, None);
    assert_eq!(gate.opens_at(IoKind::Read), Instant::ORIGIN);
}

#[test]
fn the_slowest_and_the_fastest_rates_do_not_overflow() {
    let mut slowest = gate(Some(f64::MIN_POSITIVE), Some(1));
    slowest.charge(Instant::from_nanos(u64::MAX - 1), IoKind::Read, u32::MAX);
    slowest.charge(Instant::from_nanos(u64::MAX - 1), IoKind::Read, u32::MAX);
    assert_eq!(slowest.opens_at(IoKind::Read), Instant::FAR_FUTURE);
    let mut fastest = gate(Some(f64::MAX), Some(u64::MAX));
    fastest.charge(Instant::ORIGIN, IoKind::Read, u32::MAX);
    assert_eq!(fastest.opens_at(IoKind::Read), Instant::ORIGIN);
}

proptest! {
    /// Requests of any size arrive at any time. Each passes as soon as it has arrived and the gate is open.
    #[test]
    #[allow(clippy::cast_precision_loss)]
    fn the_envelope_is_never_exceeded(
        rate in 1u64..10_000_000,
        steps in prop::collection::vec((0u64..20_000_000, 1u32..100_000), 1..200),
    ) {
        let mut gate = gate(None, Some(rate));
        let (mut now, mut passed) = (Instant::ORIGIN, Vec::new());
        for (idle, length) in steps {
            now = (now + Span::from_nanos(idle)).max(gate.opens_at(IoKind::Read));
            gate.charge(now, IoKind::Read, length);
            passed.push((now, u64::from(length)));
        }
        for from in 0..passed.len() {
            let mut before_the_last = 0;
            for (at, length) in &passed[from..] {
                let span = at.since(passed[from].0) + BURST;
                prop_assert!(before_the_last as f64 <= rate as f64 * span.as_secs_f64() + 1.0);
                before_the_last += length;
            }
        }
    }
}
