//! Runs as a whole: the same seed, the end, faults, changes, traces, and scenarios that are refused.

use std::num::NonZeroU32;

use weir_engine::{Control, EngineConfig, VolumeConfig};
use weir_model::{IoKind, Iops, Slo, SloPoint, Span, Verdict, VolumeId};

use super::*;
use crate::array::options::ArrayOptions;
use crate::member::MemberOptions;
use crate::raid::RaidLevel;
use crate::scenario::{Arrivals, Fault, FaultKind, Locality, Phase, TraceRequest, VolumeScenario, Workload};
use crate::station::StationOptions;
use crate::unit::options::UnitOptions;

const SIZE: u64 = 1 << 30;

/// Keeps all events.
#[derive(Default)]
struct Log(Vec<(Instant, Event)>);

impl Observer for Log {
    fn on_event(&mut self, now: Instant, event: &Event) {
        self.0.push((now, *event));
    }
}

const fn ms(millis: u64) -> Span {
    Span::from_millis(millis)
}

fn iops(rate: f64) -> Iops {
    Iops::new(rate).unwrap()
}

/// Four servers of 5 ms: 800 requests a second.
fn array() -> ArrayOptions {
    let servers = NonZeroU32::new(4).unwrap();
    let station = StationOptions { servers, service_time: ms(5), exponential: true };
    ArrayOptions::bare(MemberOptions::Station(station), SIZE)
}

fn volume(name: &str, arrivals: Arrivals) -> VolumeScenario {
    let sizes = vec![(4096, 1.0)];
    let workload =
        Some(Workload { arrivals, reads: 0.5, sizes, locality: Locality::Uniform, flush_every: None });
    VolumeScenario {
        name: name.to_owned(),
        config: VolumeConfig::default(),
        start: 0,
        size: SIZE,
        phases: vec![Phase { at: Span::ZERO, workload }],
        repeat: None,
        changes: Vec::new(),
    }
}

fn promise(latency: Span) -> VolumeConfig {
    let point = SloPoint { up_to: iops(1_000.0), read: latency, write: latency };
    VolumeConfig { slo: Some(Slo::new(vec![point]).unwrap()), ..VolumeConfig::default() }
}

/// A volume with a promise beside one that always has 50 requests outstanding.
fn beside_a_hog() -> Scenario {
    let victim =
        VolumeScenario { config: promise(ms(20)), ..volume("victim", Arrivals::Poisson(iops(200.0))) };
    let hog = volume("hog", Arrivals::Closed { threads: 50, think: Span::ZERO });
    Scenario {
        seed: 1,
        duration: Span::from_secs(3),
        engine: EngineConfig::default(),
        array: array(),
        volumes: vec![victim, hog],
        faults: Vec::new(),
    }
}

fn run(scenario: Scenario) -> (Outcome, Vec<(Instant, Event)>) {
    let mut log = Log::default();
    let outcome = World::new(scenario).run(&mut log).unwrap();
    (outcome, log.0)
}

fn fingerprint(scenario: Scenario) -> u64 {
    let mut fingerprint = Fingerprint::new();
    World::new(scenario).run(&mut fingerprint).unwrap();
    fingerprint.value()
}

#[test]
fn the_same_seed_gives_the_same_events_and_another_seed_others() {
    let (first, second) = (run(beside_a_hog()), run(beside_a_hog()));
    assert_eq!(format!("{first:?}"), format!("{second:?}"));
    assert_eq!(fingerprint(beside_a_hog()), fingerprint(beside_a_hog()));
    assert_ne!(fingerprint(beside_a_hog()), fingerprint(Scenario { seed: 2, ..beside_a_hog() }));
}

#[test]
fn every_request_is_answered_aborted_or_outstanding() {
    let removed = Fault { at: Span::from_secs(1), what: FaultKind::VolumeRemoved { volume: 1 } };
    for faults in [vec![], vec![removed]] {
        let aborts = !faults.is_empty();
        let (outcome, _) = run(Scenario { faults, ..beside_a_hog() });
        let Outcome { submitted, answered, failed, aborted, outstanding, .. } = outcome;
        assert_eq!(submitted, answered + failed + aborted + outstanding);
        assert!(answered > 1_000 && (aborted > 0) == aborts, "{outcome:?}");
    }
}

