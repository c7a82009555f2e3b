//! Replies to heavy writers are held, in order and within the ceiling, and nobody else's are.

use std::sync::mpsc::{Sender, channel};

use weir_engine::{
    Control, Dispatch, Engine, EngineConfig, Entry, Event, Input, OneSidedPidConfig, Outcome, PidConfig,
    Recorder, Replay, Request, Throttle, VolumeConfig,
};
use weir_model::{Bandwidth, Instant, IoId, IoKind, Iops, Span, VolumeId};
use weir_testkit::{Arrivals, Load, Rig, Station};

const THRESHOLD: Span = Span::from_millis(2);
const CEILING: Span = Span::from_millis(20);

const fn at(micros: u64) -> Instant {
    Instant::from_nanos(micros * 1_000)
}

fn pid(threshold: Span) -> EngineConfig {
    let law = OneSidedPidConfig { smoothing: Span::ZERO, ceiling: CEILING, ..OneSidedPidConfig::default() };
    let write_limit = Bandwidth::new(4096).unwrap();
    let control = Control::Pid(PidConfig { law, threshold, write_limit });
    EngineConfig { control, ..EngineConfig::default() }
}

/// A pool in which `writer` is a heavy writer and a delay is in force, at 1 s.
struct Scene {
    engine: Engine,
    writer: VolumeId,
    reader: VolumeId,
}

const START: u64 = 1_000_000;

impl Scene {
    fn new() -> Self {
        Self::with(Engine::new(at(0), pid(THRESHOLD)))
    }

    /// The writer writes 8 KiB in a second, and a read takes 10 ms.
    fn with(mut engine: Engine) -> Self {
        let [writer, reader] = [(); 2].map(|()| engine.add_volume(at(0), VolumeConfig::default()));
        let mut scene = Self { engine, writer, reader };
        for (volume, kind, length) in
            [(writer, IoKind::Write, 8192), (reader, IoKind::Write, 2048), (reader, IoKind::Read, 4096)]
        {
            let id = scene.start(START - 20_000, volume, kind, length);
            assert_eq!(scene.engine.handle_complete(at(START - 10_000), id, true), None, "no delay yet");
            scene.engine.handle_reply(at(START - 10_000), id);
        }
        scene.engine.handle_timeout(at(START));
        while scene.engine.poll_event().is_some() {}
        assert!(scene.engine.is_heavy_writer(writer) && !scene.engine.is_heavy_writer(reader));
        scene
    }

    fn throttle(&self) -> Throttle {
        self.engine.snapshot().throttle.expect("the one-sided PID rules")
    }

    /// A request that is at the device.
    fn start(&mut self, micros: u64, volume: VolumeId, kind: IoKind, length: u32) -> IoId {
        let request = Request { volume, kind, offset: 0, length };
        let id = self.engine.handle_submit(at(micros), request);
        let Dispatch::Issue(io) = self.engine.poll_dispatch(at(micros)) else { panic!("it waits") };
        assert_eq!(io.id, id);
        id
    }

    /// Until when the reply to a request is held that the device finishes at once.
    fn complete(&mut self, micros: u64, volume: VolumeId, kind: IoKind) -> (IoId, Option<Instant>) {
        let id = self.start(micros, volume, kind, 4096);
        (id, self.engine.handle_complete(at(micros), id, true))
    }
}

#[test]
fn a_reply_to_a_heavy_writer_is_held_for_the_delay_while_its_place_at_the_device_is_free() {
    let mut scene = Scene::new();
    let Throttle { threshold, wait, delay, is_at_ceiling } = scene.throttle();
    assert_eq!((threshold, wait, is_at_ceiling), (THRESHOLD, Span::from_millis(10), false));
    // By the equation: 0.25 x (10 ms + 0.1 s / 0.2 s x (10 ms - 0.9 x 2 ms)), rounded up to a step.
    assert_eq!(delay, Span::from_micros(4_000));

    let id = scene.start(START, scene.writer, IoKind::Write, 4096);
    let until = at(START + 5_000) + delay;
    assert_eq!(scene.engine.handle_complete(at(START + 5_000), id, true), Some(until));
    assert_eq!(scene.engine.snapshot().in_flight, 0);
    assert_eq!(scene.engine.outstanding(scene.writer), 1, "until the reply is out");
    assert_eq!(scene.engine.poll_timeout(), Some(until));
    assert_eq!(scene.engine.poll_release(), None);
    scene.engine.handle_timeout(until);
    assert_eq!(scene.engine.poll_release(), Some(id));
    assert_eq!(scene.engine.poll_release(), None);
    scene.engine.handle_reply(until, id);
    let Some(Event::Finished { device, total, .. }) = scene.engine.poll_event() else { panic!("no event") };
    assert_eq!((device, total), (Span::from_millis(5), Span::from_millis(5) + delay));
    assert_eq!(scene.engine.outstanding(scene.writer), 0);
}

