//! Claims about the model, by closed forms; and about the throttle in it.

use weir_control::{OneSidedPidConfig, Plant, StepResponse};
use weir_model::{Bandwidth, Instant, Span};
use weir_throttle::Settings;

use super::*;

const SERVICE: f64 = 3.0;
/// The network for a request of 64 KiB: the round trip, and 64 KiB at 125 MB/s.
const NETWORK: f64 = 0.3 + 0.524;

fn initiator(writes: bool, r2t: bool, threads: u32, to: u64) -> Initiator {
    let bursts = vec![(Span::ZERO, Span::from_secs(to))];
    Initiator { group: 0, writes, r2t, request: 64 << 10, threads, pace: None, bursts, limit: None }
}

/// 64 reads of 4 KiB a second.
fn reader(to: u64) -> Initiator {
    let pace = Some(Span::from_micros(15_625));
    Initiator { request: 4 << 10, pace, ..initiator(false, false, 4, to) }
}

fn options(seed: u64, seconds: u64, initiators: Vec<Initiator>, delays: Delays) -> TargetOptions {
    TargetOptions {
        seed,
        duration: Span::from_secs(seconds),
        service_time: Span::from_secs_f64(SERVICE / 1e3),
        spread: 0.33,
        round_trip: Span::from_micros(300),
        bandwidth: Bandwidth::new(125_000_000).unwrap(),
        initiators,
        delays,
        misfortunes: Vec::new(),
    }
}

/// The mean number of requests that each initiator had answered in a second.
#[allow(clippy::cast_precision_loss)] // some thousands
fn rates(options: TargetOptions) -> Vec<f64> {
    let seconds = options.duration.as_secs_f64();
    let sizes: Vec<_> = options.initiators.iter().map(|initiator| f64::from(initiator.request)).collect();
    let mut bytes = vec![0; sizes.len()];
    TargetWorld::new(options).run(|_, sample| {
        let of_sample = sample.read.iter().zip(&sample.written);
        bytes.iter_mut().zip(of_sample).for_each(|(sum, (read, written))| *sum += read + written);
    });
    bytes.iter().zip(sizes).map(|(bytes, size)| *bytes as f64 / size / seconds).collect()
}

fn fixed(delay_ms: f64) -> Delays {
    let delay = Span::from_secs_f64(delay_ms / 1e3);
    Delays::Fixed(vec![FixedDelay { at: Span::ZERO, initiator: 0, delay }])
}

#[test]
fn a_lone_request_takes_as_long_as_its_parts() {
    // A read and a write that carries its data wait for one delayed packet. A write that is asked for its
    // data waits for two, and for one more round trip.
    let kinds = [(false, false, 1.0, 0.0), (true, false, 1.0, 0.0), (true, true, 2.0, 1.0)];
    for (writes, r2t, packets, trips) in kinds {
        for delay in [0.0, 0.5, 4.5, 9.5, 40.0] {
            let rate = rates(options(1, 60, vec![initiator(writes, r2t, 1, 60)], fixed(delay)))[0];
            let expected = 1e3 / (SERVICE + NETWORK + trips * 0.3 + packets * delay);
            assert!((rate / expected - 1.0).abs() < 0.01, "{writes} {r2t} {delay}: {rate}, not {expected}");
        }
    }
}

#[test]
fn with_four_requests_outstanding_a_short_delay_hides_behind_the_disk() {
    let rate = |delay| rates(options(1, 60, vec![initiator(false, false, 4, 60)], fixed(delay)))[0];
    let alone = 1e3 / SERVICE;
    assert!((rate(5.0) / alone - 1.0).abs() < 0.02);
    let hardly_waits = 4e3 / (SERVICE + NETWORK + 40.0);
    assert!((rate(40.0) / hardly_waits - 1.0).abs() < 0.05);
}

#[test]
fn what_a_delayed_initiator_gives_up_goes_to_the_other_one() {
    // Each has 4 requests outstanding. The disk is never idle, and a delayed request comes back later:
    // 4 / cycle + 4 / (cycle + delay) = 1 / 3 ms, so the cycle of the other one is 15.4 ms.
    let both = vec![initiator(false, false, 4, 60), initiator(false, false, 4, 60)];
    let rates = rates(options(1, 60, both, fixed(38.0)));
    let expected = [4e3 / (15.4 + 38.0), 4e3 / 15.4];
    for (rate, expected) in rates.iter().zip(expected) {
        assert!((rate / expected - 1.0).abs() < 0.05, "{rates:?}, not {expected}");
    }
    assert!((rates[0] + rates[1] - 1e3 / SERVICE).abs() < 5.0, "{rates:?}");
}

