//! The life of requests, and changes of configuration in the middle of it.

use std::collections::BTreeSet;
use std::num::NonZeroU32;

use weir_engine::{
    Control, DepthFeedbackConfig, Dispatch, Engine, EngineConfig, Event, Request, VolumeConfig,
};
use weir_model::{
    Bandwidth, Instant, IoId, IoKind, Iops, Objective, Priority, QueueDepth, Slo, SloPoint, Span, Target,
    Verdict, VolumeId,
};
use weir_testkit::{Arrivals, Load, Rig, Station};

const fn at(millis: u64) -> Instant {
    Instant::from_nanos(millis * 1_000_000)
}

fn promise(latency: Span) -> VolumeConfig {
    let point = SloPoint { up_to: Iops::new(1e6).unwrap(), read: latency, write: latency };
    VolumeConfig { slo: Some(Slo::new(vec![point]).unwrap()), ..VolumeConfig::default() }
}

fn depth(depth: u32) -> EngineConfig {
    let initial_depth = QueueDepth::new(depth);
    let law = DepthFeedbackConfig { initial_depth, ..DepthFeedbackConfig::default() };
    EngineConfig { control: Control::Facade(law), ..EngineConfig::default() }
}

fn no_control() -> EngineConfig {
    EngineConfig { control: Control::None, ..EngineConfig::default() }
}

fn promises() -> EngineConfig {
    EngineConfig { control: Control::Promise, ..EngineConfig::default() }
}

fn submit(engine: &mut Engine, now: Instant, volume: VolumeId, kind: IoKind) -> IoId {
    engine.handle_submit(now, Request { volume, kind, offset: 0, length: 4096 })
}

fn read(engine: &mut Engine, now: Instant, volume: VolumeId) -> IoId {
    submit(engine, now, volume, IoKind::Read)
}

fn issued(engine: &mut Engine, now: Instant) -> Vec<IoId> {
    let issue = || match engine.poll_dispatch(now) {
        Dispatch::Issue(io) => Some(io.id),
        _ => None,
    };
    std::iter::from_fn(issue).collect()
}

fn events(engine: &mut Engine) -> Vec<Event> {
    std::iter::from_fn(|| engine.poll_event()).collect()
}

#[test]
fn the_time_of_a_request_splits_into_queue_device_and_the_rest() {
    let mut engine = Engine::new(at(0), depth(10));
    let volume = engine.add_volume(at(0), VolumeConfig::default());
    let id = read(&mut engine, at(0), volume);
    assert_eq!(engine.outstanding(volume), 1);
    assert_eq!(issued(&mut engine, at(2)), [id]);
    engine.handle_complete(at(7), id, true);
    assert_eq!(engine.outstanding(volume), 1, "until the reply is out");
    engine.handle_reply(at(8), id);
    assert_eq!(engine.outstanding(volume), 0);
    let (queued, device, total) = (Span::from_millis(2), Span::from_millis(5), Span::from_millis(8));
    let kind = IoKind::Read;
    let finished = Event::Finished { volume, kind, length: 4096, ok: true, queued, device, total };
    assert_eq!(events(&mut engine), [finished]);
}

#[test]
fn a_completion_frees_the_depth_before_the_reply_is_out() {
    let mut engine = Engine::new(at(0), depth(1));
    let volume = engine.add_volume(at(0), VolumeConfig::default());
    let (one, two) = (read(&mut engine, at(0), volume), read(&mut engine, at(0), volume));
    assert_eq!(issued(&mut engine, at(0)), [one]);
    engine.handle_complete(at(1), one, true);
    assert_eq!(issued(&mut engine, at(1)), [two]);
}

#[test]
fn a_slot_is_used_again_under_another_id() {
    let mut engine = Engine::new(at(0), depth(1));
    let volume = engine.add_volume(at(0), VolumeConfig::default());
    let first = read(&mut engine, at(0), volume);
    assert!(engine.handle_abort(at(0), first));
    let second = read(&mut engine, at(0), volume);
    assert_eq!((first.slot, first.generation + 1), (second.slot, second.generation));
    assert!(!engine.handle_abort(at(0), first), "the old id means nothing any more");
    assert!(engine.handle_abort(at(0), second));
}

