//! An engine, with legal calls in any order, and with any configuration.
//!
//! After each call the target checks that every request is known, at the right stage, and counted once. At
//! the end, all requests must leave, and a replay of the recording must come to the same decisions.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError};

use weir_control::Grant;
use weir_engine::{
    Control, DepthFeedbackConfig, Dispatch, Engine, EngineConfig, Entry, Event, Grants, LeasedConfig,
    MaestroConfig, OneSidedPidConfig, PidConfig, Recorder, Replay, Request, Standing, Strain,
    TotalConcurrency, VolumeConfig,
};
use weir_model::{
    Bandwidth, Instant, IoId, IoKind, Iops, MilliIops, Objective, Percentile, Priority, QueueDepth, Slo,
    SloPoint, Span, Target as Metric, TimeShare, VolumeId,
};

use super::Target;
use super::bytes::Bytes;
use crate::script::Script;
use crate::seen::Seen;

pub(super) const TARGET: Target = Target {
    name: "engine",
    run,
    seeds,
    words: &[&[0, 0], &[1], &[5, 2, 59, 154, 202, 0]],
    must_reach: &[
        "issued",
        "finished",
        "aborted",
        "controlled",
        "granted",
        "allocated",
        "window ended",
        "window closed",
        "observed",
        "no control",
        "facade",
        "maestro",
        "leased",
        "one-sided pid",
        "promises",
        "shared promises",
        "stands",
        "weighed",
        "throttled",
        "held",
        "released",
        "removed",
        "port of a volume",
    ],
};

/// The most volumes at a time.
const MOST_VOLUMES: usize = 6;

fn seeds() -> Vec<Script> {
    let submit = |volume: u8| vec![0, volume, volume % 3, 1];
    let round = |extra: Vec<Vec<u8>>| {
        let requests =
            (0..12).map(submit).chain([vec![1], vec![2, 0, 1], vec![2, 1, 1], vec![3, 0], vec![1]]);
        let time = [vec![5, 1, 3, 0, 0, 0], vec![1], vec![2, 0, 1], vec![3, 0], vec![5, 2, 59, 154, 202, 0]];
        Script::new(extra.into_iter().chain(requests).chain(time).chain([vec![1], vec![4, 0, 3]]).collect())
    };
    let second = || vec![5, 2, 59, 154, 202, 0];
    let held = [vec![6, 4], vec![0, 0, 1, 3], vec![0, 0, 1, 3], vec![0, 0, 0, 3], vec![1], vec![2, 0, 1]]
        .into_iter()
        .chain([second(), vec![2, 0, 1], second(), vec![3, 0], vec![3, 0], vec![6, 4], vec![6, 0]]);
    vec![
        Script::new(held.collect()),
        round(vec![]),
        round(vec![vec![7, 1], vec![7, 3, 1, 1], vec![6, 1]]),
        round(vec![vec![6, 2, 1], vec![7, 2, 1, 2, 1], vec![8, 0, 3]]),
        round(vec![vec![6, 3], vec![10, 1, 2, 3], vec![11, 2, 2], vec![7]]),
        round(vec![vec![6, 0], vec![7], vec![9, 1], vec![7]]),
        round(vec![vec![6, 5], vec![7, 3, 1, 1], vec![7, 2, 1, 2, 1], vec![8, 0, 3]]),
        round(vec![vec![6, 6], vec![7, 3, 1, 1], vec![12, 1, 1, 1, 2, 3], vec![12, 7, 5, 4]]),
    ]
}

#[derive(Clone, Default, Debug)]
struct Told(Arc<Mutex<Vec<(Instant, Entry)>>>);

impl Recorder for Told {
    fn record(&mut self, now: Instant, entry: &Entry) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((now, entry.clone()));
    }
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Stage {
    Queued,
    AtDevice,
    Done,
}

