//! Rates of two initiators at one device, with and without counters of their own.

use super::*;
use crate::initiators::Initiators;
use crate::roster::{Lun, Use};
use crate::survey::{Device, Framework};

const DEVICE: DeviceNumber = DeviceNumber { major: 8, minor: 0 };
const LEAF: LeafId = LeafId(1);
const MIB: u64 = 1 << 20;

/// The initiators of one LUN, `(target, initiator, counter)`.
fn roster(sessions: &[(&str, &str, Option<u64>)]) -> Roster {
    let mut roster = Roster::default();
    roster.luns.insert(DEVICE, Lun { leaf: LEAF, device: Device::default() });
    let (nobody, mut initiators) = (Initiators::default(), Initiators::default());
    for &(target, initiator, counter) in sessions {
        let initiator = initiators.named(initiator, &nobody);
        let login = Login { framework: Framework::Lio, target: target.into(), initiator };
        let used = Use {
            counted: counter.map(|bytes| (0, (DEVICE, bytes))).into_iter().collect(),
            uncounted: counter.is_none().then_some(DEVICE).into_iter().collect(),
            addresses: std::collections::BTreeSet::new(),
            reachable: None,
        };
        roster.logins.push((login, used));
    }
    roster
}

/// The rates after a second in which the device has written so much.
fn after(
    writers: &mut Writers,
    second: u64,
    written: u64,
    sessions: &[(&str, &str, Option<u64>)],
) -> Vec<u64> {
    writers.handle_written(DEVICE, written);
    let now = Instant::ORIGIN + Span::from_secs(second);
    writers.handle_survey(now, &roster(sessions), Span::ZERO);
    writers.rates().values().copied().collect()
}

#[test]
fn the_rate_is_a_lag_whatever_the_time_between_surveys() {
    let second = Span::from_secs(1);
    assert_eq!(smoothed(0, 8 * MIB, second, second), 4 * MIB);
    assert_eq!(smoothed(4 * MIB, 8 * MIB, second, second), 6 * MIB);
    assert_eq!(smoothed(4 * MIB, 32 * MIB, Span::from_secs(4), Span::from_secs(4)), 6 * MIB);
    assert_eq!(smoothed(6 * MIB, 0, second, second), 3 * MIB);
    assert_eq!(smoothed(6 * MIB, 8 * MIB, second, Span::ZERO), 8 * MIB, "without smoothing, the last second");
    assert_eq!(smoothed(6 * MIB, 8 * MIB, Span::ZERO, Span::ZERO), 6 * MIB);
    assert_eq!(smoothed(u64::MAX, u64::MAX, Span::from_nanos(1), Span::ZERO), u64::MAX);
}

#[test]
fn without_counters_the_device_counts_for_each_initiator() {
    let sessions = [("t", "a", None), ("t", "b", None)];
    let mut writers = Writers::default();
    assert_eq!(after(&mut writers, 0, 0, &sessions), [0, 0]);
    assert_eq!(after(&mut writers, 1, 7, &sessions), [7, 7]);
}

#[test]
fn an_initiator_with_two_ways_to_a_device_has_written_its_bytes_once() {
    let sessions = [("t", "a", None), ("u", "a", None)];
    let mut writers = Writers::default();
    after(&mut writers, 0, 0, &sessions);
    assert_eq!(after(&mut writers, 1, 7, &sessions), [7]);
}

#[test]
fn counters_say_what_each_has_written_and_the_rest_is_that_of_those_without() {
    let mut writers = Writers::default();
    after(&mut writers, 0, 0, &[("t", "a", Some(100)), ("t", "b", Some(200)), ("t", "c", None)]);
    let rates = after(&mut writers, 1, 60, &[("t", "a", Some(110)), ("t", "b", Some(220)), ("t", "c", None)]);
    assert_eq!(rates, [10, 20, 30]);
}

#[test]
fn a_counter_in_steps_of_a_mib_leaves_nothing_for_those_without() {
    let mut writers = Writers::default();
    after(&mut writers, 0, 0, &[("t", "a", Some(0)), ("t", "b", None)]);
    let mut other = 0;
    for second in 1..=100 {
        // A tenth of a MiB each second, all of it by a, whose counter jumps each tenth time.
        let counter = second / 10 * MIB;
        other += after(&mut writers, second, MIB / 10, &[("t", "a", Some(counter)), ("t", "b", None)])[1];
    }
    assert!(other <= MIB, "not once more than a step: {other}");
}

#[test]
fn a_counter_that_goes_back_says_nothing_until_the_next_survey() {
    let mut writers = Writers::default();
    let rates = [900, 950, 30, 70]
        .iter()
        .zip(0..)
        .map(|(&counter, second)| after(&mut writers, second, 0, &[("t", "a", Some(counter))])[0]);
    assert_eq!(rates.collect::<Vec<_>>(), [0, 50, 0, 40]);
}

#[test]
fn a_session_that_was_away_is_measured_anew() {
    let mut writers = Writers::default();
    after(&mut writers, 0, 0, &[("t", "a", Some(0))]);
    assert_eq!(after(&mut writers, 1, 0, &[]), [0; 0]);
    assert_eq!(after(&mut writers, 2, 0, &[("t", "a", Some(500))]), [0], "it may have written that any time");
}