#[test]
fn a_run_ends_with_its_last_window_even_if_nothing_is_left_to_do() {
    let idle = VolumeScenario { phases: Vec::new(), ..volume("idle", Arrivals::Constant(iops(1.0))) };
    let (outcome, events) = run(Scenario { volumes: vec![idle], ..beside_a_hog() });
    assert_eq!(outcome, Outcome::default());
    let windows: Vec<u64> = events
        .iter()
        .filter(|(_, event)| matches!(event, Event::WindowClosed { .. }))
        .map(|(at, _)| at.as_nanos() / 1_000_000)
        .collect();
    assert_eq!(windows, [1_000, 2_000, 3_000]);
    let ticks = events.iter().filter(|(_, event)| matches!(event, Event::Controlled { .. })).count();
    assert_eq!(ticks, 60);
}

#[test]
fn a_volume_that_was_removed_is_not_heard_of_any_more() {
    let at = ms(1_234);
    let fault = Fault { at, what: FaultKind::VolumeRemoved { volume: 1 } };
    let (_, events) = run(Scenario { faults: vec![fault, fault], ..beside_a_hog() });
    let last_of = |wanted: VolumeId| {
        let of_wanted = events.iter().filter(|(_, event)| match event {
            Event::Finished { volume, .. } | Event::WindowEnded { volume, .. } => *volume == wanted,
            _ => false,
        });
        of_wanted.max_by_key(|(at, _)| *at).map(|(at, _)| at.since(Instant::ORIGIN)).unwrap()
    };
    assert!((at..at + ms(100)).contains(&last_of(VolumeId(1))));
    assert_eq!(last_of(VolumeId(0)), Span::from_secs(3));
}

#[test]
fn a_change_of_the_promise_holds_from_its_instant_on() {
    let mut scenario = beside_a_hog();
    scenario.volumes[0].changes = vec![(ms(1_500), promise(ms(90)))];
    let (_, events) = run(scenario);
    let targets: Vec<_> = events
        .iter()
        .filter_map(|(_, event)| match event {
            Event::WindowClosed { volume: VolumeId(0), window } => window.target,
            _ => None,
        })
        .collect();
    assert_eq!(targets, [ms(20), ms(90)], "requests of the last window are without an answer");
}

#[test]
fn without_control_nothing_waits_in_the_engine() {
    let engine = EngineConfig { control: Control::None, ..EngineConfig::default() };
    let (_, events) = run(Scenario { engine, ..beside_a_hog() });
    assert!(events.iter().all(|(_, event)| match event {
        Event::Finished { queued, .. } => queued.is_zero(),
        _ => true,
    }));
}

#[test]
fn a_disk_that_fails_costs_no_request_until_its_layout_survives_no_more() {
    let unit = UnitOptions { members: 3, raid: RaidLevel::Raid5, ..array().units[0].clone() };
    let redundant = ArrayOptions { units: vec![unit], ..array() };
    let fails = |at, disk| Fault { at, what: FaultKind::DiskFails { unit: 0, disk } };
    let rebuilt = |at| Fault { at, what: FaultKind::Rebuild { unit: 0 } };
    let failed = |faults| run(Scenario { array: redundant.clone(), faults, ..beside_a_hog() }).0.failed;
    assert_eq!(failed(vec![fails(ms(500), 1)]), 0);
    assert_eq!(failed(vec![fails(ms(500), 1), rebuilt(ms(600))]), 0);
    assert!(failed(vec![fails(ms(500), 1), fails(ms(600), 2)]) > 100);
}

#[test]
fn nothing_is_answered_while_the_array_stalls() {
    let (from, length) = (ms(1_000), ms(300));
    let stall = Fault { at: from, what: FaultKind::Stall(length) };
    let (_, events) = run(Scenario { faults: vec![stall], ..beside_a_hog() });
    let (from, to) = (Instant::ORIGIN + from, Instant::ORIGIN + from + length);
    let answered = events.iter().filter(|(_, event)| matches!(event, Event::Finished { .. }));
    let answered: Vec<Instant> = answered.map(|(at, _)| *at).collect();
    assert!(answered.iter().all(|at| *at <= from || *at >= to));
    assert!(answered.iter().any(|at| *at > to));
}

