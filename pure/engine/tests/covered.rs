//! What goes before the background under the law of promises: a promised rate, and no more than that.

use std::collections::VecDeque;

use weir_engine::{
    Control, Covered, Dispatch, Engine, EngineConfig, Event, LoweredRates, Request, VolumeConfig,
};
use weir_model::{Instant, IoId, IoKind, Iops, Objective, Priority, Target, VolumeId};

/// A volume that always has so many requests, from and until these seconds.
#[derive(Clone, Copy)]
struct Client {
    promised: Option<f64>,
    priority: f64,
    requests: u64,
    from: u64,
    until: u64,
}

impl Client {
    const fn priority(self, priority: f64) -> Self {
        Self { priority, ..self }
    }

    const fn until(self, until: u64) -> Self {
        Self { until, ..self }
    }
}

/// A client that is promised a rate.
const fn promised(rate: f64, requests: u64) -> Client {
    Client { promised: Some(rate), ..background(requests) }
}

const fn background(requests: u64) -> Client {
    Client { promised: None, priority: 1.0, requests, from: 0, until: u64::MAX }
}

/// A pool on a device that does a request in each millisecond, in the order in which they came to it.
struct Pool {
    engine: Engine,
    clients: Vec<(VolumeId, Client)>,
    at_device: VecDeque<(IoId, VolumeId)>,
    millis: u64,
    asked: Vec<u64>,
    answered: Vec<u64>,
    covered: Vec<Covered>,
}

impl Pool {
    fn new(clients: &[Client]) -> Self {
        let config = EngineConfig { control: Control::Promise, ..EngineConfig::default() };
        let mut engine = Engine::new(Instant::ORIGIN, config);
        let add = |client: &Client| {
            let target = client.promised.and_then(Iops::new).map(Target::Rate);
            let priority = Priority::new(client.priority).unwrap();
            let objective = Objective { target, priority };
            let config = VolumeConfig { objective, ..VolumeConfig::default() };
            (engine.add_volume(Instant::ORIGIN, config), *client)
        };
        let clients: Vec<_> = clients.iter().map(add).collect();
        let none = vec![0; clients.len()];
        let covered = vec![Covered::ALL; clients.len()];
        let (asked, answered, at_device) = (none.clone(), none, VecDeque::new());
        Self { engine, clients, at_device, millis: 0, asked, answered, covered }
    }

    fn now(&self) -> Instant {
        Instant::from_nanos(self.millis * 1_000_000)
    }

    /// Runs until this second.
    fn run_until(&mut self, second: u64) {
        while self.millis < second * 1_000 {
            let now = self.now();
            for at in 0..self.clients.len() {
                let (volume, client) = self.clients[at];
                let is_there = (client.from..client.until).contains(&(self.millis / 1_000));
                while is_there && self.asked[at] < self.answered[at] + client.requests {
                    self.asked[at] += 1;
                    let read = Request { volume, kind: IoKind::Read, offset: 0, length: 4096 };
                    self.engine.handle_submit(now, read);
                }
            }
            while let Dispatch::Issue(io) = self.engine.poll_dispatch(now) {
                self.at_device.push_back((io.id, io.volume));
            }
            self.millis += 1;
            let now = self.now();
            self.engine.handle_timeout(now);
            if let Some((id, volume)) = self.at_device.pop_front() {
                self.engine.handle_complete(now, id, true);
                self.engine.handle_reply(now, id);
                self.answered[volume.0 as usize] += 1;
            }
            while let Some(event) = self.engine.poll_event() {
                if let Event::Covered { volume, covered } = event {
                    self.covered[volume.0 as usize] = covered;
                }
            }
        }
    }

    /// What each client gets a second, between these seconds.
    fn rates(&mut self, from: u64, until: u64) -> Vec<u64> {
        self.run_until(from);
        let before = self.answered.clone();
        self.run_until(until);
        self.answered.iter().zip(before).map(|(now, before)| (now - before) / (until - from)).collect()
    }

    fn lowered(&self) -> Option<LoweredRates> {
        self.engine.snapshot().rates
    }
}

#[test]
fn promised_rates_that_fit_are_both_kept_and_the_device_is_never_idle() {
    let mut pool = Pool::new(&[promised(450.0, 16), promised(150.0, 64)]);
    let got = pool.rates(20, 60);
    assert!(got[0] >= 450 && got[1] >= 150 && got[0] + got[1] >= 999, "{got:?}");
    assert_eq!(pool.lowered(), None);
}

#[test]
fn background_has_its_part_of_what_promised_rates_leave() {
    let mut pool = Pool::new(&[promised(450.0, 16), promised(150.0, 16), background(64)]);
    let got = pool.rates(20, 60);
    assert!(got[0] >= 450 && got[1] >= 150, "{got:?}");
    assert!(got[2] > 100 && got.iter().sum::<u64>() >= 998, "of some 400 that are left: {got:?}");
}

#[test]
fn a_rate_that_nobody_misses_leaves_the_device_to_whoever_asks() {
    let mut pool = Pool::new(&[promised(150.0, 16), promised(450.0, 64)]);
    let got = pool.rates(20, 60);
    assert!((195..=205).contains(&got[0]) && got[0] + got[1] >= 999, "by depth: {got:?}");
}

#[test]
fn a_volume_that_is_alone_has_all_of_its_requests_covered() {
    let mut pool = Pool::new(&[promised(450.0, 16), promised(450.0, 64).until(20)]);
    pool.run_until(19);
    assert!(pool.covered.iter().all(Covered::is_bounded), "{:?}", pool.covered);
    let got = pool.rates(23, 30);
    assert!(got[0] >= 999, "{got:?}");
    assert_eq!(pool.covered[0], Covered::ALL);
}

#[test]
fn rates_that_do_not_fit_are_lowered_by_priority_and_said_to_be() {
    let mut pool = Pool::new(&[promised(700.0, 16).priority(4.0), promised(700.0, 64)]);
    let got = pool.rates(20, 60);
    assert!(got[0] + got[1] >= 990, "the device is busy: {got:?}");
    let [high, low] = [700 - got[0], 700 - got[1]];
    assert!((3 * high..=5 * high).contains(&low), "{got:?}");
    assert!(pool.lowered().is_some_and(|rates| rates.least < rates.most && rates.most < 1_000));
}

#[test]
fn a_target_that_no_device_can_reach_does_not_break_one_that_counts_more() {
    let mut pool = Pool::new(&[promised(1e6, 64), promised(450.0, 16).priority(1_000.0)]);
    let got = pool.rates(20, 60);
    assert!(got[1] >= 450, "{got:?}");
    assert!(got[0] >= 500, "the rest is for the other: {got:?}");
}

#[test]
fn a_promise_that_counts_more_gives_no_claim_to_more_than_it_covers() {
    let mut pool = Pool::new(&[promised(150.0, 64).priority(1_000.0), background(64), background(64)]);
    let got = pool.rates(20, 60);
    assert!(got[0] >= 150 && got[1] > 200 && got[2] > 200, "{got:?}");
}

#[test]
fn after_a_load_that_did_not_fit_the_background_has_its_part_again_within_half_a_minute() {
    let mut pool = Pool::new(&[promised(450.0, 16), background(64), promised(750.0, 64).until(15)]);
    let got = pool.rates(45, 60);
    assert!(got[0] >= 450 && got[1] > 250, "{got:?}");
}
