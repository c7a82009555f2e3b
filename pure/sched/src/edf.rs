//! Earliest deadline first behind three gates: the I/O scheduler of Façade §3.
//!
//! A request is due at the device once its volume's `due_after` has passed since its arrival. A volume is due
//! when its oldest request is. The most urgent volume sends its first request, past three gates:
//!
//! 1. **rate**: the volume's requests and bytes a second ([`RateGate`](crate::RateGate));
//! 2. **concurrency**: the volume's own bound on requests at the device;
//! 3. **depth**: the pool's bound, the knob of the control law. A volume that is *past due* passes it (§3):
//!    the bound is there to protect tight targets, and must not hold up the volumes that it protects. A
//!    volume that is past due does not pass its own two gates: they are limits set for it, and not means to
//!    protect it.
//!
//! **Background** volumes have no `due_after`: nothing is promised to them, or they offer more than their SLO
//! covers. Under Maestro's law all volumes are background, because that law sets no deadlines; there the
//! depth gate never shuts. Background volumes are never past due. A background request goes when the depth
//! gate is open and no promised request could go instead. Background volumes take turns: a request each, or
//! by the device's time if a law asks for that ([`turns`]). In the order of arrival, a volume that always has
//! a thousand requests waiting would keep another from the device for as long as these take.
//!
//! **What a promise covers.** It may cover a rate only ([`VolumeKnobs::covered`]). A request beyond that rate
//! waits, goes and counts as a background request, in the turns of its volume. It is a promised one as soon
//! as the rate covers it.
//!
//! **The bound.** A law may hold background volumes back ([`Scheduler::set_background`]): no more than so
//! many of their requests are at the device at a time, and they keep a pace ([`Bound`]). A promised request
//! never waits for the bound. At a bound of zero, background requests have only the lane.
//!
//! Promised volumes may have a bound of their own, too ([`Scheduler::set_promised`]). None of their requests
//! passes it, however late it is: the bound is there to keep them in order. Background requests do not wait
//! for it, they have their own.
//!
//! **The lane.** Promised work can keep the depth gate shut for ever, and the bound of the background may be
//! zero. So there is one exception to both: while no background request is at the device, one may pass, as
//! often as their share of the device's time allows ([`Lane`]). A long deadline would not do instead: once a
//! backlog is past its deadline, all of it goes at once, before every promise.
//!
//! **Flushes** have a queue of their own in each volume, and leave before the volume's data. NBD asks for no
//! more than that: a flush covers the writes that were *answered* before it was sent. So it waits for no
//! queued write, and the client may be waiting for it with all its other work. The rate of requests may hold
//! a flush, like any other request; bandwidth does not. A flush that overtakes older data leaves at that
//! data's deadline. No second flush overtakes the same data: otherwise a volume's own flushes could starve
//! its data. Data that the rate gate holds gives a flush no earlier deadline.
//!
//! **Structure.** Each volume is in at most two heaps. If its own gates let its first request pass, it is in
//! `ready`, by deadline, or in `background` or `in_order`, by turn. If its rate holds something back, it is
//! in `gated`, by the instant at which the gate opens. A volume at its concurrency bound is in none until a
//! completion. A heap is as large as the number of volumes with work. So a decision costs the logarithm of
//! that number, whatever the number of requests. A submission that does not change its volume's first request
//! touches no heap.

mod beyond;
mod bound;
mod gates;
mod lane;
mod order;
mod turns;
mod volume;

use weir_model::{Completion, Instant, Io, IoId, QueueDepth, Span, TimeShare, VolumeId};

use crate::device_time::SharedClock;
use crate::heap::VolumeHeap;
use crate::waiting::{GateClocks, State};
use crate::{BackgroundKnobs, Dispatch, SchedSnapshot, Scheduler, SlotChains, VolumeKnobs, VolumeWaits};

use beyond::Beyond;
use bound::Bound;
use lane::Lane;
use turns::Turns;
use volume::{Prospect, Volume, Waiting};

