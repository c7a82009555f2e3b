//! The state machine itself. What it is made of lies beside it, a file each; here is what happens to a
//! request.

use std::collections::VecDeque;
use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};
use weir_control::{Grant, Latency, PortObservation};
use weir_model::{Completion, Instant, Io, IoId, IoKind, QueueDepth, Span, VolumeId};
use weir_sched::{Dispatch, Scheduler};

use crate::config::{EngineConfig, Grants, VolumeConfig};
use crate::event::Event;
use crate::loops::{ControlLoop, Pool, close_windows};
use crate::occupancy::Occupancy;
use crate::recording::{Answer, Entry, Recorder};
use crate::requests::{RequestTable, Stage, Stamped};
use crate::tick::Tick;
use crate::volume::{Volume, VolumeTable};

/// One pool. See the crate's text for the families of its methods and the order in which to call them.
#[derive(Debug)]
pub struct Engine {
    config: EngineConfig,
    volumes: VolumeTable,
    requests: RequestTable,
    scheduler: Box<dyn Scheduler + Send>,
    occupancy: Occupancy,
    control: ControlLoop,
    window: Tick,
    /// When the scheduler, asked last, wanted to be asked again.
    wake: Option<Instant>,
    events: VecDeque<Event>,
    recorder: Option<Box<dyn Recorder + Send>>,
}

/// What a client asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Request {
    /// Of which volume.
    pub volume: VolumeId,
    /// What to do.
    pub kind: IoKind,
    /// First byte.
    pub offset: u64,
    /// Number of bytes; zero for a flush.
    pub length: u32,
}

/// An engine at a glance.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EngineSnapshot {
    /// How many requests may be at the device, if a law says so.
    pub depth_target: Option<QueueDepth>,
    /// Under Maestro's law: how many requests all volumes may have at the device together.
    pub total_concurrency: Option<NonZeroU32>,
    /// Of a leased pool: until when the controller's grants hold; `None`: the lease is over.
    pub granted_until: Option<Instant>,
    /// How many wait.
    pub queued: u32,
    /// How many are at the device.
    pub in_flight: u32,
}

/// Configuration.
impl Engine {
    /// A pool without volumes.
    ///
    /// # Panics
    /// If a period or the SLO window has no length, or the growth of the law is not above zero.
    pub fn new(now: Instant, config: EngineConfig) -> Self {
        let (control, scheduler) = ControlLoop::new(now, config.control, config.background_share);
        Self {
            volumes: VolumeTable::default(),
            requests: RequestTable::default(),
            scheduler,
            occupancy: Occupancy::new(),
            control,
            window: Tick::new(now, config.slo_window),
            wake: None,
            events: VecDeque::new(),
            recorder: None,
            config,
        }
    }

    /// The same, with somebody who is told of every call from this one on and of what it decided.
    ///
    /// # Panics
    /// As [`Engine::new`].
    pub fn with_recorder(now: Instant, config: EngineConfig, recorder: Box<dyn Recorder + Send>) -> Self {
        let mut engine = Self { recorder: Some(recorder), ..Self::new(now, config) };
        engine.record(now, 0, |engine| Entry::Made { config, timeout: engine.poll_timeout() });
        engine
    }

    /// Changes the law or its tuning while requests are queued and at the device: none is lost, none is
    /// issued twice, and those that wait keep their order of arrival. The law starts anew. A configuration
    /// that is the same changes nothing.
    ///
    /// # Panics
    /// As [`Engine::new`].
    pub fn set_config(&mut self, now: Instant, config: EngineConfig) {
        let reported = self.events.len();
        if config != self.config {
            self.change_config(now, config);
        }
        let caused = self.events.len() - reported;
        self.record(now, caused, |engine| Entry::ConfigSet { config, timeout: engine.poll_timeout() });
    }