#[test]
fn while_nobody_is_a_heavy_writer_the_delay_does_not_add_up() {
    let mut engine = Engine::new(at(0), pid(THRESHOLD));
    let [writer, reader] = [(); 2].map(|()| engine.add_volume(at(0), VolumeConfig::default()));
    let mut scene = Scene { engine, writer, reader };
    let written = scene.start(0, writer, IoKind::Write, 8192);
    assert_eq!(scene.engine.handle_complete(at(1_000), written, true), None);
    scene.engine.handle_reply(at(1_000), written);
    for period in 1..=11 {
        let end = period * 100_000;
        let read = scene.start(end - 20_000, reader, IoKind::Read, 4096);
        assert_eq!(scene.engine.handle_complete(at(end - 10_000), read, true), None);
        scene.engine.handle_reply(at(end - 10_000), read);
        scene.engine.handle_timeout(at(end));
        // Alone, the first term is 0.25 x (10 ms - 0.9 x 2 ms); with the second, 1.025 ms more each period.
        let added = Span::from_micros(1_000 * u64::saturating_sub(period, 9));
        let delay = scene.throttle().delay;
        assert!(
            (Span::from_millis(2) + added..Span::from_millis(3) + added).contains(&delay),
            "{period}: {delay:?}"
        );
        assert_eq!(scene.engine.is_heavy_writer(writer), period >= 10);
    }
}

#[test]
fn reads_and_flushes_errors_and_those_who_write_little_are_not_held() {
    let mut scene = Scene::new();
    assert!(!scene.throttle().delay.is_zero());
    for (volume, kind) in [
        (scene.reader, IoKind::Read),
        (scene.reader, IoKind::Write),
        (scene.writer, IoKind::Read),
        (scene.writer, IoKind::Flush),
        (scene.writer, IoKind::Trim),
    ] {
        assert_eq!(scene.complete(START, volume, kind).1, None, "{kind:?}");
    }
    assert!(scene.complete(START, scene.writer, IoKind::WriteZeroes).1.is_some());
    let failed = scene.start(START, scene.writer, IoKind::Write, 4096);
    assert_eq!(scene.engine.handle_complete(at(START), failed, false), None, "an error");
}

#[test]
fn a_shorter_delay_lets_no_reply_overtake_one_that_was_held_before() {
    let mut scene = Scene::new();
    let (first, until) = scene.complete(START + 99_000, scene.writer, IoKind::Write);
    let until = until.expect("it is held");
    assert_eq!(scene.complete(START + 99_000, scene.reader, IoKind::Read).1, None);
    scene.engine.handle_timeout(at(START + 100_000));
    let delay = scene.throttle().delay;
    assert!(!delay.is_zero() && at(START + 101_000) + delay < until, "{delay}");
    let (second, same) = scene.complete(START + 101_000, scene.writer, IoKind::Write);
    assert_eq!(same, Some(until));
    scene.engine.handle_timeout(until);
    assert_eq!([scene.engine.poll_release(), scene.engine.poll_release()], [Some(first), Some(second)]);
}

#[test]
fn a_reply_that_was_handed_over_early_is_not_released_again() {
    let mut scene = Scene::new();
    let (id, until) = scene.complete(START, scene.writer, IoKind::Write);
    scene.engine.handle_reply(at(START), id);
    let next = scene.start(START, scene.writer, IoKind::Write, 4096);
    assert_eq!(next.slot, id.slot, "the slot is in use again");
    scene.engine.handle_timeout(until.expect("it was held"));
    assert_eq!(scene.engine.poll_release(), None);
}

#[test]
fn another_law_releases_every_reply_and_another_threshold_keeps_the_delay() {
    let mut scene = Scene::new();
    let delay = scene.throttle().delay;
    let held = [(); 3].map(|()| scene.complete(START, scene.writer, IoKind::Write).0);
    scene.engine.set_config(at(START), pid(Span::from_millis(5)));
    assert_eq!((scene.throttle().delay, scene.throttle().threshold), (delay, Span::from_millis(5)));
    assert_eq!(scene.engine.poll_release(), None);
    scene.engine.set_config(at(START), EngineConfig { control: Control::None, ..pid(THRESHOLD) });
    assert_eq!([(); 3].map(|()| scene.engine.poll_release()), held.map(Some));
    assert_eq!(scene.complete(START, scene.writer, IoKind::Write).1, None);
}

