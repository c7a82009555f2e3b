//! Where a law shares out how many requests each volume may have at the device.

use std::num::NonZeroU32;

use weir_engine::{
    Control, Dispatch, Engine, EngineConfig, Event, Grant, GrantedBy, Grants, LeasedConfig, MaestroConfig,
    Request, TotalConcurrency, VolumeConfig,
};
use weir_model::{Instant, IoId, IoKind, Iops, MilliIops, Objective, Priority, Span, VolumeId};

const fn at(millis: u64) -> Instant {
    Instant::from_nanos(millis * 1_000_000)
}

fn maestro(total: u32) -> EngineConfig {
    let total = TotalConcurrency::Fixed(NonZeroU32::new(total).unwrap());
    let control = Control::Maestro(MaestroConfig { interval: MaestroConfig::INTERVAL, total });
    EngineConfig { control, ..EngineConfig::default() }
}

fn leased() -> EngineConfig {
    let control = Control::Leased(LeasedConfig { interval: Span::from_secs(2) });
    EngineConfig { control, ..EngineConfig::default() }
}

fn of_priority(priority: f64) -> VolumeConfig {
    let objective = Objective { target: None, priority: Priority::new(priority).unwrap() };
    VolumeConfig { objective, ..VolumeConfig::default() }
}

const fn concurrency(concurrency: u32) -> Grant {
    let concurrency = NonZeroU32::new(concurrency).unwrap();
    Grant { concurrency, max_iops: None, max_bandwidth: None }
}

fn submit(engine: &mut Engine, now: Instant, volume: VolumeId, number: usize) {
    for _ in 0..number {
        engine.handle_submit(now, Request { volume, kind: IoKind::Read, offset: 0, length: 4096 });
    }
}

/// Everything that may go to the device now.
fn issued(engine: &mut Engine, now: Instant) -> Vec<(VolumeId, IoId)> {
    std::iter::from_fn(|| match engine.poll_dispatch(now) {
        Dispatch::Issue(io) => Some((io.volume, io.id)),
        _ => None,
    })
    .collect()
}

fn events(engine: &mut Engine) -> Vec<Event> {
    std::iter::from_fn(|| engine.poll_event()).collect()
}

fn bound(engine: &Engine, volume: VolumeId) -> u32 {
    engine.grant(volume).unwrap().concurrency.get()
}

#[test]
fn before_anything_was_measured_the_total_is_dealt_out_by_priority() {
    let mut engine = Engine::new(at(0), maestro(102));
    let (low, high) =
        (engine.add_volume(at(0), of_priority(1.0)), engine.add_volume(at(0), of_priority(4.0)));
    assert_eq!((bound(&engine, low), bound(&engine, high)), (21, 81));
}

#[test]
fn a_newcomer_gets_one_request_at_a_time_and_the_sum_stays_within_the_total() {
    let mut engine = Engine::new(at(0), maestro(10));
    let first = engine.add_volume(at(0), VolumeConfig::default());
    engine.handle_timeout(at(2000));
    let before = bound(&engine, first);
    let second = engine.add_volume(at(2500), VolumeConfig::default());
    assert_eq!((bound(&engine, first), bound(&engine, second)), (before.min(9), 1));
}

#[test]
fn no_more_requests_are_at_the_device_than_a_volume_was_granted_once_the_excess_has_drained() {
    let mut engine = Engine::new(at(0), leased());
    let volume = engine.add_volume(at(0), VolumeConfig::default());
    let grants =
        |concurrency_: u32| Grants { until: at(6000), volumes: vec![(volume, concurrency(concurrency_))] };
    engine.handle_grants(at(0), grants(4));
    submit(&mut engine, at(0), volume, 10);
    let mut at_device = issued(&mut engine, at(0));
    assert_eq!(at_device.len(), 4);
    engine.handle_grants(at(1), grants(2));
    for left in [2, 1, 2] {
        let (_, id) = at_device.remove(0);
        engine.handle_complete(at(1), id, true);
        engine.handle_reply(at(1), id);
        at_device.extend(issued(&mut engine, at(1)));
        assert!(at_device.len() <= left.max(2) + 1, "{left}");
    }
    assert_eq!(at_device.len(), 2);
}

#[test]
fn a_leased_pool_without_a_controller_sends_one_request_at_a_time_or_what_it_was_told_to() {
    let mut engine = Engine::new(at(0), leased());
    let volumes = [0, 1].map(|_| engine.add_volume(at(0), VolumeConfig::default()));
    assert_eq!(volumes.map(|volume| bound(&engine, volume)), [1, 1]);
    engine.set_fallback(at(0), vec![(volumes[1], concurrency(5))]);
    assert_eq!(volumes.map(|volume| bound(&engine, volume)), [1, 5]);
}