    fn change_config(&mut self, now: Instant, config: EngineConfig) {
        if config.slo_window != self.config.slo_window {
            self.window = Tick::new(now, config.slo_window);
            self.volumes.iter_mut().for_each(|(_, volume)| volume.restart_window(now));
        }
        self.config = config;
        let queued = self.scheduler.take_queued(now);
        (self.control, self.scheduler) = ControlLoop::new(now, config.control, config.background_share);
        let (shared, leased) = (self.control.shares_concurrency(), self.control.is_leased());
        for (id, volume) in self.volumes.iter_mut() {
            let at_device = self.requests.iter().filter(|r| r.volume == id && r.is_at_device()).count();
            volume.restart_period();
            let at_device = u32::try_from(at_device).expect("requests are numbered by u32");
            volume.set_shared(now, shared, leased, at_device);
            self.scheduler.set_volume(now, id, &volume.knobs());
        }
        for request in self.requests.iter().filter(|request| request.is_at_device()) {
            self.scheduler.adopt_in_flight(now, request.volume);
        }
        for io in queued {
            self.scheduler.submit(now, io);
        }
        self.occupancy.take(now);
        self.wake = None;
        self.with_loop(|control, pool| control.on_volumes_changed(now, pool));
        self.debug_assert_invariants();
    }

    /// Adds a volume. Its number is its own until it is removed.
    ///
    /// # Panics
    /// If it is to be a port of a volume that there is not, or that is one more port itself.
    pub fn add_volume(&mut self, now: Instant, config: VolumeConfig) -> VolumeId {
        let reported = self.events.len();
        let first = config.port_of.map(|of| self.volumes.get(of).port_of());
        assert!(first.is_none_or(|of| of.is_none()), "a port of a port");
        let recorded = self.recorder.is_some().then(|| config.clone());
        let id = self.volumes.insert(Volume::new(now, config));
        let added = self.volumes.get_mut(id);
        added.set_shared(now, self.control.shares_concurrency(), self.control.is_leased(), 0);
        let knobs = added.knobs();
        self.scheduler.set_volume(now, id, &knobs);
        self.with_loop(|control, pool| control.on_volumes_changed(now, pool));
        if let Some(config) = recorded {
            let caused = self.events.len() - reported;
            self.record(now, caused, |_| Entry::VolumeAdded { config, id });
        }
        id
    }

    /// Changes a volume. Its limits hold at once, for what waits too; its promise from the next control tick
    /// on.
    ///
    /// # Panics
    /// If there is no such volume.
    pub fn set_volume(&mut self, now: Instant, volume: VolumeId, config: VolumeConfig) {
        self.record(now, 0, |_| Entry::VolumeSet { id: volume, config: config.clone() });
        let changed = self.volumes.get_mut(volume);
        changed.set_config(config);
        self.scheduler.set_volume(now, volume, &changed.knobs());
    }

    /// Under [`Control::Leased`](crate::Control::Leased): a controller has granted this.
    ///
    /// # Panics
    /// If the pool is not under that control.
    pub fn handle_grants(&mut self, now: Instant, grants: Grants) {
        let reported = self.events.len();
        self.with_loop(|control, pool| control.leased().handle_grants(now, &grants, pool));
        let caused = self.events.len() - reported;
        self.record(now, caused, |engine| Entry::Granted { grants, timeout: engine.poll_timeout() });
    }

    /// Under [`Control::Leased`](crate::Control::Leased): what each volume may do while there is no lease. A
    /// volume that it does not name gets one request at a time.
    ///
    /// # Panics
    /// If the pool is not under that control.
    pub fn set_fallback(&mut self, now: Instant, volumes: Vec<(VolumeId, Grant)>) {
        let reported = self.events.len();
        self.with_loop(|control, pool| control.leased().set_fallback(now, volumes.clone(), pool));
        let caused = self.events.len() - reported;
        self.record(now, caused, |_| Entry::FallbackSet { volumes });
    }

    /// Removes a volume.
    ///
    /// # Panics
    /// If there is no such volume, or it has requests outstanding.
    pub fn remove_volume(&mut self, now: Instant, volume: VolumeId) {
        let outstanding = self.outstanding(volume);
        assert!(outstanding == 0, "{volume:?} has {outstanding} requests outstanding");
        self.scheduler.remove_volume(now, volume);
        self.volumes.remove(volume);
        self.record(now, 0, |_| Entry::VolumeRemoved { id: volume });
    }
}

/// What happened.
impl Engine {
    /// A request came in.
    ///
    /// # Panics
    /// If there is no such volume.
    pub fn handle_submit(&mut self, now: Instant, request: Request) -> IoId {
        let Request { volume, kind, offset, length } = request;
        let owner = self.volumes.get_mut(volume);
        owner.on_arrival(now, kind, length);
        let stamped = Stamped { volume, kind, length, arrived: now, stage: Stage::Queued };
        let id = self.requests.insert(owner.chain(kind), stamped);
        self.scheduler.submit(now, Io { id, volume, kind, offset, length, arrived: now });
        self.record(now, 0, |_| Entry::Submitted { request, id });
        id
    }