/// Earliest deadline first, with rates and bounds.
#[derive(Debug)]
pub struct Edf {
    depth: QueueDepth,
    /// How many requests of promised volumes may be at the device.
    promised: QueueDepth,
    queued: u32,
    in_flight: u32,
    /// How many requests were submitted so far. Numbers them in their order.
    submitted: u64,
    /// By volume number.
    volumes: Vec<Option<Volume>>,
    waiting: SlotChains<Waiting>,
    /// Promised volumes whose first request has only the depth gate before it, by deadline.
    ready: VolumeHeap,
    /// Background volumes whose first request has only the depth gate, the bound and the turns before it, by
    /// turn: those that do not go in order, and those that do.
    background: VolumeHeap<u64>,
    in_order: VolumeHeap<u64>,
    /// Volumes whose rate holds something back, by the instant at which it lets that pass; and volumes whose
    /// first request is beyond what their promise covers, by the instant from which on it is not.
    gated: VolumeHeap,
    /// How many volumes have waiting requests and are at their concurrency bound.
    held: u32,
    bound: Bound,
    turns: Turns,
    clock: SharedClock,
    /// The latest turn of a volume that had its turn. Numbers turns by requests.
    latest: u64,
    lane: Lane,
    /// The requests at the device that went beyond what their promise covers.
    beyond: Beyond,
    /// What makes requests wait.
    gate_clocks: GateClocks,
}

impl Edf {
    /// A scheduler without volumes. If promised requests leave nothing, background requests get the share
    /// `background` of the device's time.
    pub const fn new(depth: QueueDepth, background: TimeShare) -> Self {
        Self {
            depth,
            promised: QueueDepth::MAX,
            queued: 0,
            in_flight: 0,
            submitted: 0,
            volumes: Vec::new(),
            waiting: SlotChains::new(),
            ready: VolumeHeap::new(),
            background: VolumeHeap::new(),
            in_order: VolumeHeap::new(),
            gated: VolumeHeap::new(),
            held: 0,
            bound: Bound::none(background),
            turns: Turns::by_requests(),
            clock: SharedClock::new(),
            latest: 0,
            lane: Lane::new(background),
            beyond: Beyond::none(),
            gate_clocks: GateClocks::new(),
        }
    }
}

impl Scheduler for Edf {
    fn submit(&mut self, now: Instant, io: Io) {
        self.count_waits(now, io.volume);
        self.note(now, &io);
        let volume = known(&mut self.volumes, io.volume);
        volume.clock.queued += 1;
        let lane = volume.lane(io.kind);
        let is_first = lane.is_empty();
        self.waiting.push_back(lane, io.id.slot, Waiting { io, number: self.submitted });
        self.submitted += 1;
        self.queued += 1;
        if is_first {
            self.refile(now, io.volume);
        }
        self.debug_assert_invariants(io.volume);
    }

    fn poll_dispatch(&mut self, now: Instant) -> Dispatch {
        while let Some((_, volume)) = self.gated.first().filter(|(opens, _)| *opens <= now) {
            self.count_waits(now, volume);
            self.refile(now, volume);
        }
        self.advance(now);
        self.take_turns(now);
        let has_room = self.in_flight < self.depth.get();
        match (self.most_urgent(), self.whose_turn()) {
            (Some((due, volume)), _) if has_room || due <= now => Dispatch::Issue(self.issue(now, volume)),
            (None, Some(volume)) if has_room && self.bound.opens_at().is_some_and(|at| at <= now) => {
                Dispatch::Issue(self.issue(now, volume))
            }
            (_, Some(volume)) if self.lane_opens_at().is_some_and(|opens| opens <= now) => {
                let io = self.issue(now, volume);
                self.lane.take(now, io.id);
                Dispatch::Issue(io)
            }
            _ => self.why_nothing(),
        }
    }

