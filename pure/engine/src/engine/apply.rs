//! What each input does: the only code that changes what an engine decides.
//!
//! [`Engine::apply`] leads an [`Input`] to its code. [`Engine::tell`] calls it for a driver, and is the one
//! place that records. A replay calls `apply` with a recorded input.
//!
//! **The path of a request pays nothing for the enums.** `tell`, `apply` and the steps of a request are
//! inlined into each method of the interface (`inline(always)`), and so are the tables that they use. There
//! the compiler knows the input and its outcome, and removes both. Otherwise each call would copy an enum of
//! some hundred bytes, and a request would take 8 % more instructions.

use weir_control::{Grant, Latency, Standing};
use weir_model::{Completion, Instant, Io, IoId, Span, VolumeId};
use weir_sched::Dispatch;

use super::Engine;
use crate::config::{Control, EngineConfig, Grants, VolumeConfig};
use crate::event::Event;
use crate::input::{Answer, Input, Outcome, Request};
use crate::loops::{ControlLoop, Pool, close_windows, end_windows};
use crate::recording::Entry;
use crate::requests::{Stage, Stamped};
use crate::slo_window::Ending;
use crate::tick::Tick;
use crate::time_split::TimeSplit;
use crate::volume::Volume;

impl Engine {
    /// Applies an input. Tells the recorder, if there is one, of the input, its outcome and the events that
    /// it caused.
    #[inline(always)]
    pub(super) fn tell(&mut self, now: Instant, input: Input) -> Outcome {
        self.tell_and_ask(now, input, &mut Dispatch::Idle)
    }

    /// As [`Engine::tell`]. `answer` becomes the answer to an [`Input::Dispatch`], with the whole request.
    #[inline(always)]
    pub(super) fn tell_and_ask(&mut self, now: Instant, input: Input, answer: &mut Dispatch) -> Outcome {
        let told = if self.recorder.is_some() { Some((input.clone(), self.events.len())) } else { None };
        let outcome = self.apply(now, input, answer);
        if let Some((input, reported)) = told {
            self.record(now, &Entry::Applied { input, outcome }, reported);
        }
        outcome
    }

    /// Applies an input. `answer` is as in [`Engine::tell_and_ask`].
    ///
    /// # Panics
    /// If the driver must not give this input now: see the methods of the interface.
    #[inline(always)]
    pub(crate) fn apply(&mut self, now: Instant, input: Input, answer: &mut Dispatch) -> Outcome {
        match input {
            Input::Submit(request) => Outcome::Submitted(self.submit(now, request)),
            Input::Dispatch => {
                *answer = self.dispatch(now);
                Outcome::Dispatched(Answer::from(*answer))
            }
            Input::Complete { id, ok } => self.complete(now, id, ok).map_or(Outcome::Done, Outcome::Held),
            Input::Reply { id } => {
                self.reply(now, id);
                Outcome::Done
            }
            Input::Abort { id } => Outcome::Aborted(self.abort(now, id)),
            Input::Timeout => {
                self.run_due(now);
                Outcome::Timeout(self.poll_timeout())
            }
            Input::SetConfig(config) => {
                self.configure(now, config);
                Outcome::Timeout(self.poll_timeout())
            }
            Input::AddVolume(config) => Outcome::Added(self.add(now, config)),
            Input::SetVolume { id, config } => {
                self.change(now, id, config);
                Outcome::Done
            }
            Input::RemoveVolume { id } => {
                self.remove(now, id);
                Outcome::Done
            }
            Input::Grants(grants) => {
                self.grant_volumes(now, &grants);
                Outcome::Timeout(self.poll_timeout())
            }
            Input::SetFallback(volumes) => {
                self.change_fallback(now, volumes);
                Outcome::Done
            }
            Input::Standing(standing) => {
                self.hear(now, standing);
                Outcome::Done
            }
        }
    }

    /// Tells the recorder of an input that was applied, and of the events after the first `reported`.
    fn record(&mut self, now: Instant, applied: &Entry, reported: usize) {
        let Some(recorder) = &mut self.recorder else { return };
        recorder.record(now, applied);
        for event in (reported..self.events.len()).filter_map(|at| self.events.get(at)) {
            recorder.record(now, &Entry::Reported(*event));
        }
    }
}

/// The life of a request.
impl Engine {
    #[inline(always)]
    fn submit(&mut self, now: Instant, request: Request) -> IoId {
        let Request { volume, kind, offset, length } = request;
        let limited = self.scheduler.limited(now, volume);
        let owner = self.volumes.get_mut(volume);
        let window = owner.on_arrival(now, kind, length);
        let stage = Stage::Queued { limited: owner.limited_before + limited };
        let stamped = Stamped { volume, kind, length, arrived: now, window, stage };
        let id = self.requests.insert(owner.chain(kind), stamped);
        if let ControlLoop::Promise(_) = self.control {
            self.with_loop(|control, pool| control.promise().on_arrival(now, volume, pool));
        }
        self.scheduler.submit(now, Io { id, volume, kind, offset, length, arrived: now });
        id
    }

