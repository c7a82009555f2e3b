//! Claims about the meaning of the words.

use super::testing::{record, window};
use super::*;

fn close(value: Option<f64>, expected: f64) {
    assert!(value.is_some_and(|value| (value - expected).abs() < 1e-9), "{value:?} is not {expected}");
}

#[test]
fn attainment_is_of_active_windows_that_had_a_target() {
    let out = Window { verdict: Some(Verdict::OutOfContract), target_us: None, ..window(4, 900, 100, 10) };
    let windows = vec![
        window(1, 100, 100, 40),
        window(2, 100, 100, 60),
        window(3, 0, 0, 0),
        out,
        window(5, 0, 600, 30),
        window(6, 5, 203, 60),
    ];
    let record = record(&[("db", windows)]);
    let view = View::of(&record, "db").unwrap();
    assert_eq!(view.active().len(), 5);
    close(view.attainment(), 50.0);
    close(view.out_of_contract(), 20.0);
}

#[test]
fn a_window_with_few_requests_counts_only_while_something_waits() {
    let windows = vec![window(1, 15, 5, 10), window(2, 0, 5, 99), window(3, 0, 5, 99), window(4, 3, 3, 99)];
    let record = record(&[("db", windows)]);
    let ends: Vec<_> = View::of(&record, "db").unwrap().active().iter().map(|window| window.end_us).collect();
    assert_eq!(ends, [1_000_000, 2_000_000]);
}

#[test]
fn the_warm_up_is_not_judged_but_what_waited_in_it_still_waits() {
    let mut record = record(&[("db", vec![window(1, 50, 10, 99), window(2, 0, 10, 40)])]);
    record.header.warm_up_us = 1_000_000;
    let view = View::of(&record, "db").unwrap();
    close(view.attainment(), 100.0);
    assert_eq!(view.backlogs().map(|(_, backlog)| backlog).collect::<Vec<_>>(), [40, 30]);
}

#[test]
fn bursts_are_rows_of_windows_with_offers() {
    let offers = [0, 9, 9, 0, 0, 9, 0, 9];
    let windows = offers.iter().zip(1..).map(|(offered, second)| window(second, *offered, 0, 0)).collect();
    let record = record(&[("db", windows)]);
    let lengths: Vec<_> = View::of(&record, "db").unwrap().bursts().iter().map(Vec::len).collect();
    assert_eq!(lengths, [2, 1, 1]);
}

#[test]
fn rate_isolation_and_work_conservation_compare_what_was_answered() {
    let with = record(&[("db", vec![window(1, 100, 50, 9), window(2, 100, 150, 9)])]);
    let without = record(&[("db", vec![window(1, 100, 400, 9)])]);
    let view = View::of(&with, "db").unwrap();
    close(Some(view.rate()), 200.0 / 60.0);
    close(view.isolation(), 75.0);
    close(work_conservation(&with, &without), 50.0);
}

#[test]
fn a_mean_over_windows_counts_each_request_once() {
    let windows = [window(1, 0, 100, 10), window(2, 0, 300, 50), window(3, 0, 0, 0)];
    close(mean_latency_ms(&windows), 40.0);
    assert_eq!(mean_latency_ms(&windows[2..]), None);
}
