//! Claims about the figures of packet delay's claims, computed from records made by hand.

use crate::claims;
use crate::delay::{Burst, DelayChange, Job, Measured, Sample};
use crate::study::Records;
use crate::study::testing::records;

fn value(runs: &[(&str, &Measured)], claim: &str, name: &str) -> Option<f64> {
    let measured = runs.iter().map(|(name, run)| ((*name).to_owned(), (*run).clone())).collect();
    let records = Records { measured, ..records(Vec::new()) };
    let figures = claims::claim(claim).expect("a claim")(&records);
    figures.into_iter().find(|figure| figure.name == name).expect("a figure of the claim").value
}

fn close(value: Option<f64>, expected: f64) {
    assert!(value.is_some_and(|value| (value - expected).abs() < 1e-6), "{value:?} is not {expected}");
}

/// A run of so many seconds, in which `sample` says what happened in each interval of an initiator that reads
/// and of two that write.
fn run(seconds: u64, sample: impl Fn(u64) -> Sample) -> Measured {
    let samples = (1..=seconds * 10).map(|tick| Sample { at_us: tick * 100_000, ..sample(tick) });
    Measured {
        initiators: ["reader", "writer1", "writer2"].map(str::to_owned).to_vec(),
        samples: samples.collect(),
        ..Measured::default()
    }
}

/// Two bursts, from 5 to 15 s and from 20 to 30 s.
fn bursts(measured: &mut Measured) {
    measured.worked = vec![Burst { initiator: 0, from_us: 0, to_us: 35_000_000 }];
    for initiator in [1, 2] {
        let at = [(5, 15), (20, 30)].map(|(from, to)| (from * 1_000_000, to * 1_000_000));
        measured.worked.extend(at.map(|(from_us, to_us)| Burst { initiator, from_us, to_us }));
    }
}

fn is_on(tick: u64) -> bool {
    matches!(tick, 51..=150 | 201..=300)
}

/// A law whose EWMA is 12 ms in so many ticks of each second, and 9 ms in the others. The delay ends so many
/// ticks after each burst.
fn law(slow: u64, ends: u64) -> Measured {
    let mut measured = run(35, |tick| Sample {
        reads: 6,
        read_us: 60_000,
        ewma_us: if tick % 10 < slow { 12_000 } else { 9_000 },
        threshold_us: 10_000,
        delay_us: if is_on(tick) || is_on(tick - tick.min(ends)) { 500 } else { 0 },
        members: if is_on(tick) { vec![1, 2] } else { vec![] },
        read: vec![0; 3],
        written: vec![0, 1_000_000, 1_000_000],
        ..Sample::default()
    });
    bursts(&mut measured);
    measured
}

#[test]
fn a_threshold_is_judged_from_the_third_second_of_a_burst_on() {
    let kept = |slow| value(&[("10", &law(slow, 0))], "delay-pid", "kept-10");
    close(kept(0), 100.0);
    close(kept(1), 90.0);
    close(kept(10), 0.0);
    close(value(&[("none", &law(0, 0))], "delay-pid", "wait-without"), 10.0);
    close(value(&[("none", &law(0, 0))], "delay-pid", "written-without"), 20.0);
}

#[test]
fn the_end_of_a_delay_is_that_of_the_slowest_pause_and_needs_a_delay_before() {
    let runs = |ends: [u64; 3]| ends.map(|ends| law(0, ends));
    let zero = |[a, b, c]: &[Measured; 3]| {
        value(&[("20", a), ("15", b), ("10", c)], "delay-pid", "zero-after-pause")
    };
    close(zero(&runs([0, 0, 0])), 0.0);
    close(zero(&runs([0, 7, 3])), 800.0);
    let mut never = runs([0, 0, 0]);
    never[1].samples.iter_mut().for_each(|sample| sample.delay_us = 0);
    assert_eq!(zero(&never), None, "who delays nobody has nothing to end");
}