    #[inline(always)]
    fn dispatch(&mut self, now: Instant) -> Dispatch {
        if self.control.granted_until().is_some_and(|until| until <= now) {
            self.with_loop(|control, pool| control.leased().end_lease(now, pool));
        }
        if self.charging.is_due(now) {
            self.charge_waits(now);
        }
        let dispatch = self.scheduler.poll_dispatch(now);
        match dispatch {
            Dispatch::Issue(io) => {
                let request = self.requests.get_mut(io.id).expect("what is queued is known");
                let owner = self.volumes.get_mut(io.volume);
                let limited = owner.limited_before + self.scheduler.limited(now, io.volume);
                request.issue(now, limited);
                self.occupancy.on_issue(now);
                owner.on_issue(now);
                if let ControlLoop::Promise(control) = &mut self.control {
                    control.on_issue(self.scheduler.snapshot().background);
                }
                self.debug_assert_invariants();
            }
            Dispatch::WaitUntil(instant) => self.wake = Some(instant),
            Dispatch::AtDepth { recheck } => self.wake = recheck,
            Dispatch::Idle => self.wake = None,
        }
        dispatch
    }

    #[inline(always)]
    fn complete(&mut self, now: Instant, id: IoId, ok: bool) -> Option<Instant> {
        let request = self.requests.get_mut(id).expect("only what was issued completes");
        let Stage::AtDevice { limited, issued } = request.stage else {
            panic!("{id:?} is not at the device")
        };
        self.occupancy.on_complete(now, issued);
        let volume = self.volumes.get_mut(request.volume);
        volume.on_complete(now);
        let held_until = match &mut self.control {
            ControlLoop::Delay(control) if ok => control.on_complete(now, id, request, issued, volume),
            _ => None,
        };
        let free = held_until.unwrap_or(now);
        request.stage = Stage::Done { limited, issued, completed: now, held_until: free, ok };
        self.scheduler.on_complete(now, &Completion { id, volume: request.volume, ok });
        self.debug_assert_invariants();
        held_until
    }

    #[inline(always)]
    fn reply(&mut self, now: Instant, id: IoId) {
        let request = *self.requests.get_mut(id).expect("only what was submitted is answered");
        let Stamped { volume, kind, length, arrived, stage, .. } = request;
        let Stage::Done { limited, issued, completed, held_until, ok } = stage else {
            panic!("{id:?} is not finished")
        };
        let total = now.since(arrived);
        let owner = self.volumes.get_mut(volume);
        self.requests.remove(owner.chain(kind), id);
        owner.on_end(now, &request, if ok { Ending::Answered } else { Ending::Failed });
        let (queued, device) = (issued.since(arrived), completed.since(issued));
        if ok {
            owner.on_answer(kind, length, Latency { total, at_device: device });
        }
        self.events.push_back(Event::Finished { volume, kind, length, ok, queued, device, total });
        let (released, own_limit) = (held_until.min(now), limited.min(queued));
        let split = TimeSplit {
            own_limit,
            turn: Span::from_nanos(queued.as_nanos() - own_limit.as_nanos()),
            device,
            held: released.since(completed),
            reply: now.since(released),
        };
        owner.spent.record(now, &split);
        self.last_answered = Some((id, split));
        if owner.has_window_to_close() {
            self.events.extend(close_windows(now, volume, owner));
        }
    }

    fn abort(&mut self, now: Instant, id: IoId) -> bool {
        let Some(request) = self.requests.get_mut(id).copied() else { return false };
        let Stamped { volume, kind, stage: Stage::Queued { .. }, .. } = request else { return false };
        let aborted = self.scheduler.abort(now, id);
        assert!(aborted.is_some(), "{id:?} is queued, but the scheduler has lost it");
        let owner = self.volumes.get_mut(volume);
        self.requests.remove(owner.chain(kind), id);
        owner.on_end(now, &request, Ending::Aborted);
        self.events.push_back(Event::Aborted { volume, kind });
        self.events.extend(close_windows(now, volume, owner));
        true
    }
}

/// Time.
impl Engine {
    fn run_due(&mut self, now: Instant) {
        if self.wake.is_some_and(|wake| wake <= now) {
            self.wake = None;
        }
        if self.charging.is_due(now) {
            self.charge_waits(now);
        }
        self.with_loop(|control, pool| control.handle_timeout(now, pool));
        if self.window.serve(now) {
            end_windows(now, &mut self.volumes, &self.requests, &mut self.events);
        }
    }

