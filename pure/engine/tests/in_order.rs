//! How promised volumes give way to one another under the law of promises.

use std::collections::VecDeque;

use weir_engine::{Control, Dispatch, Engine, EngineConfig, Event, Request, VolumeConfig};
use weir_model::{Instant, IoId, IoKind, Objective, Span, Target, VolumeId};

const fn at(millis: u64) -> Instant {
    Instant::from_nanos(millis * 1_000_000)
}

/// What a device does.
#[derive(Clone, Copy)]
enum Device {
    /// It answers a request in a millisecond, in the order in which they came to it.
    OneByOne,
    /// It answers each request after so many milliseconds, however many there are.
    AllAtOnce(u64),
}

struct Pool {
    engine: Engine,
    device: Device,
    now: u64,
    /// Each with the millisecond of its answer.
    at_device: VecDeque<(u64, IoId)>,
    /// Of each volume: how long its requests took, in microseconds, and how many there were.
    took: [(u64, u64); 2],
    bounds: Vec<Option<u32>>,
}

impl Pool {
    /// Two volumes that are promised these latencies, in milliseconds.
    fn new(device: Device, limits: [u64; 2]) -> (Self, [VolumeId; 2]) {
        Self::promised(device, limits.map(|limit| Target::Latency(Span::from_millis(limit))))
    }

    fn promised(device: Device, targets: [Target; 2]) -> (Self, [VolumeId; 2]) {
        let config = EngineConfig { control: Control::Promise, ..EngineConfig::default() };
        let mut engine = Engine::new(at(0), config);
        let volumes = targets.map(|target| {
            let objective = Objective { target: Some(target), ..Objective::default() };
            engine.add_volume(at(0), VolumeConfig { objective, ..VolumeConfig::default() })
        });
        let (at_device, bounds) = (VecDeque::new(), Vec::new());
        (Self { engine, device, now: 0, at_device, took: [(0, 0); 2], bounds }, volumes)
    }

    fn read(&mut self, volume: VolumeId) {
        let read = Request { volume, kind: IoKind::Read, offset: 0, length: 4096 };
        self.engine.handle_submit(at(self.now), read);
    }

    /// Runs for a millisecond.
    fn step(&mut self) {
        while let Dispatch::Issue(io) = self.engine.poll_dispatch(at(self.now)) {
            let answer = match self.device {
                Device::OneByOne => self.at_device.back().map_or(self.now, |(last, _)| *last) + 1,
                Device::AllAtOnce(millis) => self.now + millis,
            };
            self.at_device.push_back((answer, io.id));
        }
        self.now += 1;
        let now = at(self.now);
        self.engine.handle_timeout(now);
        while let Some((_, id)) = self.at_device.front().copied().filter(|(answer, _)| *answer <= self.now) {
            self.at_device.pop_front();
            self.engine.handle_complete(now, id, true);
            self.engine.handle_reply(now, id);
        }
        while let Some(event) = self.engine.poll_event() {
            match event {
                Event::Finished { volume, total, .. } => {
                    let took = &mut self.took[volume.0 as usize];
                    *took = (took.0 + total.as_micros(), took.1 + 1);
                }
                Event::InOrder(most) => self.bounds.push(most.map(weir_model::QueueDepth::get)),
                _ => {}
            }
        }
    }

    /// One volume asks 50 times a second; of the other, `crowd` requests are always there. Returns the mean
    /// latencies of the last 20 of 40 seconds, in milliseconds, and how many were answered.
    fn run(limits: [u64; 2], crowd: u64) -> ([u64; 2], u64, Self) {
        let (mut pool, [one, other]) = Self::new(Device::OneByOne, limits);
        (0..crowd).for_each(|_| pool.read(other));
        let mut answered = 0;
        for millis in 0..40_000 {
            if millis % 20 == 0 {
                pool.read(one);
            }
            pool.step();
            (answered..pool.took[1].1).for_each(|_| pool.read(other));
            answered = pool.took[1].1;
            if millis == 20_000 {
                pool.took = [(0, 0); 2];
                answered = 0;
            }
        }
        let all = pool.took[0].1 + pool.took[1].1;
        (pool.took.map(|(micros, requests)| micros / requests.max(1) / 1_000), all, pool)
    }
}

#[test]
fn a_promised_volume_with_time_gives_way_to_one_without_and_both_promises_are_kept() {
    let ([one, other], answered, pool) = Pool::run([50, 4_000], 200);
    assert!(one < 50, "{one} ms; at the device alone it would wait for 200");
    assert!(other < 4_000, "{other} ms");
    assert!(answered > 19_900, "the device is never idle: {answered} in 20 s");
    assert!(pool.bounds.iter().flatten().count() > 0);
}

#[test]
fn promised_volumes_that_are_alike_are_not_put_in_order() {
    let (_, answered, pool) = Pool::run([50, 50], 200);
    assert_eq!(pool.bounds, []);
    assert!(answered > 19_900);
}

/// A volume asks 50 times a second, and the other one 1,000 times, of a device that takes 4 ms for each
/// request, however many there are. Returns the mean latency of the second over a minute, in milliseconds,
/// and the bounds that were set.
fn beside_an_easy_promise(tight: u64) -> (u64, Vec<Option<u32>>) {
    let (mut pool, [one, other]) = Pool::new(Device::AllAtOnce(4), [tight, 20]);
    for millis in 0..60_000 {
        if millis % 20 == 0 {
            pool.read(one);
        }
        pool.read(other);
        pool.step();
    }
    let (micros, requests) = pool.took[1];
    (micros / requests / 1_000, pool.bounds)
}

#[test]
fn a_promise_that_is_just_kept_holds_nobody_back() {
    assert_eq!(beside_an_easy_promise(4), (4, Vec::new()));
}

#[test]
fn a_promise_that_giving_way_does_not_help_does_not_break_another_one() {
    let (other, bounds) = beside_an_easy_promise(3);
    assert!(bounds.iter().flatten().count() > 0, "it was tried");
    assert!(other < 10, "{other} ms; if an order were never given up, 18");
}

/// A volume with so many requests comes to another one that has had `crowd` requests at the device for four
/// seconds. Returns the mean latencies of the last 20 of 60 seconds, in milliseconds.
fn after_a_crowd(limits: [u64; 2], depth: u64, crowd: u64) -> [u64; 2] {
    let (mut pool, volumes) = Pool::new(Device::OneByOne, limits);
    (0..crowd).for_each(|_| pool.read(volumes[1]));
    let mut answered = [0; 2];
    for millis in 0..60_000 {
        if millis == 4_000 {
            (0..depth).for_each(|_| pool.read(volumes[0]));
        }
        if millis == 40_000 {
            (pool.took, answered) = ([(0, 0); 2], [0; 2]);
        }
        pool.step();
        for (which, volume) in volumes.into_iter().enumerate() {
            (answered[which]..pool.took[which].1).for_each(|_| pool.read(volume));
            answered[which] = pool.took[which].1;
        }
    }
    pool.took.map(|(micros, requests)| micros / requests.max(1) / 1_000)
}

#[test]
fn a_volume_that_comes_to_a_crowd_is_helped() {
    for (limit, depth, crowd) in [(10, 1, 128), (10, 4, 256), (20, 1, 64), (20, 4, 256)] {
        let [one, other] = after_a_crowd([limit, 10_000], depth, crowd);
        assert!((1..limit).contains(&one), "{depth} beside {crowd}: {one} ms of {limit}");
        assert!(other < 10_000, "{depth} beside {crowd}: {other} ms");
    }
}