#[test]
fn a_paced_reader_keeps_its_pace_whatever_it_waits_for() {
    let twelve = (0..3).map(|_| initiator(true, true, 4, 60));
    let all = [reader(60)].into_iter().chain(twelve).collect();
    let rate = rates(options(1, 60, all, Delays::None))[0];
    assert!((rate - 64.0).abs() < 0.5, "{rate}");
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let run = |seed| {
        let mut seen = Vec::new();
        let (options, _) = swarm::options(seed);
        let end = TargetWorld::new(options).run(|now, sample| seen.push((now, sample.clone())));
        (seen, end)
    };
    assert_eq!(run(3), run(3));
    assert_ne!(run(3).0, run(4).0);
}

/// The mean wait in each interval beside twelve writers, from 2 s on; the delay of the writers is raised in
/// the middle.
fn step(seed: u64, from: Span, to: Span) -> Vec<f64> {
    const SECONDS: u64 = 42;
    let writers = (0..3).map(|_| initiator(true, true, 4, SECONDS));
    let all = [reader(SECONDS)].into_iter().chain(writers).collect();
    let raise =
        |at, delay| (1..=3).map(move |initiator| FixedDelay { at: Span::from_secs(at), initiator, delay });
    let changes = raise(0, from).chain(raise(22, to)).collect();
    let mut waits = Vec::new();
    TargetWorld::new(options(seed, SECONDS, all, Delays::Fixed(changes))).run(|now, sample| {
        if now > Instant::ORIGIN + Span::from_secs(2) {
            waits.push(sample.read_time.as_secs_f64() / f64::from(u32::try_from(sample.reads).unwrap()));
        }
    });
    waits
}

/// What `weir throttle tune` would find here: a delay takes twice as much wait away, because a write waits
/// for two delayed packets. The gains that follow are near the defaults.
#[test]
fn a_recorded_step_shows_two_delayed_packets_for_each_write() {
    let (from, to) = (Span::from_micros(12_500), Span::from_micros(17_500));
    let all: Vec<_> = (101..=110).map(|seed| step(seed, from, to)).collect();
    let mean =
        |place: usize| Some(Span::from_secs_f64(all.iter().map(|waits| waits[place]).sum::<f64>() / 10.0));
    let waits: Vec<_> = (0..all[0].len()).map(mean).collect();
    let (before, after) = waits.split_at(200);
    let recorded = StepResponse {
        period: Span::from_millis(100),
        step: Span::from_nanos(to.as_nanos() - from.as_nanos()),
        before: before.to_vec(),
        after: after.to_vec(),
    };
    let plant = Plant::fit(&recorded).unwrap();
    assert!((1.9..2.1).contains(&plant.gain) && plant.explained > 0.95, "{plant:?}");
    assert!(plant.dead_time + plant.lag < Span::from_millis(100), "{plant:?}");
    let gains = plant.gains(&OneSidedPidConfig::default()).unwrap();
    assert!((0.1..0.2).contains(&gains.proportional_gain), "{gains:?}");
    assert!((200..250).contains(&(gains.integral_time.as_micros() / 1_000)), "{gains:?}");
}

#[test]
fn the_throttle_keeps_a_reader_near_its_setpoint_and_lets_go_in_a_pause_and_tcp_sends_nothing_again() {
    let writers = (0..3).map(|_| initiator(true, true, 4, 20));
    let all = [reader(25)].into_iter().chain(writers).collect();
    let mut settings = Settings::new(Span::from_millis(15));
    settings.law.ceiling = Span::from_millis(40);
    let (mut reads, mut took, mut last) = (0, 0.0, Instant::ORIGIN);
    let delays = Delays::Throttle(Box::new(settings));
    let (_, tcp) = TargetWorld::new(options(1, 25, all, delays)).run(|now, sample| {
        if (5..20).contains(&(now.as_nanos() / 1_000_000_000)) {
            reads += u32::try_from(sample.reads).unwrap();
            took += sample.read_time.as_secs_f64();
        }
        if !sample.delay.is_zero() {
            last = now;
        }
    });
    let wait = took / f64::from(reads);
    assert!((0.013..0.014).contains(&wait), "{wait} s, and the setpoint is 13.5 ms");
    let lasts = last.since(Instant::ORIGIN + Span::from_secs(20));
    assert!(lasts < Span::from_secs(1), "delayed {lasts} after the pause began");
    assert_eq!(tcp, TcpCounts::default());
}
