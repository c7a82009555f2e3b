//! Turns by the device's time, and quanta for volumes that go in order.
//!
//! While several background volumes always have requests, a law may ask for this
//! ([`Scheduler::set_quantum`](crate::Scheduler::set_quantum)). Without it, background volumes take turns by
//! requests.
//!
//! **By time.** The volume goes first that has had the least of the device's time, by its priority
//! ([`device_time`](crate::device_time)). A client with one request at a time never waits while it is served,
//! so it is passed over now and then. It may lag by up to a quantum and catch up. What a volume did not ask
//! for beyond that, it has lost.
//!
//! **Quanta.** A volume that goes in order ([`order`](super::order)) loses its order if others go between its
//! requests: a disk then seeks for each. So it has the device for itself for a *quantum*, which is long
//! beside a seek. These are the quanta of Argon (Wachs et al., FAST '07). Then the others go until they have
//! had as much time. All volumes that do not go in order share the device meanwhile: one thread at random
//! places would leave most disks idle if it had them for itself. What they leave, a volume in order may use,
//! and is not charged.
//!
//! A quantum has three stages:
//!
//! 1. **Clearing**: nobody sends, and the requests of the others finish. Their time counts as theirs. If the
//!    volume sent already, a disk would serve its requests first, as they are close to one another, and the
//!    others would pay for the time that they wait. A request that takes longer than a quantum is not waited
//!    for.
//! 2. **Running**: only the volume goes, until it has had its quantum. All of that time counts, also without
//!    a request at the device. A device that answers at once would never end the quantum otherwise. And where
//!    the bound comes with a pace, a quantum would take a second.
//! 3. **Ending**: its requests finish, and nobody sends. If others sent at once, those of a deep scan would
//!    take the time of the others.
//!
//! So a request that hangs takes no more than a quantum from the volume that waits for it. A client needs a
//! moment between an answer and its next request, and a seek for others in that moment would cost more than
//! the moment. So the device is left idle for up to [`PATIENCE`]. A volume that takes longer does not need
//! the device for itself: it counts as one that does not go in order, until it has shown anew that it does.
//!
//! Promised requests do not take turns, and wait for none.

use weir_model::{Instant, Io, Span, VolumeId};

use super::order::Order;
use super::{Edf, known};

/// For how long a device is left idle for the next request of the volume that has the quantum.
pub(super) const PATIENCE: Span = Span::from_millis(2);

/// Who has the device.
#[derive(Debug)]
pub(super) struct Turns {
    /// How long a volume in order has the device for itself; `None`: turns go by requests.
    quantum: Option<Span>,
    /// The quantum that is being used.
    used: Option<Quantum>,
}

#[derive(Clone, Copy, Debug)]
struct Quantum {
    volume: VolumeId,
    stage: Stage,
    /// When this stage is over at the latest.
    until: Instant,
    /// What the volume has had of the device's time, up to the instant `at`.
    had: Span,
    at: Instant,
    /// Whether the volume has had a request at the device since then.
    is_there: bool,
    /// Since when the volume has left the device idle.
    idle_since: Option<Instant>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    Clearing,
    Running,
    Ending,
}

impl Turns {
    /// Turns by requests.
    pub(super) const fn by_requests() -> Self {
        Self { quantum: None, used: None }
    }

    /// How long a volume in order has the device for itself; `None`: turns go by requests.
    pub(super) const fn quantum(&self) -> Option<Span> {
        self.quantum
    }

    /// Whether a volume has the device for itself.
    pub(super) const fn is_used(&self) -> bool {
        self.used.is_some()
    }

    /// A volume is gone.
    pub(super) fn forget(&mut self, volume: VolumeId) {
        self.used.take_if(|used| used.volume == volume);
    }
}

impl Quantum {
    const fn new(now: Instant, volume: VolumeId) -> Self {
        let (stage, had, until) = (Stage::Clearing, Span::ZERO, now);
        Self { volume, stage, until, had, at: now, is_there: false, idle_since: None }
    }

