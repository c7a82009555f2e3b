//! One pool's state machine: its interface and its state. `apply` has what each call does.

mod apply;

use std::collections::VecDeque;
use std::num::NonZeroU32;

use weir_control::{Grant, PortObservation, Standing};
use weir_model::{Instant, IoId, QueueDepth, Span, VolumeId};
use weir_sched::{BackgroundKnobs, Dispatch, Scheduler};

use crate::charging::Charging;
use crate::config::{EngineConfig, Grants, VolumeConfig};
use crate::event::Event;
use crate::input::{Input, Request};
use crate::loops::{ControlLoop, Throttle};
use crate::occupancy::Occupancy;
use crate::recording::{Entry, Recorder};
use crate::requests::{RequestTable, Stage};
use crate::tick::Tick;
use crate::time_spent::{Key, SpentHistory, TimeSpent, Whom};
use crate::time_split::TimeSplit;
use crate::volume::VolumeTable;

/// One pool. The crate's text says in which order to call its methods.
#[derive(Debug)]
pub struct Engine {
    config: EngineConfig,
    volumes: VolumeTable,
    requests: RequestTable,
    scheduler: Box<dyn Scheduler + Send>,
    occupancy: Occupancy,
    control: ControlLoop,
    window: Tick,
    /// The instant at which the scheduler, in its last answer, wanted to be asked again.
    wake: Option<Instant>,
    events: VecDeque<Event>,
    /// Requests whose replies are held no longer. Some may have ended meanwhile.
    released: VecDeque<IoId>,
    /// On whose behalf requests wait.
    charging: Charging,
    last_answered: Option<(IoId, TimeSplit)>,
    recorder: Option<Box<dyn Recorder + Send>>,
}

/// What promised rates are lowered to while not all of them fit, in thousandths of what is promised.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LoweredRates {
    /// The rate that is lowered most.
    pub least: u32,
    /// The one that is lowered least.
    pub most: u32,
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
    /// Under the one-sided PID: what it measures and decides.
    pub throttle: Option<Throttle>,
    /// Under the law of promises: what background volumes may have of the device.
    pub allowance: Option<BackgroundKnobs>,
    /// Under the law of promises: how many requests of promised volumes may be at the device, while these go
    /// in order.
    pub in_order: Option<QueueDepth>,
    /// Under the law of promises: what promised rates are lowered to; `None`: no rate is lowered.
    pub rates: Option<LoweredRates>,
    /// How many requests wait.
    pub queued: u32,
    /// How many requests are at the device.
    pub in_flight: u32,
}

/// Configuration.
impl Engine {
    /// A pool without volumes.
    ///
    /// # Panics
    /// If a period or the SLO window has no length, or the law cannot work with its configuration.
    pub fn new(now: Instant, config: EngineConfig) -> Self {
        let (control, scheduler) = ControlLoop::new(now, &config);
        Self {
            volumes: VolumeTable::default(),
            requests: RequestTable::default(),
            scheduler,
            occupancy: Occupancy::new(),
            control,
            window: Tick::new(now, config.slo_window),
            wake: None,
            events: VecDeque::new(),
            released: VecDeque::new(),
            charging: Charging::new(now),
            last_answered: None,
            recorder: None,
            config,
        }
    }

    /// A pool without volumes, whose recorder gets an [`Entry`] for each call and each event.
    ///
    /// # Panics
    /// As [`Engine::new`].
    pub fn with_recorder(now: Instant, config: EngineConfig, mut recorder: Box<dyn Recorder + Send>) -> Self {
        let engine = Self::new(now, config);
        recorder.record(now, &Entry::Made { config, timeout: engine.poll_timeout() });
        Self { recorder: Some(recorder), ..engine }
    }

