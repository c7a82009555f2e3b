//! Whatever a driver does to an engine, in whatever order: every request is issued at most once, and ends
//! once.

use std::collections::BTreeMap;

use proptest::prelude::*;
use weir_engine::{
    Control, DepthFeedbackConfig, Dispatch, Engine, EngineConfig, Event, Hold, Request, Standing, Strain,
    VolumeConfig,
};
use weir_model::{
    Bandwidth, Instant, IoId, IoKind, Iops, Objective, Percentile, QueueDepth, Slo, SloPoint, Span, Target,
    TimeShare, VolumeId,
};

#[derive(Clone, Debug)]
enum Operation {
    Submit { volume: usize, kind: IoKind },
    Dispatch,
    Complete { nth: usize, ok: bool },
    Reply(usize),
    Abort(usize),
    Advance(Span),
    SetConfig(EngineConfig),
    SetVolume { volume: usize, config: VolumeConfig },
    Hear(Standing),
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Stage {
    Queued,
    AtDevice,
    Done,
}

fn configs() -> impl Strategy<Value = EngineConfig> {
    let control = prop_oneof![
        Just(Control::None),
        Just(Control::Promise),
        Just(Control::SharedPromise),
        (1u32..10).prop_map(|depth| Control::Facade(DepthFeedbackConfig {
            initial_depth: QueueDepth::new(depth),
            ..DepthFeedbackConfig::default()
        })),
    ];
    (control, 1u64..3).prop_map(|(control, seconds)| EngineConfig {
        control,
        slo_window: Span::from_secs(seconds),
        background_share: TimeShare::PERCENT,
        ..EngineConfig::default()
    })
}

fn volume_configs() -> impl Strategy<Value = VolumeConfig> {
    let slo = prop::option::of((1u64..20).prop_map(|ms| {
        let (up_to, latency) = (Iops::new(100.0).unwrap(), Span::from_millis(ms));
        Slo::new(vec![SloPoint { up_to, read: latency, write: latency }]).unwrap()
    }));
    let latency = Span::from_millis(5);
    let targets = [
        Target::Latency(latency),
        Target::Percentile(Percentile::from_tenths(990).unwrap(), latency),
        Target::Rate(Iops::new(100.0).unwrap()),
        Target::Throughput(Bandwidth::new(1 << 20).unwrap()),
    ];
    let target = prop::option::weighted(0.3, prop::sample::select(targets.to_vec()));
    let max_iops = prop::option::of(prop::sample::select(vec![5.0, 1_000.0]));
    (slo, target, max_iops).prop_map(|(slo, target, max_iops)| VolumeConfig {
        slo,
        objective: Objective { target, ..Objective::default() },
        max_iops: max_iops.and_then(Iops::new),
        ..VolumeConfig::default()
    })
}

fn operations() -> impl Strategy<Value = Operation> {
    prop_oneof![
        6 => (0usize..3, prop::sample::select(IoKind::ALL.to_vec()))
            .prop_map(|(volume, kind)| Operation::Submit { volume, kind }),
        5 => Just(Operation::Dispatch),
        4 => (any::<usize>(), any::<bool>()).prop_map(|(nth, ok)| Operation::Complete { nth, ok }),
        4 => any::<usize>().prop_map(Operation::Reply),
        1 => any::<usize>().prop_map(Operation::Abort),
        3 => (0u64..400_000_000).prop_map(|nanos| Operation::Advance(Span::from_nanos(nanos))),
        1 => configs().prop_map(Operation::SetConfig),
        1 => (0usize..3, volume_configs()).prop_map(|(volume, config)| Operation::SetVolume { volume, config }),
        1 => standings().prop_map(Operation::Hear),
    ]
}

/// What other gateways may say, with figures that make no sense among them.
fn standings() -> impl Strategy<Value = Standing> {
    let strain = [any::<f64>(); 5].prop_map(|[window, lately, likely, latency, service]| Strain {
        window,
        lately,
        likely,
        latency,
        service,
    });
    (prop::option::of(strain), any::<[bool; 3]>(), any::<[u32; 2]>()).prop_map(|(strain, are, counts)| {
        let ([is_promised, is_there, is_in_the_way], [backgrounds, cuts]) = (are, counts);
        let latency = Some(Span::from_nanos(u64::from(cuts)));
        let last_second = strain.map_or(0.0, |strain| strain.window);
        let (bounded, bounds) = (cuts, last_second);
        let counts = Standing { last_second, backgrounds, bounded, bounds, cuts, ..Standing::default() };
        Standing { is_promised, is_there, latency, strain, is_in_the_way, ..counts }
    })
}

/// An engine, and an account of what it must hold.
struct World {
    engine: Engine,
    control: Control,
    now: Instant,
    volumes: [VolumeId; 3],
    requests: BTreeMap<IoId, (VolumeId, Stage)>,
    submitted: usize,
    ended: usize,
    /// When each request came that is not answered.
    arrived: BTreeMap<IoId, Instant>,
    /// For how long requests of each volume have waited that wait no longer.
    waited: BTreeMap<VolumeId, Span>,
}

impl World {
    fn new() -> Self {
        let now = Instant::ORIGIN;
        let config = EngineConfig::default();
        let mut engine = Engine::new(now, config);
        let volumes = [(); 3].map(|()| engine.add_volume(now, VolumeConfig::default()));
        Self {
            engine,
            control: config.control,
            now,
            volumes,
            requests: BTreeMap::new(),
            submitted: 0,
            ended: 0,
            arrived: BTreeMap::new(),
            waited: BTreeMap::new(),
        }
    }