/// An engine, and an account of what it must hold.
struct World {
    engine: Engine,
    told: Told,
    now: Instant,
    volumes: Vec<VolumeId>,
    /// Volumes that have other volumes as ports. They are not removed.
    first_ports: Vec<VolumeId>,
    requests: BTreeMap<IoId, (VolumeId, Stage)>,
    /// The requests whose reply is held.
    held: BTreeSet<IoId>,
    submitted: usize,
    ended: usize,
    usual: EngineConfig,
    is_leased: bool,
}

fn run(script: &Script, seen: &mut Seen) {
    let mut world = World::new();
    for piece in &script.pieces {
        seen.message();
        world.call(piece, seen);
        world.check(seen);
    }
    let told = world.finish(seen);
    let mut replay = Replay::new();
    for (now, entry) in &told {
        if let Err(deviation) = replay.step(*now, entry) {
            panic!("what was recorded is not decided again: {deviation}");
        }
    }
    assert_eq!(replay.finish(), Ok(told.len() as u64));
}

impl World {
    fn new() -> Self {
        let (now, told) = (Instant::from_nanos(5), Told::default());
        let recorder = Box::new(told.clone());
        let usual = EngineConfig::default();
        let mut engine = Engine::with_recorder(now, usual, recorder);
        let volumes = vec![engine.add_volume(now, VolumeConfig::default())];
        let (first_ports, requests) = (Vec::new(), BTreeMap::new());
        Self {
            engine,
            told,
            now,
            volumes,
            first_ports,
            requests,
            held: BTreeSet::new(),
            submitted: 0,
            ended: 0,
            usual,
            is_leased: false,
        }
    }

    fn call(&mut self, piece: &[u8], seen: &mut Seen) {
        let mut bytes = Bytes::new(piece);
        match bytes.u8() % 13 {
            0 => self.submit(&mut bytes),
            1 => drop(self.dispatch(seen)),
            2 => {
                if let Some(id) = self.pick(bytes.u8(), Stage::AtDevice) {
                    if let Some(until) = self.engine.handle_complete(self.now, id, bytes.flag()) {
                        seen.reach("held");
                        assert!(until > self.now, "{id:?} is held until {until:?}");
                        self.held.insert(id);
                    }
                    self.set_stage(id, Stage::Done);
                }
            }
            3 => {
                if let Some(id) = self.pick(bytes.u8(), Stage::Done) {
                    self.engine.handle_reply(self.now, id);
                    self.requests.remove(&id);
                    self.held.remove(&id);
                }
            }
            4 => self.abort(&mut bytes),
            5 => {
                let unit = bytes.one_of([1, 1_000, 1, 1_000_000]);
                self.now = self.now + Span::from_nanos(u64::from(bytes.u32()) * unit);
                self.engine.handle_timeout(self.now);
            }
            6 => self.set_config(&mut bytes, seen),
            7 if self.volumes.len() < MOST_VOLUMES => self.add(&mut bytes, seen),
            8 => {
                if let Some(volume) = self.volume(bytes.u8()) {
                    self.engine.set_volume(self.now, volume, volume_config(&mut bytes));
                }
            }
            9 => self.remove(bytes.u8(), seen),
            10 if self.is_leased => {
                let until = self.now + Span::from_millis(bytes.u16().into());
                let volumes = self.volumes.iter().map(|volume| (*volume, grant(&mut bytes))).collect();
                self.engine.handle_grants(self.now, Grants { until, volumes });
            }
            11 if self.is_leased => {
                let volumes = self.volumes.iter().map(|volume| (*volume, grant(&mut bytes))).collect();
                self.engine.set_fallback(self.now, volumes);
            }
            12 => self.engine.handle_standing(self.now, standing(&mut bytes)),
            _ => {}
        }
    }

    fn submit(&mut self, bytes: &mut Bytes<'_>) {
        let Some(volume) = self.volume(bytes.u8()) else { return };
        let kind = bytes.one_of(IoKind::ALL);
        let length = bytes.one_of([0, 1, 512, 4096, 1 << 25, u32::MAX]);
        let request = Request { volume, kind, offset: bytes.u64(), length };
        let id = self.engine.handle_submit(self.now, request);
        assert!(self.requests.insert(id, (volume, Stage::Queued)).is_none(), "{id:?} is in use");
        self.submitted += 1;
    }

