//! Claims about the figures of Maestro's claims, computed from records made by hand.

use weir_model::{Bandwidth, Span, Target};

use crate::claims;
use crate::run::{Bound, Record, Window};
use crate::study::Records;
use crate::study::testing::{record, records, window};

fn value(records: &Records, claim: &str, name: &str) -> Option<f64> {
    let figures = claims::claim(claim).expect("a claim")(records);
    figures.into_iter().find(|figure| figure.name == name).expect("a figure of the claim").value
}

fn close(value: Option<f64>, expected: f64) {
    assert!(value.is_some_and(|value| (value - expected).abs() < 1e-6), "{value:?} is not {expected}");
}

/// Windows of 2 s up to `end` in seconds. `answers` gives the number of answers of 4 KiB in the window that
/// ends at an instant.
fn windows(end: u64, answers: impl Fn(u64) -> u64) -> Vec<Window> {
    (1..=end / 2).map(|number| window(2 * number, answers(2 * number), answers(2 * number), 10)).collect()
}

/// A record of volumes whose target is 1,000 requests of 4 KiB in 2 s.
fn run(end: u64, volumes: &[(&str, &dyn Fn(u64) -> u64)]) -> Record {
    let volumes: Vec<_> = volumes.iter().map(|(name, answers)| (*name, windows(end, answers))).collect();
    let mut record = record(&volumes);
    record.header.duration_us = end * 1_000_000;
    record.header.targets.fill(Bandwidth::new(500 * 4096).map(Target::Throughput));
    record
}

#[test]
fn a_change_is_judged_when_it_has_settled() {
    // For a minute after each beginning everything is wrong.
    let settled = |second: u64| !(second <= 60 || (180..=240).contains(&second));
    let light = |second| if settled(second) { 950 } else { 0 };
    let heavy = |second| if settled(second) && second > 180 { 990 } else { 950 };
    let records = records(vec![("maestro", run(360, &[("light", &light), ("heavy", &heavy)]))]);
    close(value(&records, "maestro-priority", "difference-before"), 0.0);
    close(value(&records, "maestro-priority", "shortfall-ratio"), 5.0);
}

#[test]
fn an_allocation_has_followed_when_it_is_most_of_its_way_in_the_sixth_interval() {
    let mut record = run(400, &[("light", &|_| 1_000), ("bursty", &|_| 1_000)]);
    // The workload's bound is 10 requests in quiet times and 30 in bursts. It gets to 20 in the fifth
    // interval of a burst, and to 30 in the eighth.
    let bound = |at: u64, requests| Bound { at_us: at * 1_000_000, requests };
    record.bounds[1] = (0..10)
        .flat_map(|turn| [bound(40 * turn, 10), bound(40 * turn + 29, 20), bound(40 * turn + 34, 30)])
        .collect();
    let records = records(vec![("maestro", record)]);
    close(value(&records, "maestro-bursts", "burst-followed"), 50.0);
    close(value(&records, "maestro-bursts", "end-followed"), 100.0);
}

#[test]
fn a_port_that_is_left_keeps_no_share_but_the_least() {
    let names =
        ["light1/0", "light1/1", "light1/2", "light1/3", "light2/0", "light2/1", "light2/2", "light2/3"];
    let volumes: Vec<(&str, &dyn Fn(u64) -> u64)> =
        names.iter().map(|name| (*name, &(|_| 100_u64) as &dyn Fn(u64) -> u64)).collect();
    let mut record = run(420, &volumes);
    for (place, bounds) in record.bounds.iter_mut().enumerate() {
        let leaves = if place < 4 { 280 } else { 140 };
        let after = if place % 2 == 0 { 27 } else { 1 };
        let bound = |at: u64, requests| Bound { at_us: at * 1_000_000, requests };
        *bounds = vec![bound(0, 14), bound(leaves + 8, after)];
    }
    let records = records(vec![("maestro", record)]);
    close(value(&records, "maestro-ports", "share-off-1"), 0.0);
    close(value(&records, "maestro-ports", "share-off-3"), 50.0 - 100.0 * 27.0 / 56.0);
    close(value(&records, "maestro-ports", "light1-moved"), 0.0);
}

#[test]
fn a_share_of_nothing_counts_as_one_interval() {
    let loads = |latency_ms: u64| {
        let oltp: Vec<_> = (1..=10).map(|number| window(2 * number, 100, 100, latency_ms)).collect();
        let mut record = record(&[("dp", windows(20, |_| 1_000)), ("oltp", oltp)]);
        record.header.targets[1] = Some(Target::Latency(Span::from_millis(50)));
        record
    };
    let records = records(vec![("maestro", loads(40)), ("none", loads(90))]);
    close(value(&records, "maestro-oltp", "oltp-met-without"), 0.0);
    close(value(&records, "maestro-oltp", "oltp-met-gain"), 10.0);
    close(value(&records, "maestro-oltp", "dp-loss"), 0.0);
}