#[test]
fn only_a_queued_request_can_be_aborted() {
    let mut engine = Engine::new(at(0), depth(1));
    let volume = engine.add_volume(at(0), VolumeConfig::default());
    let (one, two) = (read(&mut engine, at(0), volume), read(&mut engine, at(0), volume));
    assert_eq!(issued(&mut engine, at(0)), [one]);
    assert!(!engine.handle_abort(at(1), one), "at the device");
    assert!(engine.handle_abort(at(1), two));
    assert_eq!(events(&mut engine), [Event::Aborted { volume, kind: IoKind::Read }]);
    engine.handle_complete(at(2), one, true);
    assert!(!engine.handle_abort(at(2), one), "its reply is on the way");
    engine.handle_reply(at(2), one);
    assert_eq!(engine.outstanding(volume), 0);
    assert_eq!(issued(&mut engine, at(2)), []);
}

#[test]
fn a_flush_overtakes_its_volumes_writes_that_bandwidth_holds() {
    let mut engine = Engine::new(at(0), EngineConfig::default());
    let config = VolumeConfig { max_bandwidth: Bandwidth::new(4096), ..VolumeConfig::default() };
    let volume = engine.add_volume(at(0), config);
    let writes = [(); 3].map(|()| submit(&mut engine, at(0), volume, IoKind::Write));
    assert_eq!(issued(&mut engine, at(0)), [writes[0]]);
    let flush = submit(&mut engine, at(1), volume, IoKind::Flush);
    assert_eq!(issued(&mut engine, at(1)), [flush]);
    assert_eq!(engine.poll_timeout(), Some(at(50)));
    engine.handle_timeout(at(990));
    assert_eq!(issued(&mut engine, at(990)), []);
    assert_eq!(engine.poll_timeout(), Some(at(995)), "when the rate gate opens");
    assert_eq!(issued(&mut engine, at(995)), [writes[1]]);
}

#[test]
fn a_failed_request_and_a_flush_have_no_part_in_the_latency_of_a_window() {
    let mut engine = Engine::new(at(0), no_control());
    let volume = engine.add_volume(at(0), promise(Span::from_millis(10)));
    let failed = read(&mut engine, at(0), volume);
    let flush = submit(&mut engine, at(0), volume, IoKind::Flush);
    let good = read(&mut engine, at(490), volume);
    issued(&mut engine, at(490));
    for (id, ok) in [(failed, false), (flush, true), (good, true)] {
        engine.handle_complete(at(495), id, ok);
        engine.handle_reply(at(495), id);
    }
    engine.handle_timeout(at(1_000));
    let Some(Event::WindowClosed { window, .. }) = events(&mut engine).pop() else { panic!("no window") };
    assert_eq!((window.completed, window.mean_latency), (1, Some(Span::from_millis(5))));
    assert_eq!((window.offered.total(), window.verdict), (2, Verdict::Met));
}

#[test]
fn the_pieces_of_a_long_request_have_no_part_in_windows_nor_in_what_the_law_sees() {
    for kind in [IoKind::WriteZeroes, IoKind::Trim, IoKind::Cache] {
        let mut engine = Engine::new(at(0), depth(10));
        let volume = engine.add_volume(at(0), promise(Span::from_millis(10)));
        let other = engine.add_volume(at(0), VolumeConfig::default());
        let good = read(&mut engine, at(0), volume);
        let beside = read(&mut engine, at(0), other);
        let length = 32 << 20;
        let pieces =
            [(); 4].map(|()| engine.handle_submit(at(0), Request { volume, kind, offset: 0, length }));
        assert_eq!(issued(&mut engine, at(0)).len(), 6);
        for (millis, id) in [(5, good), (5, beside)].into_iter().chain(pieces.map(|id| (45, id))) {
            engine.handle_complete(at(millis), id, true);
            engine.handle_reply(at(millis), id);
        }
        engine.handle_timeout(at(50));
        assert_eq!(engine.snapshot().depth_target, Some(QueueDepth::new(10)), "nobody was late");
        events(&mut engine);
        engine.handle_timeout(at(1_000));
        let mut windows = events(&mut engine).into_iter().filter_map(|event| match event {
            Event::WindowClosed { volume: of, window } if of == volume => Some(window),
            _ => None,
        });
        let window = windows.next_back().expect("a window ends after a second");
        assert_eq!((window.offered.total(), window.completed), (1, 1));
        assert_eq!((window.mean_latency, window.verdict), (Some(Span::from_millis(5)), Verdict::Met));
    }
}