#[test]
fn a_leased_pool_keeps_its_grants_until_their_time_is_over_and_then_falls_back() {
    let mut engine = Engine::new(at(0), leased());
    let volume = engine.add_volume(at(0), VolumeConfig::default());
    engine.set_fallback(at(0), vec![(volume, concurrency(3))]);
    engine.handle_grants(at(100), Grants { until: at(1100), volumes: vec![(volume, concurrency(40))] });
    assert_eq!((bound(&engine, volume), engine.snapshot().granted_until), (40, Some(at(1100))));
    assert_eq!(engine.poll_timeout(), Some(at(1000)), "the SLO window");
    engine.handle_timeout(at(1000));
    assert_eq!(engine.poll_timeout(), Some(at(1100)));
    events(&mut engine);
    engine.handle_timeout(at(1100));
    let fell_back = Event::Granted { volume, grant: concurrency(3), by: GrantedBy::Fallback };
    assert_eq!(events(&mut engine), [fell_back]);
    engine.handle_grants(at(1200), Grants { until: at(1200), volumes: vec![(volume, concurrency(40))] });
    assert_eq!(bound(&engine, volume), 3, "they came too late");
}

#[test]
fn a_leased_pool_tells_once_in_each_interval_what_its_volumes_asked_for_and_got() {
    let mut engine = Engine::new(at(0), leased());
    let volume = engine.add_volume(at(0), VolumeConfig::default());
    submit(&mut engine, at(1000), volume, 2);
    let (_, id) = issued(&mut engine, at(1000))[0];
    engine.handle_complete(at(1500), id, true);
    engine.handle_reply(at(1500), id);
    assert_eq!(engine.poll_observation(), None);
    engine.handle_timeout(at(2000));
    let observed = engine.poll_observation().unwrap();
    let (of, seen) = &observed[0];
    assert_eq!((*of, seen.arrived, seen.answered, seen.answered_bytes), (volume, 2, 1, 4096));
    assert_eq!((seen.outstanding, seen.at_device), (0.75, 0.25));
    assert_eq!((seen.latency_sum, seen.oldest), (Span::from_millis(500), Some(Span::from_millis(1000))));
    assert_eq!(engine.poll_observation(), None);
}

#[test]
fn the_ports_of_a_volume_share_its_limits() {
    let mut engine = Engine::new(at(0), maestro(100));
    let limited = VolumeConfig { max_iops: Iops::new(1000.0), ..VolumeConfig::default() };
    let first = engine.add_volume(at(0), limited);
    let second = engine.add_volume(at(0), VolumeConfig { port_of: Some(first), ..VolumeConfig::default() });
    let rates = [first, second].map(|port| engine.grant(port).unwrap().max_iops);
    assert_eq!(rates, [MilliIops::new(500_000), MilliIops::new(500_000)]);
    engine.handle_timeout(at(2000));
    let rates = [first, second].map(|port| engine.grant(port).unwrap().max_iops.map_or(0, MilliIops::get));
    assert!(rates.iter().sum::<u64>() <= 1_000_000, "{rates:?}");
}

#[test]
fn a_change_of_law_keeps_what_is_at_the_device_and_waits() {
    let mut engine = Engine::new(at(0), EngineConfig::default());
    let volume = engine.add_volume(at(0), VolumeConfig::default());
    submit(&mut engine, at(0), volume, 8);
    assert_eq!(issued(&mut engine, at(0)).len(), 8);
    submit(&mut engine, at(0), volume, 3);
    engine.set_config(at(1), maestro(4));
    assert_eq!(issued(&mut engine, at(1)), []);
    engine.handle_timeout(at(2001));
    assert_eq!(engine.snapshot().total_concurrency.map(NonZeroU32::get), Some(4));
    engine.set_config(at(2002), EngineConfig::default());
    assert_eq!(issued(&mut engine, at(2002)).len(), 3);
}

#[test]
fn a_driver_that_was_held_up_issues_nothing_with_a_lease_that_is_over() {
    let mut engine = Engine::new(at(0), leased());
    let volume = engine.add_volume(at(0), VolumeConfig::default());
    engine.handle_grants(at(0), Grants { until: at(500), volumes: vec![(volume, concurrency(8))] });
    submit(&mut engine, at(600), volume, 5);
    assert_eq!(issued(&mut engine, at(600)).len(), 1, "before anybody said that time has passed");
}

/// They are acknowledged like all others. Before them, a lease may have been longer.
#[test]
fn grants_that_come_after_their_time_end_the_lease_before_them() {
    let mut engine = Engine::new(at(0), leased());
    let volume = engine.add_volume(at(0), VolumeConfig::default());
    engine.set_fallback(at(0), vec![(volume, concurrency(3))]);
    engine.handle_grants(at(100), Grants { until: at(1100), volumes: vec![(volume, concurrency(40))] });
    engine.handle_grants(at(600), Grants { until: at(500), volumes: vec![(volume, concurrency(2))] });
    assert_eq!((bound(&engine, volume), engine.snapshot().granted_until), (3, None));
}
