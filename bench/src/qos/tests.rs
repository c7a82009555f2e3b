//! From phases to verdicts.

use super::super::clients::LoadReport;
use super::*;

fn phase(met: u64, missed: u64, hog_iops: Option<f64>) -> Phase {
    let report = |iops| LoadReport { iops, mean_us: 1.0, p50_us: 2.0, p99_us: 3.0 };
    let windows = Windows { met, missed, ..Windows::default() };
    let gateway = GatewayView { windows, mean_us: 150.0, p50_us: 256.0, p99_us: 512.0 };
    Phase { gateway, victim: report(500.0), victim_seconds: Vec::new(), hog: hog_iops.map(report) }
}

fn measured(rounds: &[((u64, u64), f64)]) -> Measured {
    let round = |((met, missed), hog): &((u64, u64), f64)| Round {
        alone: phase(5, 0, None),
        slo_us: 600,
        without: phase(0, 15, Some(100.0)),
        facade: phase(*met, *missed, Some(*hog)),
        promise: phase(15, 0, Some(90.0)),
    };
    let case = &CASES[0];
    let rounds = rounds.iter().map(round).collect();
    Measured { name: case.name, bars: (case.windows, case.hog_share), rounds }
}

#[test]
fn windows_are_judged_over_all_rounds_and_the_hog_by_the_median() {
    let rows = measured(&[((15, 0), 75.0), ((13, 2), 10.0), ((15, 0), 80.0)]).rows();
    assert!((rows[0].weir.value - 95.6).abs() < 0.1, "43 of 45: {:?}", rows[0].weir);
    assert_eq!(rows[0].met(), Some(true));
    assert!((rows[1].compared.unwrap().value - 75.0).abs() < 1e-9);
    assert_eq!(rows[1].met(), Some(true));
    assert!((rows[3].compared.unwrap().value - 90.0).abs() < 1e-9, "the law of promises");
}

#[test]
fn a_victim_without_windows_has_not_been_protected() {
    assert_eq!(measured(&[((0, 0), 75.0)]).rows()[0].met(), Some(false));
}

#[test]
fn the_table_has_a_row_for_each_phase() {
    let outcome = Outcome { cases: vec![measured(&[((15, 0), 75.0)])] };
    let table = outcome.table();
    for phase in [ALONE, WITHOUT, FACADE, PROMISE] {
        assert_eq!(table.lines().filter(|line| line.contains(&format!("| {phase} "))).count(), 1, "{table}");
    }
}

#[test]
fn a_promise_is_a_whole_number_of_microseconds() {
    assert_eq!((whole_micros(611.5), whole_micros(0.2), whole_micros(f64::NAN)), (612, 1, 1));
}
