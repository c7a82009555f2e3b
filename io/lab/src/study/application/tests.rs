//! Claims about the figures of applications.

use weir_model::{Bandwidth, Span};

use super::*;
use crate::run::Bound;
use crate::study::testing::{record, window};

fn close(value: Option<f64>, expected: f64) {
    assert!(value.is_some_and(|value| (value - expected).abs() < 1e-9), "{value:?} is not {expected}");
}

fn with_target(windows: Vec<Window>, target: Target) -> Record {
    let mut record = record(&[("db", windows)]);
    record.header.targets[0] = Some(target);
    record
}

#[test]
fn performance_is_throughput_over_target_or_target_over_latency() {
    let windows = vec![window(1, 100, 100, 40), window(2, 100, 50, 80), window(3, 0, 50, 20)];
    let throughput = with_target(windows.clone(), Target::Throughput(Bandwidth::new(409_600).unwrap()));
    let y = |record: &Record| Application::of(record, "db").unwrap().intervals();
    let of = |record: &Record, number: usize| y(record)[number].performance;
    close(of(&throughput, 0), 1.0);
    close(of(&throughput, 1), 0.5);
    let latency = with_target(windows, Target::Latency(Span::from_millis(40)));
    close(of(&latency, 1), 0.5);
    close(of(&latency, 2), 2.0);
    close(share_at_least(&y(&latency), 1.0), 200.0 / 3.0);
}

#[test]
fn who_waits_for_an_answer_gets_nothing_and_who_asks_for_nothing_has_no_performance() {
    let windows = vec![window(1, 5, 0, 0), window(2, 0, 5, 10), window(3, 0, 0, 0)];
    let record = with_target(windows, Target::Latency(Span::from_millis(10)));
    let y: Vec<_> = Application::of(&record, "db").unwrap().intervals();
    assert_eq!(y.iter().map(|y| y.performance).collect::<Vec<_>>(), [Some(0.0), Some(1.0), None]);
}

#[test]
fn several_ports_are_one_application() {
    let mut record = record(&[
        ("a/0", vec![window(2, 100, 100, 10)]),
        ("a/1", vec![window(2, 100, 300, 30)]),
        ("ab", vec![window(2, 100, 100, 10)]),
    ]);
    let bound = |at_us, requests| Bound { at_us, requests };
    record.bounds[0] = vec![bound(0, 10), bound(500_000, 20), bound(2_000_000, 1)];
    record.bounds[1] = vec![bound(0, 5)];
    let application = Application::of(&record, "a").unwrap();
    let [interval] = application.intervals()[..] else { panic!("one window is one interval") };
    close(interval.latency_ms, 25.0);
    close(Some(interval.throughput), 400.0 * 4096.0 / 2.0);
    close(Some(interval.allocation), 25.0);
    assert_eq!(application.bounds_at(2.0), [1.0, 5.0]);
    assert!(Application::of(&record, "b").is_none());
}

#[test]
fn intervals_between_two_instants_lie_wholly_within() {
    let windows = (1..=6).map(|number| window(2 * number, 100, 100, 10)).collect();
    let record = record(&[("db", windows)]);
    let within = Application::of(&record, "db").unwrap().between(3.0, 10.0);
    assert_eq!(within.iter().map(|interval| interval.end).collect::<Vec<_>>(), [6.0, 8.0, 10.0]);
}

#[test]
fn shortfalls_are_compared_by_their_means() {
    let of = |values: &[f64]| -> Vec<Interval> {
        let interval = |y: &f64| Interval {
            end: 0.0,
            throughput: 0.0,
            latency_ms: None,
            performance: Some(*y),
            allocation: 0.0,
        };
        values.iter().map(interval).collect()
    };
    close(shortfall_ratio(&of(&[0.5, 0.7]), &of(&[0.8, 1.0])), 4.0);
    assert_eq!(shortfall_ratio(&of(&[0.5]), &of(&[1.1])), None);
    close(difference(&of(&[0.5, 0.7]), &of(&[0.6, 0.4])), 0.2);
    close(median([3.0, 1.0, 2.0]), 2.0);
}