    fn dispatch(&mut self, seen: &mut Seen) -> Dispatch {
        loop {
            let dispatch = self.engine.poll_dispatch(self.now);
            let Dispatch::Issue(io) = dispatch else { return dispatch };
            seen.reach("issued");
            assert_eq!(self.requests.get(&io.id), Some(&(io.volume, Stage::Queued)), "issued");
            self.set_stage(io.id, Stage::AtDevice);
        }
    }

    fn abort(&mut self, bytes: &mut Bytes<'_>) {
        let nth = usize::from(bytes.u8()) % self.requests.len().max(1);
        let Some((id, (_, stage))) = self.requests.iter().nth(nth).map(|(id, request)| (*id, *request))
        else {
            return;
        };
        assert_eq!(self.engine.handle_abort(self.now, id), stage == Stage::Queued);
        if stage == Stage::Queued {
            self.requests.remove(&id);
        }
        assert!(!self.engine.handle_abort(self.now, IoId { slot: u32::MAX, generation: 0 }), "unknown");
    }

    fn set_config(&mut self, bytes: &mut Bytes<'_>, seen: &mut Seen) {
        let controls =
            ["no control", "facade", "maestro", "leased", "one-sided pid", "promises", "shared promises"];
        let control = bytes.u8() % 7;
        seen.reach(controls[usize::from(control)]);
        self.is_leased = control == 3;
        let periods = [50_000_000, 1, 2_000_000_000, u64::MAX, 1_000_000];
        let period = Span::from_nanos(bytes.one_of(periods));
        let control = match control {
            0 => Control::None,
            1 => Control::Facade(DepthFeedbackConfig {
                period,
                growth: bytes.one_of([0.1, 1e-300, 1.0, 1e300]),
                initial_depth: QueueDepth::new(bytes.one_of([1, 200, 4096, u32::MAX])),
                max_depth: QueueDepth::new(bytes.one_of([4096, 1, 200, u32::MAX])),
            }),
            2 => {
                let fixed = NonZeroU32::new(u32::from(bytes.u8())).map(TotalConcurrency::Fixed);
                Control::Maestro(MaestroConfig {
                    interval: period,
                    total: fixed.unwrap_or(TotalConcurrency::Auto),
                })
            }
            3 => Control::Leased(LeasedConfig { interval: period }),
            4 => Control::Pid(pid(bytes)),
            5 => Control::Promise,
            _ => Control::SharedPromise,
        };
        let mut config = self.usual;
        config.control = control;
        config.slo_window = Span::from_nanos(bytes.one_of(periods));
        config.background_share = bytes.one_of([TimeShare::PERCENT, TimeShare::ZERO, TimeShare::MAX]);
        self.engine.set_config(self.now, config);
    }

    fn add(&mut self, bytes: &mut Bytes<'_>, seen: &mut Seen) {
        let (is_port, of) = (bytes.u8() % 4 == 2, bytes.u8());
        let first = self.volumes.first().copied().filter(|_| is_port && of > 0);
        let config = VolumeConfig { port_of: first, ..volume_config(bytes) };
        let id = self.engine.add_volume(self.now, config);
        assert!(!self.volumes.contains(&id), "{id:?} is in use");
        if let Some(first) = first {
            seen.reach("port of a volume");
            self.first_ports.push(first);
        }
        self.volumes.push(id);
    }

    fn remove(&mut self, nth: u8, seen: &mut Seen) {
        let Some(volume) = self.volume(nth) else { return };
        let is_first = self.first_ports.contains(&volume) || self.volumes.first() == Some(&volume);
        if !is_first && self.engine.outstanding(volume) == 0 {
            self.engine.remove_volume(self.now, volume);
            self.volumes.retain(|other| *other != volume);
            seen.reach("removed");
        }
    }