    fn on_complete(&mut self, now: Instant, done: &Completion) {
        self.count_waits(now, done.volume);
        let was_charged = self.settle(now, done.volume);
        let volume = known(&mut self.volumes, done.volume);
        assert!(volume.in_flight > 0, "{:?} has nothing at the device", done.volume);
        let went_beyond = self.beyond.take(done.id, volume.epoch) && !volume.is_background();
        let is_background = volume.is_background() || went_beyond;
        volume.in_flight -= 1;
        volume.beyond -= u32::from(went_beyond);
        self.in_flight -= 1;
        self.bound.in_flight -= u32::from(is_background);
        self.clock.sharing -= u32::from(is_background && volume.is_other);
        self.lane.on_complete(now, done.id);
        if volume.held || was_charged {
            self.refile(now, done.volume);
        }
        self.debug_assert_invariants(done.volume);
    }

    fn abort(&mut self, now: Instant, id: IoId) -> Option<Io> {
        let io = self.waiting.get(id.slot).map(|waiting| waiting.io).filter(|io| io.id == id)?;
        self.count_waits(now, io.volume);
        let volume = known(&mut self.volumes, io.volume);
        volume.clock.queued -= 1;
        let lane = volume.lane(io.kind);
        self.waiting.remove(lane, id.slot);
        self.queued -= 1;
        self.refile(now, io.volume);
        self.debug_assert_invariants(io.volume);
        Some(io)
    }

    fn set_depth(&mut self, now: Instant, depth: QueueDepth) {
        self.advance(now);
        self.depth = depth;
    }

    fn set_background(&mut self, now: Instant, knobs: BackgroundKnobs) {
        self.advance(now);
        self.bound.set(now, knobs);
        self.lane.set(knobs);
    }

    fn set_promised(&mut self, now: Instant, most: QueueDepth) {
        self.advance(now);
        self.promised = most;
    }

    fn set_quantum(&mut self, now: Instant, quantum: Option<Span>) {
        self.advance(now);
        self.set_turns(now, quantum);
    }

    fn set_volume(&mut self, now: Instant, volume: VolumeId, knobs: &VolumeKnobs) {
        let index = volume.0 as usize;
        if index >= self.volumes.len() {
            self.volumes.resize_with(index + 1, || None);
        }
        self.volumes[index].get_or_insert_with(|| Volume::new(knobs));
        self.count_waits(now, volume);
        self.settle(now, volume);
        let entry = known(&mut self.volumes, volume);
        entry.rate.set_limits(now, knobs.max_iops, knobs.max_bandwidth);
        entry.covered.set_limits(now, knobs.covered.iops, knobs.covered.bandwidth);
        let (was_background, before) = (entry.is_background(), entry.background());
        entry.knobs = *knobs;
        entry.account.set_priority(knobs.weight());
        if was_background != entry.is_background() {
            entry.beyond = 0;
            entry.epoch = entry.epoch.wrapping_add(1).max(1);
        }
        let after = entry.background();
        self.bound.in_flight = self.bound.in_flight - before + after;
        if entry.is_other {
            self.clock.sharing = self.clock.sharing - before + after;
        }
        self.refile(now, volume);
        self.debug_assert_invariants(volume);
    }

    fn remove_volume(&mut self, _now: Instant, volume: VolumeId) {
        let gone = known(&mut self.volumes, volume);
        assert!(gone.is_empty() && gone.in_flight == 0, "{volume:?} still has requests");
        self.debug_assert_invariants(volume);
        self.turns.forget(volume);
        self.gate_clocks.forget(volume);
        self.volumes[volume.0 as usize] = None;
    }

    fn take_queued(&mut self, now: Instant) -> Vec<Io> {
        let mut taken = Vec::with_capacity(self.queued as usize);
        for volume in self.volumes.iter_mut().flatten() {
            taken.extend(std::iter::from_fn(|| self.waiting.pop_front(&mut volume.flushes)));
            taken.extend(std::iter::from_fn(|| self.waiting.pop_front(&mut volume.data)));
            volume.clock.queued = 0;
        }
        self.queued = 0;
        for index in 0..self.volumes.len() {
            if self.volumes[index].is_some() {
                let volume = VolumeId(u32::try_from(index).expect("volume numbers are u32"));
                self.count_waits(now, volume);
                self.refile(now, volume);
                self.debug_assert_invariants(volume);
            }
        }
        taken.sort_unstable_by_key(|waiting| waiting.number);
        taken.into_iter().map(|waiting| waiting.io).collect()
    }