#[test]
fn the_members_are_exactly_the_writers_in_bursts_and_nobody_in_pauses() {
    let exact = law(0, 0);
    let figure = |found: &Measured, name: &str| {
        let runs = [("found-20", found), ("found-15", &exact), ("found-10", &exact)];
        value(&runs, "delay-auto", name)
    };
    close(figure(&exact, "members-in-bursts"), 100.0);
    close(figure(&exact, "members-in-pauses"), 100.0);
    close(figure(&exact, "follows-load"), 100.0);
    let mut with_reader = exact.clone();
    with_reader.samples[130].members = vec![0, 1, 2];
    with_reader.samples[199].members = vec![1];
    assert!(figure(&with_reader, "members-in-bursts").is_some_and(|share| share < 100.0));
    close(figure(&with_reader, "members-in-pauses"), 90.0);
}

#[test]
fn an_initiator_slows_down_and_recovers_by_its_rate_in_the_second_after_the_first() {
    // Initiator 1 writes 100 of 200 kB in each interval from 10 s on, and 200 again from 20 s on; 2 gains 80.
    let mut measured = run(30, |tick| {
        let is_delayed = (101..=200).contains(&tick);
        let written = if is_delayed { vec![0, 100_000, 280_000] } else { vec![0, 200_000, 200_000] };
        Sample { read: vec![0; 3], written, ..Sample::default() }
    });
    measured.initiators.remove(0);
    measured.samples.iter_mut().for_each(|sample| {
        sample.read.remove(0);
        sample.written.remove(0);
    });
    let change = |at_us, delay_us| DelayChange { initiator: 0, at_us, delay_us };
    measured.changes = vec![change(10_000_000, 40_000), change(20_000_000, 0)];
    let mut without = measured.clone();
    without.tcp.timeouts = 1;
    let runs = [
        ("write", &measured),
        ("write-undelayed", &without),
        ("read", &measured),
        ("read-undelayed", &without),
    ];
    let figure = |name| value(&runs, "delay-selective", name);
    close(figure("slowed-writing"), 50.0);
    close(figure("recovered-writing"), 100.0);
    close(figure("gained-writing"), 80.0);
    close(figure("timeouts"), -1.0);
}

#[test]
fn a_curve_falls_only_if_it_falls_at_each_step_and_half_is_found_between_two_delays() {
    let jobs = |took_ms: &[(u64, u64)]| Measured {
        jobs: took_ms
            .iter()
            .map(|&(delay_ms, took_ms)| Job {
                delay_us: delay_ms * 500,
                bytes: 1_000_000,
                took_us: took_ms * 1_000,
            })
            .collect(),
        ..Measured::default()
    };
    let straight = jobs(&[(0, 100), (2, 200), (10, 600), (19, 1050)]);
    let figure = |run: &Measured, name| value(&[("read", run), ("read-4", run)], "delay-curve", name);
    close(figure(&straight, "reading-0"), 10.0);
    close(figure(&straight, "reading-falls"), 100.0);
    close(figure(&straight, "reading-left"), 100.0 * 100.0 / 1050.0);
    close(figure(&straight, "reading-line"), 1.0);
    close(figure(&straight, "reading-4-half"), 1.0);
    close(figure(&jobs(&[(0, 100), (2, 200), (10, 190), (19, 1050)]), "reading-falls"), 100.0 * 2.0 / 3.0);
}

#[test]
fn a_wait_belongs_to_the_delay_that_was_in_force_and_had_settled() {
    let mut measured = run(40, |tick| Sample {
        reads: 1,
        read_us: if (131..=200).contains(&tick) { 20_000 } else { 40_000 },
        read: vec![0; 3],
        written: vec![0; 3],
        ..Sample::default()
    });
    let change = |at_us, delay_us| DelayChange { initiator: 1, at_us, delay_us };
    measured.changes = vec![change(10_000_000, 4_600), change(20_000_000, 0), change(30_000_000, 9_600)];
    let figure = |name| value(&[("delayed", &measured), ("none", &measured)], "delay-relief", name);
    close(figure("wait-0"), 40.0);
    close(figure("wait-4.6"), 20.0);
    close(figure("fall-4.6"), 50.0);
    close(figure("fall-9.6"), -100.0);
}
