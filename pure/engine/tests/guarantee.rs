//! What a pool guarantees, in closed form: a station of 8 servers of 5 ms, which no scheduler can make
//! faster.

use std::num::NonZeroU32;

use weir_engine::{Control, DepthFeedbackConfig, EngineConfig, Event, VolumeConfig, WindowReport};
use weir_model::{Instant, IoKind, Iops, QueueDepth, Slo, SloPoint, Span, TimeShare, Verdict, VolumeId};
use weir_testkit::{Arrivals, Load, Rig, Station};

const SERVICE: Span = Span::from_millis(5);

const fn at(seconds: u64) -> Instant {
    Instant::from_nanos(seconds * 1_000_000_000)
}

fn iops(rate: f64) -> Iops {
    Iops::new(rate).unwrap()
}

fn no_control() -> EngineConfig {
    EngineConfig { control: Control::None, ..EngineConfig::default() }
}

fn facade_from(initial_depth: u32) -> EngineConfig {
    let initial_depth = QueueDepth::new(initial_depth);
    let law = DepthFeedbackConfig { initial_depth, ..DepthFeedbackConfig::default() };
    EngineConfig { control: Control::Facade(law), ..EngineConfig::default() }
}

fn promise(up_to: f64, latency: Span) -> VolumeConfig {
    let point = SloPoint { up_to: iops(up_to), read: latency, write: latency };
    VolumeConfig { slo: Some(Slo::new(vec![point]).unwrap()), ..VolumeConfig::default() }
}

fn reads(volume: VolumeId, arrivals: Arrivals) -> Load {
    Load { volume, kind: IoKind::Read, length: 4096, arrivals }
}

/// A victim that was promised 12 ms for up to 300 requests a second, beside a hog that always has 128
/// outstanding. Driven for 62 s.
fn beside_a_hog(config: EngineConfig, victim_arrivals: Arrivals) -> (Rig, VolumeId, VolumeId) {
    let mut rig = Rig::new(config, Station::constant(8, SERVICE));
    let victim = rig.add_volume(promise(300.0, Span::from_millis(12)));
    let hog = rig.add_volume(VolumeConfig::default());
    rig.start(reads(victim, victim_arrivals));
    rig.start(reads(hog, Arrivals::Closed(128)));
    rig.drive_until(at(62));
    (rig, victim, hog)
}

fn arrivals_of_200_a_second() -> [Arrivals; 4] {
    let poisson = |seed| Arrivals::Poisson(iops(200.0), seed);
    [Arrivals::Constant(iops(200.0)), poisson(1), poisson(2), poisson(3)]
}

fn share_met(windows: &[WindowReport]) -> f64 {
    let met = windows.iter().filter(|window| window.verdict == Verdict::Met).count();
    met as f64 / windows.len() as f64
}

#[test]
fn a_victim_meets_its_slo_beside_a_hog_that_keeps_its_rate() {
    for arrivals in arrivals_of_200_a_second() {
        let (free, _, uncontrolled) = beside_a_hog(no_control(), arrivals);
        let (rig, victim, hog) = beside_a_hog(EngineConfig::default(), arrivals);
        let met = share_met(&rig.windows(victim, at(2)));
        assert!(met >= 0.99, "{arrivals:?}: met in {met} of the windows");
        let kept = rig.answered(hog, at(2)) as f64 / free.answered(uncontrolled, at(2)) as f64;
        assert!(kept >= 0.90, "{arrivals:?}: the hog keeps {kept} of its rate");
    }
}

#[test]
fn without_control_the_same_victim_misses_every_window() {
    for arrivals in arrivals_of_200_a_second() {
        let (rig, victim, _) = beside_a_hog(no_control(), arrivals);
        let windows = rig.windows(victim, at(2));
        assert!(windows.iter().all(|window| window.verdict == Verdict::Missed), "{windows:?}");
        assert!(windows.iter().all(|window| window.target == Some(Span::from_millis(12))));
    }
}

#[test]
fn a_depth_too_small_for_the_promised_load_is_no_trap() {
    // At a depth of 1 the station does 200 requests a second: the victim alone would wait without bound.
    for arrivals in arrivals_of_200_a_second() {
        let (rig, victim, _) = beside_a_hog(facade_from(1), arrivals);
        let met = share_met(&rig.windows(victim, at(5)));
        assert!(met >= 0.99, "{arrivals:?}: met in {met} of the windows");
    }
}

#[test]
fn a_volume_that_waits_for_its_own_limits_costs_the_others_nothing() {
    let limits = [
        VolumeConfig { max_iops: Some(iops(50.0)), ..promise(300.0, Span::from_millis(12)) },
        VolumeConfig { concurrency: NonZeroU32::new(1), ..promise(600.0, Span::from_millis(12)) },
    ];
    for (limited, rate) in limits.into_iter().zip([100.0, 400.0]) {
        let mut rig = Rig::new(EngineConfig::default(), Station::constant(8, SERVICE));
        let limited = rig.add_volume(limited);
        let hog = rig.add_volume(VolumeConfig::default());
        rig.start(reads(limited, Arrivals::Constant(iops(rate))));
        rig.start(reads(hog, Arrivals::Closed(128)));
        rig.drive_until(at(12));
        let (done, hogged) = (rig.answered(limited, at(2)), rig.answered(hog, at(2)));
        assert!(done + hogged >= 15_900, "the station does 16,000 in 10 s, not {done} and {hogged}");
    }
}

/// How long the requests of a volume were at the device, and how many there were.
fn at_device(rig: &Rig, volume: VolumeId) -> (Span, u32) {
    let of_volume = rig.reports().iter().filter_map(|(_, event)| match event {
        Event::Finished { volume: of, device, .. } if *of == volume => Some(*device),
        _ => None,
    });
    of_volume.fold((Span::ZERO, 0), |(sum, count), device| (sum + device, count + 1))
}

