//! Where the time of requests went, and on whose behalf they waited: causes that are planted are named.

use std::num::NonZeroU32;

use weir_engine::{
    Charged, Control, DepthFeedbackConfig, Dispatch, Engine, EngineConfig, Hold, Request, TimeSpent,
    VolumeConfig, Whom,
};
use weir_model::{Instant, IoId, IoKind, Iops, Objective, QueueDepth, Span, Target, VolumeId};
use weir_testkit::{Arrivals, Load, Rig, Station};

const fn ms(millis: u64) -> Span {
    Span::from_millis(millis)
}

fn at(millis: u64) -> Instant {
    Instant::ORIGIN + ms(millis)
}

/// A pool whose device may have so many requests.
fn facade(depth: u32) -> EngineConfig {
    let initial_depth = QueueDepth::new(depth);
    let law = DepthFeedbackConfig { initial_depth, ..DepthFeedbackConfig::default() };
    EngineConfig { control: Control::Facade(law), ..EngineConfig::default() }
}

/// An engine whose requests a test submits and completes by hand.
struct ByHand {
    engine: Engine,
    at_device: Vec<(VolumeId, IoId)>,
}

impl ByHand {
    fn new(config: EngineConfig) -> Self {
        Self { engine: Engine::new(Instant::ORIGIN, config), at_device: Vec::new() }
    }

    fn add(&mut self, config: VolumeConfig) -> VolumeId {
        self.engine.add_volume(Instant::ORIGIN, config)
    }

    fn submit(&mut self, now: Instant, volume: VolumeId, requests: u32) {
        for _ in 0..requests {
            self.engine.handle_submit(now, Request { volume, kind: IoKind::Read, offset: 0, length: 4096 });
        }
        self.dispatch(now);
    }

    fn dispatch(&mut self, now: Instant) {
        while let Dispatch::Issue(io) = self.engine.poll_dispatch(now) {
            self.at_device.push((io.volume, io.id));
        }
    }

    /// The device finishes the oldest request of a volume.
    fn finish(&mut self, now: Instant, volume: VolumeId) {
        let oldest = self.at_device.iter().position(|(of, _)| *of == volume).expect("it has one there");
        let (_, id) = self.at_device.remove(oldest);
        self.engine.handle_complete(now, id, true);
        self.engine.handle_reply(now, id);
        self.dispatch(now);
    }

    fn spent(&mut self, now: Instant, volume: VolumeId) -> TimeSpent {
        self.engine.handle_timeout(now);
        self.engine.time_spent(now, volume, Engine::REMEMBERED)
    }
}

fn held(spent: &TimeSpent, hold: Hold) -> Span {
    let index = Hold::ALL.iter().position(|known| *known == hold).unwrap();
    spent.holds[index]
}

fn charged(volume: VolumeId, time: Span, requests: u64) -> Charged {
    Charged { whom: Whom::Volume(volume), time, requests }
}

#[test]
fn a_wait_at_a_full_device_is_charged_to_those_there_by_their_requests() {
    let mut pool = ByHand::new(facade(4));
    let [hog, db] = [(); 2].map(|()| pool.add(VolumeConfig::default()));
    pool.submit(at(0), hog, 3);
    pool.submit(at(0), db, 2);
    (0..3).for_each(|_| pool.finish(at(8), hog));
    pool.finish(at(8), db);
    // For 12 ms, the last request of the database has the device for itself, and nobody waits.
    let spent = pool.spent(at(20), db);
    assert_eq!(spent.waited_for, [charged(hog, ms(6), 3), charged(db, ms(2), 2)]);
    assert_eq!((held(&spent, Hold::Depth), spent.sum().turn), (ms(8), Span::ZERO), "it is still there");
    pool.finish(at(20), db);
    let spent = pool.spent(at(40), db);
    assert_eq!(spent.sum().turn, ms(8));
    let beside: Vec<_> = spent.beside.iter().map(|charged| charged.whom).collect();
    assert_eq!(beside, [Whom::Volume(db), Whom::Volume(hog)]);
}

#[test]
fn what_the_own_limit_took_and_what_the_turn_took_are_told_apart_to_the_nanosecond() {
    let mut pool = ByHand::new(facade(1));
    let [hog, capped] = [None, Iops::new(100.0)]
        .map(|max_iops| pool.add(VolumeConfig { max_iops, ..VolumeConfig::default() }));
    pool.submit(at(0), capped, 2);
    pool.finish(at(1), capped);
    pool.submit(at(1), hog, 1);
    // The rate lets the second request go 10 ms after the first, less a burst of 5 ms. The hog is there
    // until 17 ms.
    pool.dispatch(at(5));
    pool.finish(at(17), hog);
    pool.finish(at(19), capped);
    let (_, split) = pool.engine.last_answered().unwrap();
    assert_eq!((split.own_limit, split.turn, split.device), (ms(5), ms(12), ms(2)));
    let spent = pool.spent(at(40), capped);
    assert_eq!((held(&spent, Hold::Rate), held(&spent, Hold::Depth)), (ms(5), ms(12)));
    assert_eq!(spent.waited_for, [charged(hog, ms(12), 1)]);
}