    /// Counts the time since it was called last. From now on the volume has a request at the device, or not,
    /// and one that may go there, or not.
    fn count(&mut self, now: Instant, is_there: bool, is_ready: bool) {
        if self.stage == Stage::Running || self.stage == Stage::Ending && self.is_there {
            self.had = Span::from_nanos(self.had.as_nanos() + now.since(self.at).as_nanos());
        }
        let is_idle = !is_there && !is_ready;
        self.idle_since = is_idle.then(|| self.idle_since.unwrap_or(now));
        (self.at, self.is_there) = (now, is_there);
    }

    fn enter(&mut self, stage: Stage, until: Instant) {
        (self.stage, self.until) = (stage, until);
    }

    fn is_left_idle(&self, now: Instant) -> bool {
        self.idle_since.is_some_and(|since| since + PATIENCE <= now)
    }

    /// When this stage is over, if nothing happens before.
    fn ends_at(&self, quantum: Span) -> Instant {
        let left = Span::from_nanos(quantum.as_nanos().saturating_sub(self.had.as_nanos()));
        let is_running = self.stage == Stage::Running;
        let had_all = is_running.then(|| self.at + left);
        let left_idle = self.idle_since.map(|since| since + PATIENCE);
        [had_all, left_idle].into_iter().flatten().fold(self.until, Instant::min)
    }
}

impl Edf {
    /// From now on, a volume in order has the device for itself for so long. `None`: turns go by requests.
    pub(super) fn set_turns(&mut self, now: Instant, quantum: Option<Span>) {
        // Without a length, one quantum would follow another at the same instant for ever.
        let quantum = quantum.filter(|quantum| !quantum.is_zero());
        if quantum.is_none() {
            self.end_quantum(now);
            self.forget_times(now);
        }
        if self.turns.quantum.is_some() {
            self.clock.read(now);
        } else {
            self.clock.start(now);
        }
        self.turns.quantum = quantum;
    }

    /// Turns by time are over. Those by requests number on behind the latest of them: a volume that has had
    /// much of the time would otherwise wait for as many requests of the others as it has had nanoseconds.
    fn forget_times(&mut self, now: Instant) {
        let present = (0..).zip(&self.volumes).filter(|(_, volume)| volume.is_some());
        for id in present.map(|(number, _)| VolumeId(number)).collect::<Vec<_>>() {
            self.count_waits(now, id);
            self.settle(now, id);
            self.latest = self.latest.max(known(&mut self.volumes, id).turn);
            self.refile(now, id);
        }
    }

    /// What a volume did not ask for, beyond a quantum, it has lost. A volume has a turn only while it has a
    /// request that its own gates let pass.
    pub(super) fn forfeit(&mut self, id: VolumeId) {
        let Some(quantum) = self.turns.quantum else { return };
        if self.background.key_of(id).is_none() && self.in_order.key_of(id).is_none() {
            let volume = known(&mut self.volumes, id);
            volume.turn = volume.turn.max(self.latest.saturating_sub(quantum.as_nanos()));
        }
    }

    /// A request comes: notes whether its volume goes in order.
    pub(super) fn note(&mut self, now: Instant, io: &Io) {
        let volume = known(&mut self.volumes, io.volume);
        if self.turns.quantum.is_none() || !volume.is_background() {
            return;
        }
        if io.kind.may_move_its_length() && volume.order.note(io.offset, io.length) {
            self.refile(now, io.volume);
        }
    }

    /// Charges a volume for the device's time, before the number of its requests there changes. Returns
    /// whether its turn has moved by that.
    pub(super) fn settle(&mut self, now: Instant, id: VolumeId) -> bool {
        let goes = self.turns.quantum.is_some();
        let clock = if goes { self.clock.read(now) } else { self.clock.stopped_at() };
        let volume = known(&mut self.volumes, id);
        let requests = if volume.is_other { volume.background() } else { 0 };
        let charged = volume.account.settle(clock, requests);
        volume.turn = volume.turn.saturating_add(charged);
        charged > 0
    }