    /// The device has finished a request, with success or not: its place there is free.
    ///
    /// # Panics
    /// If that request is not at the device.
    pub fn handle_complete(&mut self, now: Instant, id: IoId, ok: bool) {
        let request = self.requests.get_mut(id).expect("only what was issued completes");
        let Stage::AtDevice { issued } = request.stage else { panic!("{id:?} is not at the device") };
        request.stage = Stage::Done { issued, completed: now, ok };
        self.occupancy.on_complete(now, issued);
        self.volumes.get_mut(request.volume).on_complete(now);
        self.scheduler.on_complete(now, &Completion { id, volume: request.volume, ok });
        self.record(now, 0, |_| Entry::Completed { id, ok });
        self.debug_assert_invariants();
    }

    /// The reply to a finished request is out of our hands. This ends the request: its slot is free again,
    /// and its latency counts until here.
    ///
    /// # Panics
    /// If the device has not finished that request.
    pub fn handle_reply(&mut self, now: Instant, id: IoId) {
        let Stamped { volume, kind, length, arrived, stage } =
            *self.requests.get_mut(id).expect("only what was submitted is answered");
        let Stage::Done { issued, completed, ok } = stage else { panic!("{id:?} is not finished") };
        let total = now.since(arrived);
        let owner = self.volumes.get_mut(volume);
        self.requests.remove(owner.chain(kind), id);
        owner.on_end(now);
        let (queued, device) = (issued.since(arrived), completed.since(issued));
        if ok {
            owner.on_answer(kind, length, Latency { total, at_device: device });
        }
        self.events.push_back(Event::Finished { volume, kind, length, ok, queued, device, total });
        self.record(now, 1, |_| Entry::Replied { id });
    }

    /// The client does not want a request any more. True: it was queued, and is gone. False: it is at the
    /// device and will complete, or it is unknown.
    pub fn handle_abort(&mut self, now: Instant, id: IoId) -> bool {
        let gone = self.abort(now, id);
        self.record(now, usize::from(gone), |_| Entry::Aborted { id, gone });
        gone
    }

    fn abort(&mut self, now: Instant, id: IoId) -> bool {
        let Some(Stamped { volume, kind, stage: Stage::Queued, .. }) = self.requests.get_mut(id).copied()
        else {
            return false;
        };
        let aborted = self.scheduler.abort(now, id);
        assert!(aborted.is_some(), "{id:?} is queued, but the scheduler has lost it");
        let owner = self.volumes.get_mut(volume);
        self.requests.remove(owner.chain(kind), id);
        owner.on_end(now);
        self.events.push_back(Event::Aborted { volume, kind });
        true
    }

    /// Time has passed: runs what is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        let reported = self.events.len();
        if self.wake.is_some_and(|wake| wake <= now) {
            self.wake = None;
        }
        self.with_loop(|control, pool| control.handle_timeout(now, pool));
        if self.window.serve(now) {
            self.events.extend(close_windows(now, &mut self.volumes, &self.requests));
        }
        let caused = self.events.len() - reported;
        self.record(now, caused, |engine| Entry::TimedOut { timeout: engine.poll_timeout() });
    }
}

/// What to do.
impl Engine {
    /// The next request for the device, or why there is none. Call it until it is not [`Dispatch::Issue`].
    ///
    /// An instant in the answer needs no timer of its own: [`Engine::poll_timeout`] knows it.
    pub fn poll_dispatch(&mut self, now: Instant) -> Dispatch {
        let reported = self.events.len();
        if self.control.granted_until().is_some_and(|until| until <= now) {
            self.with_loop(|control, pool| control.leased().end_lease(now, pool));
        }
        let dispatch = self.scheduler.poll_dispatch(now);
        match dispatch {
            Dispatch::Issue(io) => {
                let request = self.requests.get_mut(io.id).expect("what is queued is known");
                request.stage = Stage::AtDevice { issued: now };
                self.occupancy.on_issue(now);
                self.volumes.get_mut(io.volume).on_issue(now);
                self.debug_assert_invariants();
            }
            Dispatch::WaitUntil(instant) => self.wake = Some(instant),
            Dispatch::AtDepth { recheck } => self.wake = recheck,
            Dispatch::Idle => self.wake = None,
        }
        let caused = self.events.len() - reported;
        self.record(now, caused, |_| Entry::Dispatched(Answer::from(dispatch)));
        dispatch
    }