    fn check(&mut self, seen: &mut Seen) {
        while let Some(event) = self.engine.poll_event() {
            seen.reach(match event {
                Event::Finished { queued, device, total, .. } => {
                    assert!(queued + device <= total, "{event:?}");
                    "finished"
                }
                Event::Aborted { .. } => "aborted",
                Event::Controlled { .. } => "controlled",
                Event::Granted { .. } => "granted",
                Event::Allocated { .. } => "allocated",
                Event::WindowEnded { .. } => "window ended",
                Event::WindowClosed { .. } => "window closed",
                Event::Throttled { .. } => "throttled",
                Event::Weighed { .. } => "weighed",
                Event::Allowed(_) => "allowed",
                Event::InOrder(_) => "in order",
                Event::Covered { .. } => "covered",
                Event::OutOfReach(_) => "out of reach",
                Event::Stands(_) => "stands",
                Event::TakingTurns { .. } => "taking turns",
            });
            self.ended += usize::from(matches!(event, Event::Finished { .. } | Event::Aborted { .. }));
        }
        while let Some(id) = self.engine.poll_release() {
            seen.reach("released");
            assert!(self.held.remove(&id), "{id:?} was not held");
        }
        if self.engine.poll_observation().is_some() {
            seen.reach("observed");
        }
        assert_eq!(self.submitted, self.ended + self.requests.len());
        let count = |stage| self.requests.values().filter(|(_, s)| *s == stage).count();
        let snapshot = self.engine.snapshot();
        assert_eq!(
            (snapshot.queued as usize, snapshot.in_flight as usize),
            (count(Stage::Queued), count(Stage::AtDevice))
        );
        for volume in &self.volumes {
            let outstanding = self.requests.values().filter(|(of, _)| of == volume).count();
            assert_eq!(self.engine.outstanding(*volume) as usize, outstanding);
        }
        assert!(self.engine.poll_timeout().is_some());
    }