    /// Counts a volume among those that share the device's time, or no longer, after its order or its promise
    /// has changed.
    pub(super) fn reckon_sharing(&mut self, now: Instant, id: VolumeId) {
        let volume = known(&mut self.volumes, id);
        // What a promised volume sends beyond its promise never has the device for itself.
        let is_other = !volume.is_background() || !volume.order.is_kept();
        if is_other == volume.is_other {
            return;
        }
        self.settle(now, id);
        let volume = known(&mut self.volumes, id);
        volume.is_other = is_other;
        if is_other {
            self.clock.sharing += volume.background();
        } else {
            self.clock.sharing -= volume.background();
        }
    }

    /// The background volume whose turn it is, if it has a request that its own gates let pass.
    pub(super) fn whose_turn(&self) -> Option<VolumeId> {
        let (others, in_order) = (self.background.first(), self.in_order.first());
        let first = match self.turns.used {
            None if self.turns.quantum.is_none() => others.into_iter().chain(in_order).min(),
            None => others.or(in_order),
            Some(used) => {
                let is_ready = self.in_order.key_of(used.volume).is_some();
                return (is_ready && used.stage == Stage::Running).then_some(used.volume);
            }
        };
        first.map(|(_, volume)| volume)
    }

    /// Whether a background volume has a request that its own gates let pass.
    pub(super) fn background_waits(&self) -> bool {
        self.background.first().is_some() || self.in_order.first().is_some()
    }

    /// When the stage is over, if nobody may send in it and somebody would.
    pub(super) fn stage_ends_at(&self) -> Option<Instant> {
        let (quantum, used) = self.turns.quantum.zip(self.turns.used)?;
        (self.background_waits() && self.whose_turn().is_none()).then(|| used.ends_at(quantum))
    }

    /// Ends the quantum that has been used up, and begins the next one. Called before each decision.
    pub(super) fn take_turns(&mut self, now: Instant) {
        let Some(quantum) = self.turns.quantum else { return };
        while self.turns.used.is_some() || self.begin_quantum(now, quantum) {
            if !self.is_used_up(now, quantum) {
                return;
            }
            self.end_quantum(now);
        }
    }

    /// Begins a quantum of the volume in order that has had the least time, if others have had as much. A
    /// volume beside which no other has a request needs none.
    fn begin_quantum(&mut self, now: Instant, quantum: Span) -> bool {
        let Some((had, volume)) = self.in_order.first() else { return false };
        let is_due = match self.background.first() {
            Some((others, _)) => had <= others,
            // They need not wait: the bound may let all of their requests go.
            None if self.clock.sharing > 0 => had <= self.latest,
            None => self.in_order.len() > 1,
        };
        if is_due {
            let mut begun = Quantum::new(now, volume);
            begun.enter(Stage::Clearing, now + quantum);
            self.turns.used = Some(begun);
            self.latest = self.latest.max(had);
        }
        is_due
    }

    /// Takes the quantum to its next stage, if it is time. Returns whether it is over.
    fn is_used_up(&mut self, now: Instant, quantum: Span) -> bool {
        let Some(mut used) = self.turns.used else { return true };
        let volume = known(&mut self.volumes, used.volume);
        let (at_device, goes_on) = (volume.in_flight, !volume.is_other && volume.is_background());
        used.count(now, at_device > 0, self.in_order.key_of(used.volume).is_some());
        if used.stage == Stage::Clearing && (self.bound.in_flight == at_device || used.until <= now) {
            used.enter(Stage::Running, Instant::FAR_FUTURE);
        }
        if used.stage != Stage::Ending && (!goes_on || used.ends_at(quantum) <= now) {
            used.enter(Stage::Ending, now + quantum);
        }
        self.turns.used = Some(used);
        used.stage == Stage::Ending && (at_device == 0 || used.until <= now)
    }

    fn end_quantum(&mut self, now: Instant) {
        let Some(used) = self.turns.used else { return };
        self.count_waits(now, used.volume);
        self.turns.used = None;
        let volume = known(&mut self.volumes, used.volume);
        volume.turn = volume.turn.saturating_add(volume.account.charge(used.had.as_nanos()));
        if used.is_left_idle(now) {
            volume.order = Order::unknown();
        }
        self.refile(now, used.volume);
    }
}