    /// When [`Engine::handle_timeout`] is to be called, if nothing happens before: the end of the control
    /// period or of the SLO window, or the scheduler's wake-up.
    pub fn poll_timeout(&self) -> Option<Instant> {
        [Some(self.window.due()), self.control.due(), self.wake].into_iter().flatten().min()
    }

    /// Under [`Control::Leased`](crate::Control::Leased): what was seen of each volume in the interval that
    /// ended last, once for each interval.
    pub fn poll_observation(&mut self) -> Option<Vec<(VolumeId, PortObservation)>> {
        if let ControlLoop::Leased(leased) = &mut self.control { leased.poll_observation() } else { None }
    }

    /// The next report.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }
}

/// The state.
impl Engine {
    /// How many requests of a volume are submitted and neither answered nor aborted.
    ///
    /// # Panics
    /// If there is no such volume.
    pub fn outstanding(&self, volume: VolumeId) -> u32 {
        self.volumes.get(volume).outstanding
    }

    /// How the pool as a whole stands.
    pub fn snapshot(&self) -> EngineSnapshot {
        let requests = self.scheduler.snapshot();
        EngineSnapshot {
            depth_target: self.control.depth(),
            total_concurrency: self.control.total(),
            granted_until: self.control.granted_until(),
            queued: requests.queued,
            in_flight: requests.in_flight,
        }
    }

    /// The latency that a volume is promised now: what the law holds it to, or without a law, what its open
    /// SLO window will be judged by. `None`: nothing, or it offers more than its SLO covers.
    ///
    /// # Panics
    /// If there is no such volume.
    pub fn target(&self, volume: VolumeId) -> Option<Span> {
        let volume = self.volumes.get(volume);
        if self.control.depth().is_some() { volume.latency_target() } else { volume.window_target() }
    }

    /// What a volume may do, where a law shares out concurrency.
    ///
    /// # Panics
    /// If there is no such volume.
    pub fn grant(&self, volume: VolumeId) -> Option<Grant> {
        self.volumes.get(volume).grant()
    }

    /// Whether there is such a volume.
    pub(crate) fn has_volume(&self, volume: VolumeId) -> bool {
        self.volumes.contains(volume)
    }

    /// Whether there is such a volume, which is no port of another.
    pub(crate) fn has_first_port(&self, volume: VolumeId) -> bool {
        self.has_volume(volume) && self.volumes.get(volume).port_of().is_none()
    }

    /// Whether the pool is under [`Control::Leased`](crate::Control::Leased).
    pub(crate) const fn is_leased(&self) -> bool {
        self.control.is_leased()
    }

    /// How far a request has come; `None` if it is gone or never was.
    pub(crate) fn stage(&mut self, id: IoId) -> Option<Stage> {
        self.requests.get_mut(id).map(|request| request.stage)
    }

    /// Lets the control loop at what it reads and turns.
    fn with_loop(&mut self, act: impl FnOnce(&mut ControlLoop, &mut Pool<'_>)) {
        let mut pool = Pool {
            volumes: &mut self.volumes,
            requests: &self.requests,
            occupancy: &mut self.occupancy,
            scheduler: &mut *self.scheduler,
            events: &mut self.events,
        };
        act(&mut self.control, &mut pool);
    }

    /// Tells the recorder, if there is one, of a call and of the events that it has `caused`, which are the
    /// last.
    fn record(&mut self, now: Instant, caused: usize, entry: impl FnOnce(&Self) -> Entry) {
        let Some(mut recorder) = self.recorder.take() else { return };
        recorder.record(now, &entry(self));
        for event in self.events.range(self.events.len() - caused..) {
            recorder.record(now, &Entry::Reported(*event));
        }
        self.recorder = Some(recorder);
    }

    fn debug_assert_invariants(&self) {
        debug_assert_eq!(self.occupancy.count(), self.scheduler.snapshot().in_flight);
    }
}