    fn adopt_in_flight(&mut self, now: Instant, volume: VolumeId) {
        self.count_waits(now, volume);
        self.settle(now, volume);
        let owner = known(&mut self.volumes, volume);
        owner.in_flight += 1;
        self.in_flight += 1;
        self.bound.in_flight += u32::from(owner.is_background());
        self.clock.sharing += u32::from(owner.is_background() && owner.is_other);
        self.refile(now, volume);
        self.debug_assert_invariants(volume);
    }

    fn limited(&self, now: Instant, volume: VolumeId) -> Span {
        self.volumes
            .get(volume.0 as usize)
            .and_then(Option::as_ref)
            .map_or(Span::ZERO, |volume| volume.clock.limited(now))
    }

    fn take_waits(&mut self, now: Instant, into: &mut Vec<VolumeWaits>) {
        self.hand_over_waits(now, into);
    }

    fn snapshot(&self) -> SchedSnapshot {
        SchedSnapshot { queued: self.queued, in_flight: self.in_flight, background: self.bound.in_flight }
    }
}

impl Edf {
    /// Sends the first request of a volume that has only the depth gate before it.
    fn issue(&mut self, now: Instant, id: VolumeId) -> Io {
        self.count_waits(now, id);
        self.settle(now, id);
        let volume = known(&mut self.volumes, id);
        let io =
            volume.pop(now, &mut self.waiting).expect("a volume in a heap of those that may send has work");
        volume.rate.charge(now, io.kind, io.length);
        if volume.is_beyond {
            volume.beyond += 1;
            self.beyond.put(io.id, volume.epoch);
        } else {
            volume.covered.charge(now, io.kind, io.length);
        }
        volume.in_flight += 1;
        volume.clock.on_issue();
        self.in_flight += 1;
        self.queued -= 1;
        if volume.is_background() || volume.is_beyond {
            self.bound.on_issue(now);
            self.clock.sharing += u32::from(volume.is_other);
            if self.turns.quantum().is_none() {
                self.latest += 1;
                volume.turn = self.latest;
            } else if volume.is_other {
                self.latest = self.latest.max(volume.turn);
                // A device that answers at once charges nothing, and the same volume would go again.
                volume.turn = volume.turn.saturating_add(1);
            }
        }
        self.refile(now, id);
        self.debug_assert_invariants(id);
        io
    }

    /// The promised volume that goes next, and when it is due; `None`: none waits, or as many requests of
    /// promised volumes are at the device as may be.
    fn most_urgent(&self) -> Option<(Instant, VolumeId)> {
        let has_room = self.in_flight - self.bound.in_flight < self.promised.get();
        self.ready.first().filter(|_| has_room)
    }

    /// From when on a background request may pass the depth gate and the bound. `None` while one is at the
    /// device, and for a share of zero.
    fn lane_opens_at(&self) -> Option<Instant> {
        self.lane.opens_at().filter(|_| self.bound.in_flight == 0)
    }

    /// Why nothing is issued now.
    fn why_nothing(&self) -> Dispatch {
        let due = self.most_urgent().map(|(due, _)| due);
        let opens = self.gated.first().map(|(opens, _)| opens);
        let whose_turn = self.whose_turn();
        let lane = whose_turn.and_then(|_| self.lane_opens_at());
        let has_room = self.in_flight < self.depth.get();
        let paced = whose_turn.filter(|_| has_room).and_then(|_| self.bound.opens_at());
        let turn = self.stage_ends_at();
        let is_at_bound = self.ready.first().is_some() || self.background_waits() || self.held > 0;
        match [due, opens, lane, paced, turn].into_iter().flatten().min() {
            recheck if is_at_bound => Dispatch::AtDepth { recheck },
            Some(opens) => Dispatch::WaitUntil(opens),
            None => {
                assert!(self.queued == 0, "{} requests wait for nothing", self.queued);
                Dispatch::Idle
            }
        }
    }

