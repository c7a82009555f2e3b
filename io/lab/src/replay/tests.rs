//! Claims about replays in simulated time, on a server that takes 1 ms for each request.

use std::num::NonZeroU32;

use weir_engine::{Control, EngineConfig, VolumeConfig};
use weir_model::{IoKind, Iops, Slo, SloPoint};
use weir_sim::{ArrayOptions, MemberOptions, StationOptions, VolumeScenario};

use super::*;

const MIB: u64 = 1 << 20;

fn slo(limit: Span) -> Slo {
    let up_to = Iops::new(10_000.0).unwrap();
    Slo::new(vec![SloPoint { up_to, read: limit, write: limit }]).unwrap()
}

fn scenario(slos: &[Option<Slo>]) -> Scenario {
    let service_time = Span::from_millis(1);
    let station = StationOptions { servers: NonZeroU32::MIN, service_time, exponential: false };
    let volume = |(number, slo): (u64, &Option<Slo>)| VolumeScenario {
        name: number.to_string(),
        config: VolumeConfig { slo: slo.clone(), ..VolumeConfig::default() },
        start: number * 8 * MIB,
        size: 8 * MIB,
        phases: Vec::new(),
        repeat: None,
        changes: Vec::new(),
    };
    Scenario {
        seed: 1,
        duration: Span::from_secs(1),
        engine: EngineConfig { control: Control::None, ..EngineConfig::default() },
        array: ArrayOptions::bare(MemberOptions::Station(station), 64 * MIB),
        volumes: (0..).zip(slos).map(volume).collect(),
        faults: Vec::new(),
    }
}

/// A file with a trace of `count` requests, one every `every_us` microseconds. Every other request is a
/// write.
fn recording(count: u64, every_us: u64) -> (tempfile::TempDir, Recording) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace.csv");
    let line =
        |n: u64| format!("{},{},{},4096\n", n * every_us, ["R", "W"][usize::from(n % 2 == 1)], n * 4096);
    std::fs::write(&path, (0..count).map(line).collect::<String>()).unwrap();
    (directory, Recording { path, format: None, skip_broken: false, speed: 1.0, duration: None })
}

fn run(recording: &Recording, slo: Option<Slo>) -> Outcome {
    let duration = recording.survey(|_| {}).unwrap().duration;
    let (trace, account) = recording.requests(8 * MIB).unwrap();
    let outcomes = simulate(scenario(&[slo]), vec![(0, trace)], duration).unwrap();
    assert_eq!(account.remarks().failure, None);
    outcomes.into_iter().next().unwrap()
}

#[test]
fn a_request_is_folded_into_the_volume_and_cut_off_at_its_end() {
    let folded = |offset, length| {
        let request = fold(TraceRequest { at: Span::ZERO, kind: IoKind::Read, offset, length }, MIB);
        (request.offset, request.length)
    };
    assert_eq!(folded(4096, 512), (4096, 512));
    assert_eq!(folded(5 * MIB + 4096, 512), (4096, 512));
    assert_eq!(folded(2 * MIB - 512, 4096), (MIB - 512, 512));
    let large = TraceRequest { at: Span::ZERO, kind: IoKind::Read, offset: 0, length: u32::MAX };
    assert_eq!(fold(large, u64::MAX).length, MAX_LENGTH);
}

#[test]
fn every_request_is_replayed_at_its_time_and_measured_by_its_kind() {
    let (_directory, recording) = recording(1_000, 2_000);
    let outcome = run(&recording, Some(slo(Span::from_millis(2))));
    assert_eq!((outcome.offered, outcome.errors, outcome.unanswered), (1_000, 0, 0));
    assert_eq!((outcome.read_ns.len(), outcome.write_ns.len()), (500, 500));
    assert!((outcome.read_ns.mean() / 1e6 - 1.0).abs() < 1e-3);
    assert_eq!(outcome.windows, Windows { met: 2, missed: 0, out_of_contract: 0 });
    assert!((outcome.rate_iops() - 500.0).abs() < 1.0, "{}", outcome.rate_iops());
}

#[test]
fn at_a_higher_speed_the_same_requests_come_closer_together() {
    let (_directory, recording) = recording(1_000, 2_000);
    // Twice what the server can do.
    let fast = Recording { speed: 4.0, ..recording };
    assert_eq!(fast.survey(|_| {}).unwrap().duration, Span::from_micros(499_500) + Span::from_nanos(1));
    let outcome = run(&fast, Some(slo(Span::from_millis(2))));
    assert_eq!(outcome.completed(), 1_000);
    assert!(outcome.both_ns().mean() > 200e6, "they have to wait");
    assert_eq!((outcome.windows.met, outcome.windows.missed), (0, 1));
    assert!(outcome.elapsed >= Span::from_secs(1));
}

#[test]
fn a_duration_ends_the_replay_before_the_trace_and_before_what_is_wrong_behind_it() {
    let (directory, recording) = recording(1_000, 2_000);
    let text = std::fs::read_to_string(&recording.path).unwrap();
    std::fs::write(&recording.path, text + "oops\n").unwrap();
    assert!(recording.survey(|_| {}).unwrap_err().to_string().contains(":1001: found \"oops\""));
    let half = Recording { duration: Some(Span::from_secs(1)), ..recording };
    assert_eq!(half.survey(|_| {}).unwrap().requests, 500);
    assert_eq!(run(&half, None).offered, 500);
    drop(directory);
}

#[test]
fn volumes_of_a_pool_wait_for_each_other_and_are_measured_apart() {
    let (_directory, recording) = recording(400, 4_000);
    let duration = recording.survey(|_| {}).unwrap().duration;
    let trace = || recording.requests(8 * MIB).unwrap().0;
    let outcomes =
        simulate(scenario(&[None, None, None]), vec![(0, trace()), (2, trace())], duration).unwrap();
    assert_eq!([0, 1, 2].map(|n: usize| outcomes[n].completed()), [400, 0, 400]);
    let mean_ms = |n: usize| outcomes[n].both_ns().mean() / 1e6;
    assert!((mean_ms(0) - 1.0).abs() < 1e-2 && (mean_ms(2) - 2.0).abs() < 2e-2, "{}", mean_ms(2));
}

#[test]
fn the_recordings_of_the_project_are_read_to_their_end() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces");
    for (name, requests) in [
        ("1and1-mysql", 80_793),
        ("1and1-web2", 268_663),
        ("windows11-boot", 172_287),
        ("rocksdb-ycsb-a", 64_189),
    ] {
        let path = folder.join(name).join(format!("{name}.csv.gz"));
        let recording = Recording { path, format: None, skip_broken: false, speed: 20.0, duration: None };
        let survey = recording.survey(|_| {}).unwrap();
        assert_eq!(
            (survey.format, survey.requests, survey.remarks),
            (Format::Csv, requests, Remarks::default())
        );
    }
}
