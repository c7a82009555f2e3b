//! How volumes that are promised nothing share a device under the law of promises.

use std::collections::VecDeque;

use weir_engine::{Control, Dispatch, Engine, EngineConfig, Event, Request, VolumeConfig};
use weir_model::{Instant, IoId, IoKind, Objective, Priority, Span, VolumeId};

const fn at(millis: u64) -> Instant {
    Instant::from_nanos(millis * 1_000_000)
}

/// An engine whose device answers a request in a millisecond, one after the other, and each of these volumes
/// always has so many requests.
struct Pool {
    engine: Engine,
    now: u64,
    at_device: VecDeque<(IoId, VolumeId)>,
    answered: Vec<u32>,
    quanta: Vec<Option<Span>>,
}

impl Pool {
    fn new(volumes: &[(f64, u32)]) -> Self {
        let config = EngineConfig { control: Control::Promise, ..EngineConfig::default() };
        let mut engine = Engine::new(at(0), config);
        for (priority, requests) in volumes {
            let objective = Objective { target: None, priority: Priority::new(*priority).unwrap() };
            let volume = engine.add_volume(at(0), VolumeConfig { objective, ..VolumeConfig::default() });
            (0..*requests).for_each(|_| read(&mut engine, at(0), volume));
        }
        let (at_device, answered) = (VecDeque::new(), vec![0; volumes.len()]);
        Self { engine, now: 0, at_device, answered, quanta: Vec::new() }
    }

    /// Returns how many requests of each volume were answered in so many seconds.
    fn run(&mut self, seconds: u64) -> Vec<u32> {
        self.answered.fill(0);
        for _ in 0..seconds * 1_000 {
            while let Dispatch::Issue(io) = self.engine.poll_dispatch(at(self.now)) {
                self.at_device.push_back((io.id, io.volume));
            }
            self.now += 1;
            let now = at(self.now);
            self.engine.handle_timeout(now);
            if let Some((id, volume)) = self.at_device.pop_front() {
                self.engine.handle_complete(now, id, true);
                self.engine.handle_reply(now, id);
                self.answered[volume.0 as usize] += 1;
                read(&mut self.engine, now, volume);
            }
            while let Some(event) = self.engine.poll_event() {
                if let Event::TakingTurns { quantum } = event {
                    self.quanta.push(quantum);
                }
            }
        }
        self.answered.clone()
    }
}

fn read(engine: &mut Engine, now: Instant, volume: VolumeId) {
    engine.handle_submit(now, Request { volume, kind: IoKind::Read, offset: 0, length: 4096 });
}

#[test]
fn volumes_without_a_promise_that_always_have_requests_get_the_device_by_priority() {
    let mut pool = Pool::new(&[(4.0, 16), (1.0, 64)]);
    pool.run(20);
    let got = pool.run(20);
    let ratio = f64::from(got[0]) / f64::from(got[1]);
    assert!((3.6..4.4).contains(&ratio), "{got:?}");
    assert_eq!(pool.quanta, [Some(Span::from_millis(150))]);
}

#[test]
fn a_volume_without_a_promise_that_is_alone_takes_no_turns() {
    let mut pool = Pool::new(&[(1.0, 64)]);
    pool.run(5);
    assert_eq!(pool.quanta, []);
}