#[test]
fn a_trace_takes_the_place_of_the_phases() {
    let mut world = World::new(beside_a_hog());
    let request =
        |n: u64| TraceRequest { at: ms(10 * n), kind: IoKind::Write, offset: n << 40, length: 8192 };
    world.replay(1, Box::new((0..20).map(request)));
    let mut log = Log::default();
    world.run(&mut log).unwrap();
    let replayed = log.0.iter().filter(|(_, event)| match event {
        Event::Finished { volume, kind, length, .. } => {
            *volume == VolumeId(1) && *kind == IoKind::Write && *length == 8192
        }
        _ => false,
    });
    assert_eq!(replayed.count(), 20);
}

#[test]
fn a_scenario_that_makes_no_sense_is_refused_with_its_place() {
    let of = |change: fn(&mut Scenario)| {
        let mut scenario = beside_a_hog();
        change(&mut scenario);
        scenario.check().unwrap_err().to_string()
    };
    for (error, part) in [
        (of(|s| s.volumes[1].name = "victim".to_owned()), "volume \"victim\": another volume"),
        (of(|s| s.volumes[1].size += 1), "volume \"hog\": 1073741825 bytes from 0 on"),
        (of(|s| s.volumes[0].phases[0].workload.as_mut().unwrap().reads = 1.5), "share of reads is 1.5"),
        (
            of(|s| s.volumes[0].phases[0].workload.as_mut().unwrap().sizes.clear()),
            "phase 0: there must be sizes",
        ),
        (
            of(|s| s.volumes[0].phases[0].workload.as_mut().unwrap().locality = Locality::Zipf(0.0)),
            "phase 0: Zipf(0.0) must be",
        ),
        (
            of(|s| {
                let again = s.volumes[0].phases[0].clone();
                s.volumes[0].phases.push(again);
            }),
            "phase 1 begins at 0s",
        ),
        (
            of(|s| s.faults.push(Fault { at: Span::ZERO, what: FaultKind::VolumeRemoved { volume: 2 } })),
            "fault 0: there is no volume 2; there are 2",
        ),
        (
            of(|s| s.faults.push(Fault { at: Span::ZERO, what: FaultKind::DiskFails { unit: 0, disk: 1 } })),
            "fault 0: there is no disk 1 in logical unit 0; that unit has 1 disks",
        ),
        (of(|s| s.array.units.clear()), "the array: found 0 logical units"),
        (of(|s| s.engine.slo_window = Span::ZERO), "the pool: the SLO window must be longer than zero"),
    ] {
        assert!(error.contains(part), "{error:?} does not say {part:?}");
    }
}

/// How many windows of the victim kept its promise in 30 s, after the first two, and how many requests were
/// answered in all. The hog is behind another gateway.
fn kept_behind_two_gateways(apart: Span) -> (usize, u64) {
    let mut scenario = Scenario { duration: Span::from_secs(32), ..beside_a_hog() };
    scenario.engine.control = Control::SharedPromise;
    let mut world = World::new(scenario);
    world.spread(Spread { gateways: vec![0, 1], apart });
    let mut log = Log::default();
    let outcome = world.run(&mut log).unwrap();
    assert_eq!(outcome.submitted, outcome.answered + outcome.outstanding);
    let kept = |event: &Event| matches!(event, Event::WindowClosed { volume: VolumeId(0), window } if window.verdict == Verdict::Met);
    let windows =
        log.0.iter().filter(|(at, event)| *at > Instant::ORIGIN + Span::from_secs(2) && kept(event));
    (windows.count(), outcome.answered)
}

#[test]
fn a_promise_is_kept_beside_a_hog_behind_another_gateway_if_the_two_hear_of_one_another() {
    // Nothing arrives in this run, so the hog has no more than one request at a time, whatever is promised.
    let (kept, unheard) = kept_behind_two_gateways(Span::from_secs(60));
    assert!(kept >= 28);
    for apart in [ms(1), ms(50)] {
        let (kept, answered) = kept_behind_two_gateways(apart);
        assert!(kept >= 28 && 2 * answered > 3 * unheard, "{kept}; {answered} beside {unheard}");
    }
}