    /// Puts a volume where it belongs, after its first requests, its knobs or its gates have changed. What
    /// its requests waited up to now is counted already.
    fn refile(&mut self, now: Instant, id: VolumeId) {
        self.reckon_sharing(now, id);
        self.forfeit(id);
        let volume = known(&mut self.volumes, id);
        let held = volume.is_at_bound() && !volume.is_empty();
        if held != volume.held {
            volume.held = held;
            if held { self.held += 1 } else { self.held -= 1 }
        }
        let nothing = Prospect { oldest: None, opens: None };
        let Prospect { oldest, opens } = if held { nothing } else { volume.prospect(now, &self.waiting) };
        let covered = oldest.filter(|_| volume.is_bounded()).map(|_| volume.covered_from(now, &self.waiting));
        let covered = covered.filter(|from| *from > now);
        volume.is_beyond = covered.is_some();
        let is_background = volume.is_background() || volume.is_beyond;
        let due_after = volume.knobs.due_after.filter(|_| !is_background);
        let due = oldest.zip(due_after).map(|(arrived, due_after)| arrived + due_after);
        let turn = oldest.filter(|_| is_background).map(|_| volume.turn);
        let is_other = volume.is_other;
        volume.clock.enter(match (held, oldest, opens) {
            (true, ..) => State::AtBound,
            (_, Some(_), _) => State::Ready,
            (_, None, Some(_)) => State::AtRate,
            (_, None, None) => State::Empty,
        });
        file(&mut self.ready, id, due);
        file(&mut self.background, id, turn.filter(|_| is_other));
        file(&mut self.in_order, id, turn.filter(|_| !is_other));
        file(&mut self.gated, id, opens.into_iter().chain(covered).min());
    }

    /// Checks what must hold for a volume after every change to it, and the sums over all.
    fn debug_assert_invariants(&self, id: VolumeId) {
        if !cfg!(debug_assertions) {
            return; // the look-ups alone would be felt in each request
        }
        let volume = self.volumes[id.0 as usize].as_ref().expect("a changed volume is known");
        let has_turn = self.background.key_of(id).or_else(|| self.in_order.key_of(id)).is_some();
        let may_send = self.ready.key_of(id).is_some() || has_turn;
        let is_gated = self.gated.key_of(id).is_some();
        debug_assert_eq!(volume.held, volume.is_at_bound() && !volume.is_empty());
        debug_assert_eq!(volume.is_empty() || volume.held, !may_send && !is_gated);
        let is_background = volume.is_background() || volume.is_beyond;
        debug_assert!(!may_send || self.ready.key_of(id).is_none() == is_background);
        let has_both = !volume.flushes.is_empty() && !volume.data.is_empty();
        debug_assert!(!may_send || !is_gated || volume.is_beyond || has_both);
        debug_assert!(volume.beyond <= volume.in_flight);
        debug_assert!(volume.in_flight <= self.in_flight);
        debug_assert_eq!(volume.is_other, !volume.is_background() || !volume.order.is_kept());
        debug_assert!(!volume.is_other || volume.background() <= self.clock.sharing);
        debug_assert!(self.bound.in_flight <= self.in_flight);
        debug_assert!(!volume.held || self.held > 0);
        debug_assert!(volume.is_empty() || self.queued > 0);
    }
}

fn known(volumes: &mut [Option<Volume>], id: VolumeId) -> &mut Volume {
    volumes.get_mut(id.0 as usize).and_then(Option::as_mut).expect("the volume was added")
}

fn file<K: Copy + Ord>(heap: &mut VolumeHeap<K>, volume: VolumeId, at: Option<K>) {
    match at {
        Some(at) => heap.set(volume, at),
        None => heap.remove(volume),
    }
}

#[cfg(test)]
mod tests;