/// A promised volume, which always has more requests waiting than the station can do, and a volume without a
/// promise, which asks for a request 20 times a second. The depth is at most the number of servers. The rig
/// is driven for 300 s.
fn beside_a_promise_that_takes_everything(share: f64) -> (Rig, VolumeId, VolumeId) {
    let background_share = TimeShare::new(share).unwrap();
    let (initial_depth, max_depth) = (QueueDepth::new(8), QueueDepth::new(8));
    let law = DepthFeedbackConfig { initial_depth, max_depth, ..DepthFeedbackConfig::default() };
    let config = EngineConfig { control: Control::Facade(law), background_share, ..EngineConfig::default() };
    let mut rig = Rig::new(config, Station::constant(8, SERVICE));
    let greedy = rig.add_volume(promise(1e6, Span::from_millis(300)));
    let meek = rig.add_volume(VolumeConfig::default());
    rig.start(reads(greedy, Arrivals::Closed(64)));
    rig.start(reads(meek, Arrivals::Constant(iops(20.0))));
    rig.drive_until(at(300));
    (rig, greedy, meek)
}

#[test]
fn a_volume_without_a_promise_gets_its_share_of_the_devices_time_and_no_more() {
    for share in [0.01, 0.1] {
        let (rig, _, meek) = beside_a_promise_that_takes_everything(share);
        let (used, count) = at_device(&rig, meek);
        let longest = used.as_secs_f64() / f64::from(count) * 2.0;
        assert!(used.as_secs_f64() <= share * 300.0 + longest, "{used} in {count} requests");
        assert!(used.as_secs_f64() >= share * 300.0 * 0.9, "{used} in {count} requests");
    }
}

#[test]
fn a_backlog_without_a_promise_never_goes_before_a_promise_however_old_it_is() {
    let (rig, greedy, meek) = beside_a_promise_that_takes_everything(0.0);
    assert_eq!(at_device(&rig, meek).1, 0);
    let (shared, ..) = beside_a_promise_that_takes_everything(0.01);
    let mean = |rig: &Rig| {
        let windows = rig.windows(greedy, at(2));
        let means = windows.iter().filter_map(|window| window.mean_latency).map(Span::as_secs_f64);
        means.sum::<f64>() / windows.len() as f64
    };
    let (without, with) = (mean(&rig), mean(&shared));
    assert!(
        with <= without * 1.02,
        "a mean latency of {with} s beside a share of 1 %, {without} s beside none"
    );
}

#[test]
fn a_device_that_answers_nothing_is_a_window_missed_and_a_depth_cut() {
    let stall = at(3);
    let service = move |now, _: &_| if now >= stall { Span::from_secs(3_600) } else { SERVICE };
    let mut rig = Rig::new(EngineConfig::default(), Station::scripted(8, service));
    let victim = rig.add_volume(promise(300.0, Span::from_millis(12)));
    let other = rig.add_volume(VolumeConfig::default());
    rig.start(reads(victim, Arrivals::Closed(4)));
    rig.start(reads(other, Arrivals::Closed(4)));
    rig.drive_until(at(8));
    let verdicts: Vec<Verdict> = rig.windows(victim, at(4)).iter().map(|window| window.verdict).collect();
    assert!(!verdicts.is_empty());
    let in_contract = |verdict: &&Verdict| **verdict != Verdict::OutOfContract;
    assert!(verdicts.iter().filter(in_contract).all(|verdict| *verdict == Verdict::Missed), "{verdicts:?}");
    assert_eq!(rig.engine.snapshot().depth_target, Some(QueueDepth::new(1)));
}

#[test]
fn a_volume_that_offers_more_than_agreed_loses_its_promise_and_gets_it_back() {
    let mut rig = Rig::new(EngineConfig::default(), Station::constant(8, SERVICE));
    let volume = rig.add_volume(promise(300.0, Span::from_millis(12)));
    let burst = rig.start(reads(volume, Arrivals::Constant(iops(600.0))));
    rig.drive_until(at(4));
    assert_eq!(rig.engine.target(volume), None);
    assert_eq!(rig.windows(volume, at(2))[0].verdict, Verdict::OutOfContract);
    rig.stop(burst);
    rig.start(reads(volume, Arrivals::Constant(iops(100.0))));
    rig.drive_until(at(8));
    assert_eq!(rig.engine.target(volume), Some(Span::from_millis(12)));
    assert_eq!(rig.windows(volume, at(7))[0].verdict, Verdict::Met);
}

#[test]
fn a_promise_that_comes_back_to_a_full_device_cuts_no_deeper_than_it_needs() {
    let mut rig = Rig::new(EngineConfig::default(), Station::constant(8, SERVICE));
    let victim = rig.add_volume(promise(300.0, Span::from_millis(12)));
    let hog = rig.add_volume(VolumeConfig::default());
    rig.start(reads(hog, Arrivals::Closed(128)));
    let burst = rig.start(reads(victim, Arrivals::Constant(iops(600.0))));
    rig.drive_until(at(4));
    assert_eq!(rig.engine.target(victim), None);
    rig.stop(burst);
    rig.start(reads(victim, Arrivals::Constant(iops(200.0))));
    rig.drive_until(at(12));
    let depths = rig.reports().iter().filter_map(|(now, event)| match event {
        Event::Controlled { depth, .. } if *now > at(4) => Some(depth.get()),
        _ => None,
    });
    assert!(depths.clone().all(|depth| depth >= 8), "{:?}", depths.collect::<Vec<_>>());
    assert!(share_met(&rig.windows(victim, at(8))) > 0.99);
}
