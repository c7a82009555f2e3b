//! Claims about the figures of Façade's claims, computed from records made by hand.

use crate::claims;
use crate::curve::{Curve, CurvePoint};
use crate::run::Window;
use crate::study::testing::{record, records, window};
use crate::study::{Figure, Records};

fn value(records: &Records, claim: &str, name: &str) -> Option<f64> {
    let figures: Vec<Figure> = claims::claim(claim).expect("a claim")(records);
    figures.into_iter().find(|figure| figure.name == name).expect("a figure of the claim").value
}

fn close(value: Option<f64>, expected: f64) {
    assert!(value.is_some_and(|value| (value - expected).abs() < 1e-9), "{value:?} is not {expected}");
}

/// Five seconds on, five seconds off, twice; the means of the on-windows.
fn bursty(means_ms: [u64; 5]) -> Vec<Window> {
    let on = |from: u64| means_ms.iter().zip(from..).map(|(mean, second)| window(second, 200, 200, *mean));
    let off = |from: u64| (from..from + 5).map(|second| window(second, 0, 0, 0));
    on(1).chain(off(6)).chain(on(11)).chain(off(16)).collect()
}

#[test]
fn isolation_1_counts_on_windows_and_the_pauses_in_which_the_backlog_is_drained() {
    // VSD2 falls behind by 100 requests in each second of a burst. It catches up in the first pause, and does
    // not in the second.
    let steady = (1..=20).map(|second| match second {
        1..=5 | 11..=15 => window(second, 500, 400, 900),
        6..=10 => window(second, 500, 600, 900),
        _ => window(second, 500, 500, 900),
    });
    let vsd2: Vec<_> = steady.collect();
    let records = records(vec![
        ("none", record(&[("vsd1", bursty([60, 60, 60, 40, 40])), ("vsd2", vsd2.clone())])),
        ("facade", record(&[("vsd1", bursty([60, 40, 40, 40, 40])), ("vsd2", vsd2)])),
    ]);
    let id = "facade-isolation-1";
    close(value(&records, id, "vsd1-missed-without"), 60.0);
    close(value(&records, id, "vsd1-met"), 80.0);
    close(value(&records, id, "vsd2-caught-up"), 100.0);
}

#[test]
fn multiplexing_allows_one_late_window_at_the_start_of_a_burst_and_says_where_it_was() {
    let greedy = |rate: u64| (1..=20).map(|second| window(second, rate, rate, 70)).collect::<Vec<_>>();
    let run = |means| {
        records(vec![
            ("separate-vsd2", record(&[("vsd2", greedy(800))])),
            ("shared", record(&[("vsd1", bursty(means)), ("vsd2", greedy(1_000))])),
        ])
    };
    let id = "facade-multiplexing";
    let first = run([60, 40, 40, 40, 40]);
    close(value(&first, id, "vsd2-gain"), 1.25);
    close(value(&first, id, "vsd1-late-windows"), 1.0);
    close(value(&first, id, "vsd1-late-after-first"), 0.0);
    close(value(&run([40, 60, 40, 40, 40]), id, "vsd1-late-after-first"), 1.0);
}

#[test]
fn provisioning_takes_the_number_of_disks_from_which_on_the_target_is_kept() {
    let with = |disks: f64, mean_ms: u64| {
        let mut record = record(&[("vsd1", bursty([mean_ms; 5]))]);
        record.header.value = Some(disks);
        record
    };
    let records = records(vec![
        ("facade@3", with(3.0, 60)),
        ("facade@4", with(4.0, 40)),
        ("facade@8", with(8.0, 40)),
        ("none@3", with(3.0, 40)),
        ("none@4", with(4.0, 60)),
        ("none@8", with(8.0, 40)),
    ]);
    let id = "facade-provisioning";
    close(value(&records, id, "disks-with"), 4.0);
    close(value(&records, id, "disks-without"), 8.0);
    close(value(&records, id, "disks-ratio"), 50.0);
}

#[test]
fn slo_leaves_out_the_rates_that_a_dedicated_array_cannot_serve_within_the_promise() {
    let point = |offered_iops: f64, mean_us: f64| CurvePoint {
        offered_iops,
        arrived_iops: offered_iops,
        answered_iops: offered_iops,
        read_us: mean_us,
        write_us: mean_us,
        mean_us,
    };
    let steps: Vec<_> = [(1, 40), (2, 40), (3, 45), (4, 45), (5, 90), (6, 90)]
        .into_iter()
        .map(|(second, mean_ms)| window(second, 100, 100, mean_ms))
        .collect();
    let mut records = records(vec![("facade", record(&[("vsd", steps)]))]);
    let points = vec![point(50.0, 10_000.0), point(100.0, 20_000.0), point(150.0, 70_000.0)];
    let curve = Curve { seed: 1, commit: String::new(), program: String::new(), hash: String::new(), points };
    records.curves.insert("dedicated".to_owned(), curve);
    close(value(&records, "facade-slo", "windows-met"), 100.0);
    close(value(&records, "facade-slo", "worst-step-over-slo"), 0.9);
    close(value(&records, "facade-slo", "top-steps-most-below-slo"), 20.0);
}