    /// Checks that all requests leave at once without a law. Returns the recording.
    fn finish(mut self, seen: &mut Seen) -> Vec<(Instant, Entry)> {
        let none = EngineConfig { control: Control::None, ..EngineConfig::default() };
        self.engine.set_config(self.now, none);
        self.check(seen);
        assert_eq!(self.held, BTreeSet::new(), "held without a law");
        assert_eq!(self.dispatch(seen), Dispatch::Idle);
        while let Some(id) = self.pick(0, Stage::AtDevice) {
            self.engine.handle_complete(self.now, id, true);
            self.set_stage(id, Stage::Done);
        }
        while let Some(id) = self.pick(0, Stage::Done) {
            self.engine.handle_reply(self.now, id);
            self.requests.remove(&id);
        }
        self.check(seen);
        assert!(self.requests.is_empty(), "{:?}", self.requests);
        for volume in std::mem::take(&mut self.volumes).into_iter().rev() {
            self.engine.remove_volume(self.now, volume);
        }
        std::mem::take(&mut *self.told.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn volume(&self, nth: u8) -> Option<VolumeId> {
        self.volumes.get(usize::from(nth) % self.volumes.len().max(1)).copied()
    }

    fn pick(&self, nth: u8, stage: Stage) -> Option<IoId> {
        let at_stage: Vec<IoId> =
            self.requests.iter().filter(|(_, (_, s))| *s == stage).map(|(id, _)| *id).collect();
        at_stage.get(usize::from(nth) % at_stage.len().max(1)).copied()
    }

    fn set_stage(&mut self, id: IoId, stage: Stage) {
        self.requests.get_mut(&id).expect("the account has every request").1 = stage;
    }
}

fn volume_config(bytes: &mut Bytes<'_>) -> VolumeConfig {
    let latency = Span::from_nanos(bytes.one_of([5_000_000, 1, 1_000_000_000, u64::MAX]));
    let up_to = bytes.one_of([Some(100.0), None, Some(1e-300), Some(1e300)]).and_then(Iops::new);
    let slo = up_to.and_then(|up_to| Slo::new(vec![SloPoint { up_to, read: latency, write: latency }]).ok());
    let target = match bytes.u8() % 6 {
        1 => Some(Metric::Latency(latency)),
        2 => Percentile::from_tenths(bytes.u16() % 1000)
            .map(|percentile| Metric::Percentile(percentile, latency)),
        3 => Bandwidth::new(bytes.u64()).map(Metric::Throughput),
        4 => bytes.one_of([Some(900.0), Some(1e-300), Some(1e300)]).and_then(Iops::new).map(Metric::Rate),
        _ => None,
    };
    let priority = bytes.one_of([1.0, 4.0, 1e-300, 1e300]);
    let (concurrency, max_iops, max_bandwidth) = limits(bytes);
    VolumeConfig {
        slo,
        objective: Objective { target, priority: Priority::new(priority).unwrap_or_default() },
        concurrency: bytes.flag().then_some(concurrency),
        max_iops,
        max_bandwidth,
        ..VolumeConfig::default()
    }
}

/// The one-sided PID with any configuration that it can work with. The first of each choice holds replies.
fn pid(bytes: &mut Bytes<'_>) -> PidConfig {
    let span = Span::from_nanos;
    let law = OneSidedPidConfig {
        period: span(bytes.one_of([100_000_000, 1, 250_000_000])),
        proportional_gain: bytes.one_of([0.25, 1e-300, 100.0]),
        integral_time: span(bytes.one_of([200_000_000, 1, u64::MAX])),
        derivative_time: span(bytes.one_of([0, 1, 1_000_000, u64::MAX])),
        smoothing: span(bytes.one_of([200_000_000, 0, 1, u64::MAX])),
        setpoint_share: bytes.one_of([0.9, 1.0, 1e-300]),
        ceiling: span(bytes.one_of([20_000_000, 500_000, 10_000_000_000])),
    };
    let threshold = span(bytes.one_of([1, 0, 15_000_000, u64::MAX]));
    let write_limit = Bandwidth::new(bytes.one_of([1, 1 << 20, u64::MAX])).expect("above zero");
    PidConfig { law, threshold, write_limit }
}

fn grant(bytes: &mut Bytes<'_>) -> Grant {
    let (concurrency, max_iops, max_bandwidth) = limits(bytes);
    Grant { concurrency, max_iops: max_iops.map(MilliIops::at_most), max_bandwidth }
}

/// What other gateways say, with figures that make no sense among them.
fn standing(bytes: &mut Bytes<'_>) -> Standing {
    let mut figure = || bytes.one_of([0.0, 0.5, 1.0, 3.0, 1e300, -1.0, f64::INFINITY, f64::NAN]);
    let [window, lately, likely, latency, service] = [(); 5].map(|()| figure());
    let (last_second, bounds) = (figure(), figure());
    Standing {
        is_promised: bytes.flag(),
        is_there: bytes.flag(),
        latency: bytes.one_of([None, Some(0), Some(1_000_000), Some(u64::MAX)]).map(Span::from_nanos),
        strain: bytes.flag().then_some(Strain { window, lately, likely, latency, service }),
        last_second,
        backgrounds: bytes.one_of([0, 1, 3, u32::MAX]),
        bounded: bytes.one_of([0, 1, 3, u32::MAX]),
        bounds,
        is_in_the_way: bytes.flag(),
        cuts: bytes.u32(),
    }
}

fn limits(bytes: &mut Bytes<'_>) -> (NonZeroU32, Option<Iops>, Option<Bandwidth>) {
    (
        NonZeroU32::new(bytes.one_of([1, 2, 7, 64, u32::MAX])).unwrap_or(NonZeroU32::MIN),
        bytes.one_of([None, None, Some(5.0), Some(1e-300), Some(1e300)]).and_then(Iops::new),
        bytes.one_of([None, None, Some(1), Some(1 << 20), Some(u64::MAX)]).and_then(Bandwidth::new),
    )
}