    fn apply(&mut self, operation: Operation) {
        match operation {
            Operation::Submit { volume, kind } => {
                let volume = self.volumes[volume];
                let request = Request { volume, kind, offset: 0, length: 4096 };
                let id = self.engine.handle_submit(self.now, request);
                assert!(self.requests.insert(id, (volume, Stage::Queued)).is_none(), "{id:?} is in use");
                self.submitted += 1;
                self.arrived.insert(id, self.now);
            }
            Operation::Dispatch => drop(self.dispatch()),
            Operation::Complete { nth, ok } => {
                if let Some(id) = self.pick(nth, Stage::AtDevice) {
                    self.engine.handle_complete(self.now, id, ok);
                    self.set_stage(id, Stage::Done);
                }
            }
            Operation::Reply(nth) => {
                if let Some(id) = self.pick(nth, Stage::Done) {
                    self.reply(id);
                }
            }
            Operation::Abort(nth) => {
                let Some(id) = self.requests.keys().nth(nth % self.requests.len().max(1)).copied() else {
                    return;
                };
                let (volume, stage) = self.requests[&id];
                let was_queued = stage == Stage::Queued;
                assert_eq!(self.engine.handle_abort(self.now, id), was_queued);
                if was_queued {
                    self.requests.remove(&id);
                    self.note_waited(volume, id);
                    self.arrived.remove(&id);
                }
            }
            Operation::Advance(span) => {
                self.now = self.now + span;
                self.engine.handle_timeout(self.now);
            }
            Operation::SetConfig(config) => {
                self.control = config.control;
                self.engine.set_config(self.now, config);
            }
            Operation::SetVolume { volume, config } => {
                self.engine.set_volume(self.now, self.volumes[volume], config);
            }
            Operation::Hear(standing) => self.engine.handle_standing(self.now, standing),
        }
    }

    fn dispatch(&mut self) -> Dispatch {
        loop {
            let dispatch = self.engine.poll_dispatch(self.now);
            let Dispatch::Issue(io) = dispatch else { return dispatch };
            assert_eq!(self.requests.get(&io.id), Some(&(io.volume, Stage::Queued)), "issued");
            self.set_stage(io.id, Stage::AtDevice);
            self.note_waited(io.volume, io.id);
        }
    }

    /// Hands over a reply. The parts of the request's time add up.
    fn reply(&mut self, id: IoId) {
        self.engine.handle_reply(self.now, id);
        self.requests.remove(&id);
        let (answered, split) = self.engine.last_answered().unwrap();
        let arrived = self.arrived.remove(&id).unwrap();
        assert_eq!((answered, split.total()), (id, self.now.since(arrived)));
    }