    /// Changes the law or its tuning while requests are queued and at the device. No request is lost, none is
    /// issued twice, and those that wait keep their order of arrival. Replies that are held are released. The
    /// law starts anew. A configuration that is the same changes nothing. Another threshold or write limit of
    /// [`Control::Pid`](crate::Control::Pid) is in force at once, and the delay stays.
    ///
    /// # Panics
    /// As [`Engine::new`].
    pub fn set_config(&mut self, now: Instant, config: EngineConfig) {
        self.tell(now, Input::SetConfig(config));
    }

    /// Adds a volume. Its number is its own until it is removed.
    ///
    /// # Panics
    /// If `config.port_of` is no volume, or is itself one more port of a volume.
    pub fn add_volume(&mut self, now: Instant, config: VolumeConfig) -> VolumeId {
        self.tell(now, Input::AddVolume(config)).added()
    }

    /// Changes a volume. Its new limits hold at once, also for requests that wait. Its new promise holds from
    /// the next control tick on.
    ///
    /// # Panics
    /// If there is no such volume.
    pub fn set_volume(&mut self, now: Instant, volume: VolumeId, config: VolumeConfig) {
        self.tell(now, Input::SetVolume { id: volume, config });
    }

    /// Under [`Control::Leased`](crate::Control::Leased): a controller has granted this.
    ///
    /// # Panics
    /// If the pool is not under that control.
    pub fn handle_grants(&mut self, now: Instant, grants: Grants) {
        self.tell(now, Input::Grants(grants));
    }

    /// Under [`Control::Leased`](crate::Control::Leased): what each volume may do while there is no lease. A
    /// volume that `volumes` does not name gets one request at a time.
    ///
    /// # Panics
    /// If the pool is not under that control.
    pub fn set_fallback(&mut self, now: Instant, volumes: Vec<(VolumeId, Grant)>) {
        self.tell(now, Input::SetFallback(volumes));
    }

    /// Under [`Control::SharedPromise`](crate::Control::SharedPromise): how the promises of all other
    /// gateways stand. What background volumes may have changes at once, if a promise elsewhere needs it.
    /// Under any other control, nothing changes: it may have changed while the message was on its way.
    pub fn handle_standing(&mut self, now: Instant, standing: Standing) {
        self.tell(now, Input::Standing(standing.bounded()));
    }

    /// Removes a volume.
    ///
    /// # Panics
    /// If there is no such volume, or it has requests outstanding.
    pub fn remove_volume(&mut self, now: Instant, volume: VolumeId) {
        self.tell(now, Input::RemoveVolume { id: volume });
    }
}

/// What happened.
impl Engine {
    /// A request came in.
    ///
    /// # Panics
    /// If there is no such volume.
    pub fn handle_submit(&mut self, now: Instant, request: Request) -> IoId {
        self.tell(now, Input::Submit(request)).submitted()
    }

    /// The device has finished a request, with success (`ok`) or not. The request's place at the device is
    /// free.
    ///
    /// `Some`: the reply is to be held until about this instant; [`Engine::poll_release`] names it then. A
    /// driver may hand it over earlier, if its client goes or the server stops.
    ///
    /// # Panics
    /// If that request is not at the device.
    pub fn handle_complete(&mut self, now: Instant, id: IoId, ok: bool) -> Option<Instant> {
        self.tell(now, Input::Complete { id, ok }).held_until()
    }

    /// The driver has handed over the reply to a finished request. This ends the request: its slot is free
    /// again, and its latency counts until here.
    ///
    /// # Panics
    /// If the device has not finished that request.
    pub fn handle_reply(&mut self, now: Instant, id: IoId) {
        self.tell(now, Input::Reply { id });
    }

    /// The client does not want a request any more. True: the request was queued, and is gone. False: it is
    /// at the device and will complete, or the engine does not know it.
    pub fn handle_abort(&mut self, now: Instant, id: IoId) -> bool {
        self.tell(now, Input::Abort { id }).aborted()
    }

    /// Time has passed: the engine runs what is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.tell(now, Input::Timeout);
    }
}

