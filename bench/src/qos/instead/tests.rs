//! From rounds to verdicts.

use super::super::super::clients::{LoadReport, Second};
use super::super::super::status::{GatewayView, Windows};
use super::*;

fn phase(met: u64, missed: u64, hog_iops: f64) -> Phase {
    let report = |iops| LoadReport { iops, mean_us: 100.0, p50_us: 100.0, p99_us: 300.0 };
    let windows = Windows { met, missed, ..Windows::default() };
    let second = |mean_us| Second { completed: 500, mean_us: Some(mean_us) };
    Phase {
        gateway: GatewayView { windows, mean_us: 100.0, p50_us: 128.0, p99_us: 512.0 },
        victim: report(500.0),
        victim_seconds: vec![second(100.0), second(401.0)],
        hog: Some(report(hog_iops)),
    }
}

fn outcome(promise: (u64, u64, f64), depth: (u64, u64, f64), cap: (u64, u64, f64)) -> Outcome {
    let phases = [
        (ALONE, (0, 0, f64::NAN)),
        (WITHOUT, (0, 400, 200.0)),
        (PROMISE, promise),
        (DEPTH, depth),
        (CAP, cap),
        (QEMU, (0, 0, 80.0)),
    ];
    let phases = phases.map(|(of, (met, missed, hog))| (of, phase(met, missed, hog)));
    let change_ms = BTreeMap::from([(PROMISE, Some(50.0)), (DEPTH, None)]);
    let round = Round { slo_us: 400, phases: phases.into(), change_ms };
    let best = Best { depth: 8, cap_iops: 90, qemu_iops: 80 };
    let measured = Measured { name: CASES[0].name, best, rounds: vec![round] };
    Outcome { cases: vec![measured], without_bfq: Some("no scheduler of that name".to_owned()) }
}

#[test]
fn the_law_is_held_against_the_better_of_the_static_settings() {
    let rows = outcome((398, 2, 100.0), (400, 0, 104.0), (300, 100, 190.0)).rows();
    assert!(rows[0].what.ends_with("beside best depth 8"), "{}", rows[0].what);
    assert!((rows[0].compared.unwrap().value + 0.5).abs() < 1e-9);
    assert_eq!((rows[0].met(), rows[1].met()), (Some(true), Some(true)));
    let rows = outcome((397, 3, 100.0), (399, 1, 104.0), (399, 1, 106.0)).rows();
    assert!(rows[1].what.ends_with("beside best cap 90 IO/s"), "{}", rows[1].what);
    assert_eq!((rows[0].met(), rows[1].met()), (Some(true), Some(false)));
}

#[test]
fn few_windows_are_said_to_be_few() {
    let rows = outcome((20, 0, 100.0), (20, 0, 100.0), (20, 0, 100.0)).rows();
    assert!(rows[0].what.contains("(20 of 300)"), "{}", rows[0].what);
}

#[test]
fn the_table_has_a_row_for_each_phase_and_says_what_is_missing() {
    let table = outcome((398, 2, 100.0), (400, 0, 104.0), (300, 100, 190.0)).table();
    for of in [ALONE, WITHOUT, PROMISE, "best depth 8", "best cap 90 IO/s", "QEMU throttle group 80 IO/s"] {
        assert_eq!(table.lines().filter(|line| line.contains(&format!("| {of} "))).count(), 1, "{table}");
    }
    assert!(table.contains("BFQ is not on this kernel, or cannot be used: no scheduler of that name."));
    assert!(table.contains(" never |"), "{table}");
}