#[test]
fn a_bound_of_the_background_is_charged_to_the_promise_that_it_protects() {
    let config = EngineConfig { control: Control::Promise, ..EngineConfig::default() };
    let mut rig = Rig::new(config, Station::constant(4, ms(1)));
    let objective = Objective { target: Some(Target::Latency(ms(3))), ..Objective::default() };
    let db = rig.add_volume(VolumeConfig { objective, ..VolumeConfig::default() });
    let hog = rig.add_volume(VolumeConfig::default());
    let load =
        |volume, depth| Load { volume, kind: IoKind::Read, length: 4096, arrivals: Arrivals::Closed(depth) };
    rig.start(load(db, 2));
    rig.start(load(hog, 32));
    rig.drive_until(at(20_000));
    let spent = rig.engine.time_spent(rig.now(), hog, ms(10_000));
    assert_eq!(spent.waited_for[0].whom, Whom::Volume(db), "{:?}", spent.waited_for);
    let most = Hold::ALL.iter().zip(spent.holds).max_by_key(|(_, time)| *time).unwrap();
    assert_eq!(*most.0, Hold::BackgroundBound);
    assert!(spent.sum().turn > spent.sum().device, "it waits before the device: {:?}", spent.sum());
    let spent = rig.engine.time_spent(rig.now(), db, ms(10_000));
    assert_eq!(
        (spent.sum().turn, spent.sum().own_limit),
        (Span::ZERO, Span::ZERO),
        "nothing holds a promise"
    );
}

#[test]
fn a_bound_of_the_volume_itself_is_no_wait_for_others() {
    let mut pool = ByHand::new(facade(8));
    let concurrency = NonZeroU32::new(1);
    let volume = pool.add(VolumeConfig { concurrency, ..VolumeConfig::default() });
    pool.submit(at(0), volume, 2);
    pool.finish(at(6), volume);
    let spent = pool.spent(at(30), volume);
    assert_eq!((held(&spent, Hold::Concurrency), spent.waited_for.len()), (ms(6), 0));
}

#[test]
fn without_control_nothing_waits_and_those_beside_it_at_the_device_are_named() {
    let config = EngineConfig { control: Control::None, ..EngineConfig::default() };
    let mut pool = ByHand::new(config);
    let [hog, db] = [(); 2].map(|()| pool.add(VolumeConfig::default()));
    pool.submit(at(0), hog, 9);
    pool.submit(at(0), db, 1);
    pool.finish(at(10), db);
    let spent = pool.spent(at(30), db);
    assert_eq!((spent.sum().turn, spent.sum().device), (Span::ZERO, ms(10)));
    assert_eq!(spent.beside[0], charged(hog, ms(9), 9));
}

#[test]
fn a_volume_that_is_gone_keeps_its_charges_and_the_next_of_its_number_gets_none() {
    let mut pool = ByHand::new(facade(1));
    let [hog, db] = [(); 2].map(|()| pool.add(VolumeConfig::default()));
    pool.submit(at(0), hog, 1);
    pool.submit(at(0), db, 1);
    pool.finish(at(5), hog);
    pool.engine.remove_volume(at(5), hog);
    let next = pool.engine.add_volume(at(5), VolumeConfig::default());
    assert_eq!(next, hog, "the number is used again");
    let spent = pool.spent(at(30), db);
    assert_eq!(spent.waited_for, [Charged { whom: Whom::Gone, time: ms(5), requests: 1 }]);
}

#[test]
fn a_thousand_volumes_are_charged_whole_though_few_are_named() {
    let mut pool = ByHand::new(facade(900));
    let volumes: Vec<_> = (0..1_000).map(|_| pool.add(VolumeConfig::default())).collect();
    volumes.iter().for_each(|volume| pool.submit(at(0), *volume, 1));
    let last = *volumes.last().unwrap();
    let spent = pool.spent(at(30), last);
    let sum = spent.waited_for.iter().fold(Span::ZERO, |sum, charged| sum + charged.time);
    assert_eq!((sum, held(&spent, Hold::Depth)), (ms(30), ms(30)), "it still waits");
    assert!(spent.waited_for.len() <= 13, "{:?}", spent.waited_for);
    assert_eq!(spent.waited_for[0].whom, Whom::Others);
}