    /// Charges what requests waited for since the last time.
    #[cold]
    fn charge_waits(&mut self, now: Instant) {
        let promise = self.control.on_behalf_of();
        self.charging.charge(now, &mut *self.scheduler, &mut self.volumes, promise);
    }
}

/// Configuration.
impl Engine {
    fn configure(&mut self, now: Instant, config: EngineConfig) {
        if config == self.config {
            return;
        }
        let differs_elsewhere = EngineConfig { control: self.config.control, ..config } != self.config;
        if let (ControlLoop::Delay(control), Control::Pid(pid)) = (&mut self.control, config.control)
            && !differs_elsewhere
            && control.adjust(pid)
        {
            self.config = config;
        } else {
            self.change_law(now, config);
        }
    }

    fn change_law(&mut self, now: Instant, config: EngineConfig) {
        if config.slo_window != self.config.slo_window {
            self.window = Tick::new(now, config.slo_window);
            self.volumes.iter_mut().for_each(|(_, volume)| volume.restart_windows(now));
        }
        self.config = config;
        if let ControlLoop::Delay(control) = &mut self.control {
            self.released.extend(control.release_all());
        }
        self.charge_waits(now);
        for (id, volume) in self.volumes.iter_mut() {
            volume.limited_before += self.scheduler.limited(now, id);
        }
        let queued = self.scheduler.take_queued(now);
        (self.control, self.scheduler) = ControlLoop::new(now, &config);
        let (shared, leased) = (self.control.shares_concurrency(), self.control.is_leased());
        let guarded = matches!(self.control, ControlLoop::Promise(_)).then_some(config.slo_window);
        for (id, volume) in self.volumes.iter_mut() {
            let at_device = self.requests.iter().filter(|r| r.volume == id && r.is_at_device()).count();
            volume.restart_period();
            let at_device = u32::try_from(at_device).expect("requests are numbered by u32");
            volume.set_shared(now, shared, leased, at_device);
            volume.set_guarded(now, guarded, at_device);
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

    fn add(&mut self, now: Instant, config: VolumeConfig) -> VolumeId {
        let first = config.port_of.map(|of| self.volumes.get(of).port_of());
        assert!(first.is_none_or(|of| of.is_none()), "a port of a port");
        let id = self.volumes.insert(Volume::new(now, config));
        let added = self.volumes.get_mut(id);
        added.set_shared(now, self.control.shares_concurrency(), self.control.is_leased(), 0);
        let guarded = matches!(self.control, ControlLoop::Promise(_)).then_some(self.config.slo_window);
        added.set_guarded(now, guarded, 0);
        let knobs = added.knobs();
        self.scheduler.set_volume(now, id, &knobs);
        self.with_loop(|control, pool| control.on_volumes_changed(now, pool));
        id
    }

    fn change(&mut self, now: Instant, id: VolumeId, config: VolumeConfig) {
        let changed = self.volumes.get_mut(id);
        changed.set_config(now, config);
        self.scheduler.set_volume(now, id, &changed.knobs());
    }

    fn remove(&mut self, now: Instant, id: VolumeId) {
        let outstanding = self.outstanding(id);
        assert!(outstanding == 0, "{id:?} has {outstanding} requests outstanding");
        self.charge_waits(now);
        self.scheduler.remove_volume(now, id);
        self.volumes.remove(id);
    }

    fn grant_volumes(&mut self, now: Instant, grants: &Grants) {
        self.with_loop(|control, pool| control.leased().handle_grants(now, grants, pool));
    }

    fn change_fallback(&mut self, now: Instant, volumes: Vec<(VolumeId, Grant)>) {
        self.with_loop(|control, pool| control.leased().set_fallback(now, volumes, pool));
    }

    fn hear(&mut self, now: Instant, standing: Standing) {
        if let ControlLoop::Promise(_) = self.control {
            self.with_loop(|control, pool| control.promise().hear(now, standing, pool));
        }
    }
}

impl Engine {
    /// Runs `act` with the control loop and with all that the loop reads and turns.
    fn with_loop(&mut self, act: impl FnOnce(&mut ControlLoop, &mut Pool<'_>)) {
        let mut pool = Pool {
            volumes: &mut self.volumes,
            requests: &self.requests,
            occupancy: &mut self.occupancy,
            scheduler: &mut *self.scheduler,
            events: &mut self.events,
            released: &mut self.released,
        };
        act(&mut self.control, &mut pool);
    }

    fn debug_assert_invariants(&self) {
        debug_assert_eq!(self.occupancy.count(), self.scheduler.snapshot().in_flight);
    }
}