#[test]
fn a_late_timeout_runs_each_tick_once_and_keeps_their_rhythm() {
    let mut engine = Engine::new(at(0), EngineConfig::default());
    engine.add_volume(at(0), VolumeConfig::default());
    engine.handle_timeout(at(3_020));
    let seen = events(&mut engine);
    assert!(
        matches!(seen[..], [Event::Controlled { .. }, Event::WindowEnded { .. }, Event::WindowClosed { .. }]),
        "{seen:?}"
    );
    assert_eq!(engine.poll_timeout(), Some(at(3_050)));
}

#[test]
fn a_promise_that_is_taken_away_ends_at_the_next_tick_and_limits_hold_at_once() {
    let mut engine = Engine::new(at(0), depth(10));
    let volume = engine.add_volume(at(0), promise(Span::from_millis(10)));
    let reads = [(); 3].map(|()| read(&mut engine, at(0), volume));
    let concurrency = NonZeroU32::new(2);
    engine.set_volume(at(10), volume, VolumeConfig { concurrency, ..VolumeConfig::default() });
    assert_eq!(issued(&mut engine, at(10)), reads[..2]);
    assert_eq!(engine.target(volume), Some(Span::from_millis(10)));
    engine.handle_timeout(at(50));
    assert_eq!(engine.target(volume), None);
}

#[test]
fn without_a_law_the_promise_is_known_and_judged_all_the_same() {
    let mut engine = Engine::new(at(0), no_control());
    let volume = engine.add_volume(at(0), promise(Span::from_millis(10)));
    assert_eq!(engine.target(volume), Some(Span::from_millis(10)));
    assert_eq!(engine.snapshot().depth_target, None);
    let id = read(&mut engine, at(0), volume);
    assert_eq!(issued(&mut engine, at(0)), [id]);
    engine.handle_timeout(at(1_000));
    let Some(Event::WindowClosed { window, .. }) = events(&mut engine).pop() else { panic!("no window") };
    assert_eq!(window.verdict, Verdict::Missed, "nothing was answered, and one waits for a second");
}

#[test]
fn a_live_change_of_control_loses_no_request_and_answers_none_twice() {
    let mut rig = Rig::new(EngineConfig::default(), Station::constant(8, Span::from_millis(5)));
    let limited = VolumeConfig { max_iops: Iops::new(100.0), ..promise(Span::from_millis(12)) };
    let volumes = [rig.add_volume(limited), rig.add_volume(VolumeConfig::default())];
    let load = |volume, arrivals| Load { volume, kind: IoKind::Write, length: 4096, arrivals };
    let clients = [
        rig.start(load(volumes[0], Arrivals::Closed(100))),
        rig.start(load(volumes[1], Arrivals::Closed(100))),
    ];
    for (change, config) in
        [no_control(), depth(3), promises(), depth(50), no_control(), promises(), depth(1)]
            .into_iter()
            .enumerate()
    {
        rig.drive_until(at(500 * (change as u64 + 1)));
        let before = rig.engine.snapshot();
        let now = rig.now();
        rig.engine.set_config(now, config);
        let after = rig.engine.snapshot();
        assert_eq!((before.queued, before.in_flight), (after.queued, after.in_flight));
        rig.settle();
        assert_eq!(volumes.map(|volume| rig.engine.outstanding(volume)), [100, 100]);
    }
    for client in clients {
        rig.stop(client);
    }
    rig.drive_until(at(10_000));
    assert_eq!(volumes.map(|volume| rig.engine.outstanding(volume)), [0, 0]);
}

#[test]
fn under_the_law_of_promises_limits_hold_and_a_promised_request_goes_before_the_background() {
    let mut engine = Engine::new(at(0), promises());
    let target = Some(Target::Rate(Iops::new(100.0).unwrap()));
    let objective = Objective { target, priority: Priority::default() };
    let concurrency = NonZeroU32::new(2);
    let db = engine.add_volume(at(0), VolumeConfig { objective, concurrency, ..VolumeConfig::default() });
    let batch = engine.add_volume(at(0), VolumeConfig { max_iops: Iops::new(100.0), ..Default::default() });
    let background = [0, 1].map(|_| read(&mut engine, at(0), batch));
    let promised = [0, 1, 2].map(|_| read(&mut engine, at(0), db));
    assert_eq!(issued(&mut engine, at(0)), [promised[0], promised[1], background[0]]);
    assert_eq!(issued(&mut engine, at(10)), [background[1]], "its rate lets it go");
    engine.handle_complete(at(11), promised[0], true);
    assert_eq!(issued(&mut engine, at(11)), [promised[2]]);
}