/// What to do.
impl Engine {
    /// The next request for the device, or why there is none. Call it until it is not [`Dispatch::Issue`].
    ///
    /// An instant in the answer needs no timer of its own: [`Engine::poll_timeout`] knows it.
    pub fn poll_dispatch(&mut self, now: Instant) -> Dispatch {
        let mut answer = Dispatch::Idle;
        self.tell_and_ask(now, Input::Dispatch, &mut answer);
        answer
    }

    /// The next request whose reply is held no longer. The engine says it once for each request whose reply
    /// was to be held, unless [`Engine::handle_reply`] came before.
    pub fn poll_release(&mut self) -> Option<IoId> {
        while let Some(id) = self.released.pop_front() {
            if self.requests.get_mut(id).is_some() {
                return Some(id);
            }
        }
        None
    }

    /// When to call [`Engine::handle_timeout`] if nothing happens before: at the end of the control period or
    /// of the SLO window, at the release of a reply, or at the scheduler's wake-up.
    pub fn poll_timeout(&self) -> Option<Instant> {
        [Some(self.window.due()), self.control.due(), self.wake].into_iter().flatten().min()
    }

    /// Under [`Control::Leased`](crate::Control::Leased): what the engine saw of each volume in the interval
    /// that ended last. The engine says it once for each interval.
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
            throttle: self.control.throttle(),
            allowance: self.control.allowance(),
            in_order: self.control.in_order(),
            rates: self.lowered_rates(),
            queued: requests.queued,
            in_flight: requests.in_flight,
        }
    }

    /// What promised rates are lowered to.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a figure for people
    fn lowered_rates(&self) -> Option<LoweredRates> {
        let covered = self.volumes.iter().filter_map(|(_, volume)| volume.covered_part());
        let lowered = covered.filter(|times| *times < 1.0).map(|times| (times * 1e3).round() as u32);
        let range = lowered.map(|it| LoweredRates { least: it, most: it });
        range.reduce(|one, other| LoweredRates {
            least: one.least.min(other.least),
            most: one.most.max(other.most),
        })
    }

    /// The latency that a volume is promised now. Façade's law holds the volume to it; without that law, it
    /// is what the open SLO window will be judged by. `None`: the volume is promised nothing, or offers more
    /// than its SLO covers.
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

    /// Whether a volume is a heavy writer, under [`Control::Pid`](crate::Control::Pid).
    ///
    /// # Panics
    /// If there is no such volume.
    pub fn is_heavy_writer(&self, volume: VolumeId) -> bool {
        self.volumes.get(volume).writing.is_heavy()
    }

    /// For how long back [`Engine::time_spent`] knows: three minutes.
    pub const REMEMBERED: Span = SpentHistory::LENGTH;

    /// Where the time of a volume's requests went, and on whose behalf they waited, since `last` ago. What is
    /// kept is kept in slices of ten seconds: the first of them counts whole. What requests wait for is
    /// charged every 20 ms, or when a timer is due.
    ///
    /// # Panics
    /// If there is no such volume.
    pub fn time_spent(&self, now: Instant, volume: VolumeId, last: Span) -> TimeSpent {
        let last = last.min(Self::REMEMBERED);
        self.volumes.get(volume).spent.over(now, last, |key| match key {
            Key::Volume(serial) => self.volumes.with_serial(serial).map_or(Whom::Gone, Whom::Volume),
            Key::OtherGateway => Whom::OtherGateway,
            Key::Others => Whom::Others,
            Key::Driver => Whom::Driver,
            Key::Nobody => Whom::Nobody,
        })
    }

    /// The request whose reply was handed over last, and where its time went; `None` before the first.
    pub const fn last_answered(&self) -> Option<(IoId, TimeSplit)> {
        self.last_answered
    }

    /// Whether there is such a volume.
    pub(crate) fn has_volume(&self, volume: VolumeId) -> bool {
        self.volumes.contains(volume)
    }

    /// Whether there is such a volume, and it is not one more port of another.
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
}