#[test]
fn reads_that_hang_count_by_their_age() {
    let mut scene = Scene::new();
    scene.start(START, scene.reader, IoKind::Read, 4096);
    scene.engine.handle_timeout(at(START + 100_000));
    assert_eq!(scene.throttle().wait, Span::from_millis(100));
    scene.engine.handle_timeout(at(START + 200_000));
    assert_eq!(scene.throttle().wait, Span::from_millis(200));
    assert_eq!((scene.throttle().delay, scene.throttle().is_at_ceiling), (CEILING, true));
}

#[test]
fn what_reads_wait_for_the_caps_of_their_own_volume_asks_for_no_delay() {
    let mut scene = Scene::new();
    let slow = VolumeConfig { max_iops: Iops::new(1.0), ..VolumeConfig::default() };
    scene.engine.set_volume(at(START), scene.reader, slow);
    let read = Request { volume: scene.reader, kind: IoKind::Read, offset: 0, length: 4096 };
    let [first, second] = [(); 2].map(|()| scene.engine.handle_submit(at(START), read));
    let Dispatch::Issue(io) = scene.engine.poll_dispatch(at(START)) else { panic!("the first may go") };
    assert_eq!(io.id, first);
    scene.engine.handle_complete(at(START + 1_000), first, true);
    scene.engine.handle_timeout(at(START + 100_000));
    assert_eq!(scene.throttle().wait, Span::from_millis(1));
    assert!(
        !matches!(scene.engine.poll_dispatch(at(START + 100_000)), Dispatch::Issue(_)),
        "{second:?} waits"
    );
    for millis in (200..=900).step_by(100) {
        scene.engine.handle_timeout(at(START + millis * 1_000));
    }
    assert!(scene.throttle().wait.is_zero() && scene.throttle().delay.is_zero(), "{:?}", scene.throttle());
}

#[derive(Debug)]
struct Tape(Sender<(Instant, Entry)>);

impl Recorder for Tape {
    fn record(&mut self, now: Instant, entry: &Entry) {
        self.0.send((now, entry.clone())).expect("the test still listens");
    }
}

#[test]
fn a_recording_says_until_when_replies_were_held_and_a_replay_decides_the_same() {
    let (tape, recording) = channel();
    let mut rig = Rig::new(pid(THRESHOLD), Station::constant(1, Span::from_millis(3)));
    rig.engine = Engine::with_recorder(at(0), pid(THRESHOLD), Box::new(Tape(tape)));
    for (kind, arrivals) in [(IoKind::Write, 12), (IoKind::Read, 1)] {
        let volume = rig.add_volume(VolumeConfig::default());
        rig.start(Load { volume, kind, length: 4096, arrivals: Arrivals::Closed(arrivals) });
    }
    rig.drive_until(at(4_000_000));
    drop(rig);
    let (mut replay, mut held) = (Replay::new(), 0);
    for (now, entry) in recording {
        replay.step(now, &entry).unwrap();
        held += u32::from(matches!(
            entry,
            Entry::Applied { input: Input::Complete { .. }, outcome: Outcome::Held(_) }
        ));
    }
    assert!(held > 100, "{held} replies were held");
    assert!(replay.finish().is_ok());
}

#[test]
fn writers_with_a_fixed_number_of_requests_leave_readers_the_wait_of_the_threshold() {
    let threshold = Span::from_millis(25);
    let mut rig = Rig::new(pid(threshold), Station::constant(1, Span::from_millis(3)));
    let [writer, reader] = [(); 2].map(|()| rig.add_volume(VolumeConfig::default()));
    let load = |volume, kind, arrivals| Load { volume, kind, length: 4096, arrivals };
    let writers = rig.start(load(writer, IoKind::Write, Arrivals::Closed(12)));
    rig.start(load(reader, IoKind::Read, Arrivals::Closed(1)));
    rig.drive_until(at(4_000_000));
    let throttle = rig.engine.snapshot().throttle.expect("the one-sided PID rules");
    let wait = throttle.wait.as_secs_f64() * 1e3;
    assert!((18.0..=25.0).contains(&wait), "without a delay it would be 39 ms: {throttle:?}");
    rig.stop(writers);
    rig.drive_until(at(5_000_000));
    let throttle = rig.engine.snapshot().throttle.expect("the one-sided PID rules");
    assert!(throttle.delay.is_zero(), "a second after the writers have stopped: {throttle:?}");
}