    fn note_waited(&mut self, volume: VolumeId, id: IoId) {
        *self.waited.entry(volume).or_default() += self.now.since(self.arrived[&id]);
    }

    /// What the requests of each volume waited is what the engine says that it was held by, and all that was
    /// no limit of the volume is charged to somebody. Only now that nothing waits.
    fn check_waits(&mut self) {
        self.now = self.now + Span::from_millis(20);
        self.engine.handle_timeout(self.now);
        for volume in self.volumes {
            let spent = self.engine.time_spent(self.now, volume, Engine::REMEMBERED);
            let sum = |spans: &mut dyn Iterator<Item = Span>| spans.fold(Span::ZERO, |sum, span| sum + span);
            let held = sum(&mut spent.holds.into_iter());
            assert_eq!(held, self.waited.get(&volume).copied().unwrap_or_default(), "{spent:?}");
            let others = Hold::ALL.iter().zip(spent.holds).filter(|(hold, _)| !hold.is_own_limit());
            let charged = sum(&mut spent.waited_for.iter().map(|charged| charged.time));
            assert_eq!(charged, sum(&mut others.map(|(_, held)| held)), "{spent:?}");
        }
    }

    fn check(&mut self) {
        while let Some(event) = self.engine.poll_event() {
            if let Event::Finished { queued, device, total, .. } = event {
                assert!(queued + device <= total);
            }
            self.ended += usize::from(matches!(event, Event::Finished { .. } | Event::Aborted { .. }));
        }
        assert_eq!(self.submitted, self.ended + self.requests.len());
        let count = |stage| self.requests.values().filter(|(_, s)| *s == stage).count();
        let snapshot = self.engine.snapshot();
        assert_eq!(snapshot.queued as usize, count(Stage::Queued));
        assert_eq!(snapshot.in_flight as usize, count(Stage::AtDevice));
        let guards = matches!(self.control, Control::Promise | Control::SharedPromise);
        assert_eq!(snapshot.allowance.is_some(), guards);
        for volume in self.volumes {
            let outstanding = self.requests.values().filter(|(of, _)| *of == volume).count();
            assert_eq!(self.engine.outstanding(volume) as usize, outstanding);
        }
    }

    /// A driver that only does what it is told brings everything to its end.
    fn finish(&mut self) {
        loop {
            self.engine.handle_timeout(self.now);
            let reason = self.dispatch();
            let mut completed = false;
            while let Some(id) = self.pick(0, Stage::AtDevice) {
                completed = true;
                self.engine.handle_complete(self.now, id, true);
                self.set_stage(id, Stage::Done);
            }
            while let Some(id) = self.pick(0, Stage::Done) {
                self.reply(id);
            }
            self.check();
            match reason {
                Dispatch::Idle => break,
                Dispatch::AtDepth { .. } if completed => {}
                _ => self.now = self.engine.poll_timeout().unwrap(),
            }
        }
        assert!(self.requests.is_empty());
        self.check_waits();
        for volume in self.volumes {
            self.engine.remove_volume(self.now, volume);
        }
    }

    fn pick(&self, nth: usize, stage: Stage) -> Option<IoId> {
        let at_stage: Vec<IoId> =
            self.requests.iter().filter(|(_, (_, s))| *s == stage).map(|(id, _)| *id).collect();
        at_stage.get(nth % at_stage.len().max(1)).copied()
    }

    fn set_stage(&mut self, id: IoId, stage: Stage) {
        self.requests.get_mut(&id).unwrap().1 = stage;
    }
}

proptest! {
    #[test]
    fn every_request_ends_once_and_all_that_it_waited_is_split_and_charged(operations in prop::collection::vec(operations(), 1..200)) {
        let mut world = World::new();
        for operation in operations {
            world.apply(operation);
            world.check();
        }
        world.finish();
    }

    #[test]
    fn after_everything_is_drained_the_next_timeout_lies_ahead(
        operations in prop::collection::vec(operations(), 1..100),
    ) {
        let mut world = World::new();
        for operation in operations {
            world.apply(operation);
            world.engine.handle_timeout(world.now);
            world.dispatch();
            prop_assert!(world.engine.poll_timeout().unwrap() > world.now);
        }
    }
}
