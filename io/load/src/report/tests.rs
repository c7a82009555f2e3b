//! Claims about reports: field names are an interface.

use weir_model::{Instant, Iops};

use super::*;
use crate::record::Recorder;

fn report(spec: &LoadSpec) -> Report {
    let at = |ms| Instant::ORIGIN + Span::from_millis(ms);
    let mut recorder = Recorder::new(at(0));
    recorder.close(0);
    for ms in 1..=1_000 {
        recorder.completed(at(ms), Class::Read, Span::from_micros(ms));
    }
    recorder.completed(at(1_000), Class::Write, Span::from_micros(2_500));
    recorder.failed(at(1_000), error::IO);
    recorder.failed(at(1_000), 999);
    recorder.late(Span::from_micros(1_500));
    let (total, intervals, elapsed) = recorder.finish(Some(at(2_000)), 1_003);
    let export =
        RemoteExport { name: String::new(), size: 1 << 20, flags: 1, block: None, structured_replies: false };
    Report::new(spec, &export, Measured { total, intervals, elapsed, unsent: 7, unanswered: 3 })
}

fn spec() -> LoadSpec {
    let rate = Iops::new(500.0).unwrap();
    let target = "nbd://host/disk".parse().unwrap();
    LoadSpec {
        pace: Pace::Open { rate, arrivals: Arrival::Poisson },
        read_percent: 99,
        ..LoadSpec::new(target)
    }
}

#[test]
fn json_names_stay_what_they_are() {
    let json = serde_json::to_value(report(&spec())).unwrap();
    let keys =
        |value: &serde_json::Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" ");
    assert_eq!(
        keys(&json),
        "bandwidth_mib_s block_bytes completed connections depth elapsed_s errors errors_by_name export_bytes flush \
         intervals late late_max_us offered pace pattern rate_iops read read_percent seed structured_replies target \
         target_rate_iops unanswered unsent write"
    );
    assert_eq!(keys(&json["read"]), "bandwidth_mib_s completed latency rate_iops");
    assert_eq!(keys(&json["read"]["latency"]), "max_us mean_us p50_us p90_us p99_9_us p99_us");
    let row = "completed errors max_us mean_us offered p50_us p99_us t_s";
    assert_eq!(keys(&json["intervals"][0]), row);
    assert_eq!(json["errors_by_name"], serde_json::json!({ "EIO": 1, "error 999": 1 }));
    assert!(json["flush"].is_null());
}

#[test]
fn rates_are_over_the_time_that_was_measured_and_percentiles_are_those_of_the_latencies() {
    let report = report(&spec());
    let read = report.read.as_ref().unwrap();
    assert_eq!((report.completed, read.completed, report.errors), (1_001, 1_000, 2));
    assert!((read.rate_iops - 500.0).abs() < 1e-9 && (report.rate_iops - 500.5).abs() < 1e-9);
    assert!((read.bandwidth_mib_s - 500.0 * 4096.0 / 1048576.0).abs() < 1e-9);
    for (found, expected) in [
        (read.latency.mean_us, 500.5),
        (read.latency.p50_us, 500.0),
        (read.latency.p90_us, 900.0),
        (read.latency.p99_us, 990.0),
        (read.latency.p99_9_us, 999.0),
        (read.latency.max_us, 1000.0),
    ] {
        assert!((found / expected - 1.0).abs() < 2e-3, "{found} instead of {expected}");
    }
}

#[test]
fn the_text_for_people_has_units_and_says_what_was_not_served() {
    let text = report(&spec()).to_string();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[0],
        "nbd://host/disk: poisson 500 IO/s, 1 connection, depth 32, random of 4 KiB, 99 % reads, seed 1"
    );
    assert_eq!(lines[1], "2.000 s: 1001 completed, 500 IO/s, 2.0 MiB/s, 2 errors (1 EIO, 1 error 999)");
    assert_eq!(lines[2], "1003 offered, 1 sent late (at most 1.50 ms), 7 never sent");
    assert_eq!(lines[3], "3 not answered in time");
    assert!(lines[4].contains("p99.9"));
    assert!(lines[5].starts_with("read ") && lines[5].contains(" us"));
    assert!(lines[6].starts_with("write") && lines[6].contains("2.50 ms"));
    let closed = report(&LoadSpec { pace: Pace::Closed, ..spec() }).to_string();
    assert!(closed.contains("closed loop") && !closed.contains("never sent"));
}