#[test]
fn what_the_law_of_promises_held_a_volume_to_ends_with_that_law() {
    let mut engine = Engine::new(at(0), promises());
    let target = Some(Target::Latency(Span::from_millis(5)));
    let objective = Objective { target, ..Objective::default() };
    let batch = engine.add_volume(at(0), VolumeConfig::default());
    let db = engine.add_volume(at(0), VolumeConfig { objective, ..VolumeConfig::default() });
    assert!(engine.snapshot().allowance.is_some());
    engine.set_config(at(1), depth(1));
    assert_eq!(engine.snapshot().allowance, None);
    let (promised, other) = (read(&mut engine, at(2), db), read(&mut engine, at(2), batch));
    assert_eq!(issued(&mut engine, at(2)), [other], "both are in the background, in the order of volumes");
    engine.handle_complete(at(3), other, true);
    assert_eq!(issued(&mut engine, at(3)), [promised]);
}

#[test]
fn a_change_of_control_keeps_the_order_of_arrival_within_a_volume() {
    let mut engine = Engine::new(at(0), depth(1));
    let volume = engine.add_volume(at(0), VolumeConfig::default());
    let ids: Vec<IoId> = (0..5).map(|i| read(&mut engine, at(i), volume)).collect();
    let mut seen = issued(&mut engine, at(5));
    engine.set_config(at(6), no_control());
    seen.extend(issued(&mut engine, at(6)));
    assert_eq!(seen, ids);
}

#[test]
fn a_law_is_not_blamed_for_what_was_measured_before_it() {
    let mut engine = Engine::new(at(0), no_control());
    let volume = engine.add_volume(at(0), promise(Span::from_millis(10)));
    let id = read(&mut engine, at(0), volume);
    issued(&mut engine, at(0));
    engine.handle_complete(at(900), id, true);
    engine.handle_reply(at(900), id);
    engine.set_config(at(910), depth(100));
    engine.handle_timeout(at(960));
    assert_eq!(engine.snapshot().depth_target, Some(QueueDepth::new(100)));
}

#[test]
fn the_configuration_that_is_in_force_already_changes_nothing() {
    let mut engine = Engine::new(at(0), depth(100));
    let volume = engine.add_volume(at(0), promise(Span::from_nanos(11_000_001)));
    let other = engine.add_volume(at(0), VolumeConfig::default());
    for _ in 0..9 {
        read(&mut engine, at(0), other);
    }
    read(&mut engine, at(0), volume);
    issued(&mut engine, at(0));
    engine.handle_timeout(at(50));
    let cut = engine.snapshot();
    assert_eq!(cut.depth_target, Some(QueueDepth::new(2)));
    engine.set_config(at(60), depth(100));
    assert_eq!(engine.snapshot(), cut);
    engine.set_config(at(60), depth(101));
    assert_eq!(engine.snapshot().depth_target, Some(QueueDepth::new(101)));
}

#[test]
fn the_number_of_a_removed_volume_is_used_again_and_nothing_of_it_stays() {
    let mut engine = Engine::new(at(0), EngineConfig::default());
    let numbers: BTreeSet<VolumeId> =
        (0..3).map(|_| engine.add_volume(at(0), promise(Span::from_millis(1)))).collect();
    engine.remove_volume(at(0), VolumeId(1));
    assert_eq!(engine.add_volume(at(0), VolumeConfig::default()), VolumeId(1));
    assert_eq!((numbers.len(), engine.target(VolumeId(1))), (3, None));
}

#[test]
#[should_panic(expected = "1 requests outstanding")]
fn a_volume_with_requests_outstanding_cannot_be_removed() {
    let mut engine = Engine::new(at(0), EngineConfig::default());
    let volume = engine.add_volume(at(0), VolumeConfig::default());
    read(&mut engine, at(0), volume);
    engine.remove_volume(at(0), volume);
}
