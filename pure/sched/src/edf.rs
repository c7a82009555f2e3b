//! Earliest deadline first behind three gates: the I/O scheduler of Façade §3.
//!
//! A request is due at the device its volume's `due_after` after it arrived, and a volume is due when its oldest request
//! is. The most urgent volume sends its first request, past three gates:
//!
//! 1. **rate**: the volume's requests and bytes a second ([`RateGate`]);
//! 2. **concurrency**: the volume's own bound on requests at the device;
//! 3. **depth**: the pool's bound, the knob of the control law. A volume that is *past due* passes it (§3): the
//!    bound is there to protect tight targets, and must not hold up the very volumes it protects. It does not pass
//!    its own two gates, which are limits and not means.
//!
//! **Flush** has a lane of its own in each volume and leaves before the volume's data, past the rate gate. That is
//! what NBD asks for and no more: a flush covers the writes that were *answered* before it was sent, so it waits
//! for none that is queued, while the client may be waiting for it with everything else. It counts at the device
//! like any request. A flush that overtakes older data leaves at that data's deadline, or a volume's own
//! flushes could starve its data; data that the rate gate holds lends it nothing.
//!
//! **Structure.** Each volume is in at most two heaps: `ready`, by deadline, if its first request has only the depth
//! gate before it; `gated`, by opening, if its data waits for its rate. One that is at its concurrency bound is in
//! neither until a completion. The heaps are as large as the number of volumes with work, so a decision costs
//! their logarithm whatever the number of requests, and a submission that does not change its volume's first
//! request touches no heap at all.

use weir_model::{Completion, Instant, Io, IoId, IoKind, QueueDepth, VolumeId};

use crate::heap::VolumeHeap;
use crate::{Chain, Dispatch, RateGate, SchedSnapshot, Scheduler, SlotChains, VolumeKnobs};

/// Earliest deadline first, with rates and bounds. See the module's text for the rules.
#[derive(Debug)]
pub struct Edf {
    depth: QueueDepth,
    queued: u32,
    in_flight: u32,
    /// Requests submitted so far: numbers them in the order in which they came.
    submitted: u64,
    /// By volume number.
    volumes: Vec<Option<Volume>>,
    waiting: SlotChains<Waiting>,
    /// Volumes whose first request has only the depth gate before it, by deadline.
    ready: VolumeHeap,
    /// Volumes whose data waits for its rate, by the instant at which the gate opens.
    gated: VolumeHeap,
    /// How many volumes have work and are at their concurrency bound.
    held: u32,
}

#[derive(Debug)]
struct Volume {
    knobs: VolumeKnobs,
    rate: RateGate,
    in_flight: u32,
    flushes: Chain,
    data: Chain,
    /// Whether it is counted in [`Edf::held`].
    held: bool,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    io: Io,
    number: u64,
}

impl Edf {
    /// A scheduler without volumes.
    pub fn new(depth: QueueDepth) -> Self {
        Self {
            depth,
            queued: 0,
            in_flight: 0,
            submitted: 0,
            volumes: Vec::new(),
            waiting: SlotChains::new(),
            ready: VolumeHeap::default(),
            gated: VolumeHeap::default(),
            held: 0,
        }
    }
}

impl Scheduler for Edf {
    fn submit(&mut self, now: Instant, io: Io) {
        let volume = known(&mut self.volumes, io.volume);
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
            self.refile(now, volume);
        }
        match self.ready.first() {
            Some((due, volume)) if due <= now || self.in_flight < self.depth.get() => self.issue(now, volume),
            most_urgent => self.why_nothing(most_urgent.map(|(due, _)| due)),
        }
    }

    fn on_complete(&mut self, now: Instant, done: &Completion) {
        let volume = known(&mut self.volumes, done.volume);
        assert!(volume.in_flight > 0, "{:?} has nothing at the device", done.volume);
        volume.in_flight -= 1;
        self.in_flight -= 1;
        if volume.held {
            self.refile(now, done.volume);
        }
        self.debug_assert_invariants(done.volume);
    }

    fn abort(&mut self, now: Instant, id: IoId) -> Option<Io> {
        let io = self.waiting.get(id.slot).map(|waiting| waiting.io).filter(|io| io.id == id)?;
        let lane = known(&mut self.volumes, io.volume).lane(io.kind);
        self.waiting.remove(lane, id.slot);
        self.queued -= 1;
        self.refile(now, io.volume);
        self.debug_assert_invariants(io.volume);
        Some(io)
    }

    fn set_depth(&mut self, _now: Instant, depth: QueueDepth) {
        self.depth = depth;
    }

    fn set_volume(&mut self, now: Instant, volume: VolumeId, knobs: &VolumeKnobs) {
        let index = volume.0 as usize;
        if index >= self.volumes.len() {
            self.volumes.resize_with(index + 1, || None);
        }
        let entry = self.volumes[index].get_or_insert_with(|| Volume::new(knobs));
        entry.rate.set_limits(now, knobs.max_iops, knobs.max_bandwidth);
        entry.knobs = *knobs;
        self.refile(now, volume);
        self.debug_assert_invariants(volume);
    }

    fn remove_volume(&mut self, _now: Instant, volume: VolumeId) {
        let gone = known(&mut self.volumes, volume);
        assert!(gone.is_empty() && gone.in_flight == 0, "{volume:?} still has requests");
        self.debug_assert_invariants(volume);
        self.volumes[volume.0 as usize] = None;
    }

    fn take_queued(&mut self, now: Instant) -> Vec<Io> {
        let mut taken = Vec::with_capacity(self.queued as usize);
        for volume in self.volumes.iter_mut().flatten() {
            taken.extend(std::iter::from_fn(|| self.waiting.pop_front(&mut volume.flushes)));
            taken.extend(std::iter::from_fn(|| self.waiting.pop_front(&mut volume.data)));
        }
        self.queued = 0;
        for index in 0..self.volumes.len() {
            if self.volumes[index].is_some() {
                let volume = VolumeId(u32::try_from(index).expect("volume numbers are u32"));
                self.refile(now, volume);
                self.debug_assert_invariants(volume);
            }
        }
        taken.sort_unstable_by_key(|waiting| waiting.number);
        taken.into_iter().map(|waiting| waiting.io).collect()
    }

    fn adopt_in_flight(&mut self, now: Instant, volume: VolumeId) {
        known(&mut self.volumes, volume).in_flight += 1;
        self.in_flight += 1;
        self.refile(now, volume);
        self.debug_assert_invariants(volume);
    }

    fn snapshot(&self) -> SchedSnapshot {
        SchedSnapshot { queued: self.queued, in_flight: self.in_flight }
    }
}

impl Edf {
    /// Sends the first request of a volume that is ready.
    fn issue(&mut self, now: Instant, id: VolumeId) -> Dispatch {
        let volume = known(&mut self.volumes, id);
        let lane = if volume.flushes.is_empty() { &mut volume.data } else { &mut volume.flushes };
        let io = self.waiting.pop_front(lane).expect("a volume that is ready has work").io;
        volume.rate.charge(now, io.kind, io.length);
        volume.in_flight += 1;
        self.in_flight += 1;
        self.queued -= 1;
        self.refile(now, id);
        self.debug_assert_invariants(id);
        Dispatch::Issue(io)
    }

    /// Why nothing is issued when the most urgent volume that is ready, if any, is due at `due` and may not pass.
    fn why_nothing(&self, due: Option<Instant>) -> Dispatch {
        let opens = self.gated.first().map(|(opens, _)| opens);
        match (due, opens) {
            (Some(due), Some(opens)) => Dispatch::AtDepth { recheck: Some(due.min(opens)) },
            (Some(due), None) => Dispatch::AtDepth { recheck: Some(due) },
            (None, opens) if self.held > 0 => Dispatch::AtDepth { recheck: opens },
            (None, Some(opens)) => Dispatch::WaitUntil(opens),
            (None, None) => {
                assert!(self.queued == 0, "{} requests wait for nothing", self.queued);
                Dispatch::Idle
            }
        }
    }

    /// Puts a volume where it belongs, after its first requests, its knobs or its gates have changed.
    fn refile(&mut self, now: Instant, id: VolumeId) {
        let volume = known(&mut self.volumes, id);
        let held = volume.is_at_bound() && !volume.is_empty();
        if held != volume.held {
            volume.held = held;
            if held { self.held += 1 } else { self.held -= 1 }
        }
        let (due, opens) = if held { (None, None) } else { volume.due_and_opening(now, &self.waiting) };
        file(&mut self.ready, id, due);
        file(&mut self.gated, id, opens);
    }

    /// Checks what must hold for a volume after every change to it, and the sums over all.
    fn debug_assert_invariants(&self, id: VolumeId) {
        let volume = self.volumes[id.0 as usize].as_ref().expect("a changed volume is known");
        let (due, opens) = (self.ready.instant_of(id), self.gated.instant_of(id));
        debug_assert_eq!(volume.held, volume.is_at_bound() && !volume.is_empty());
        debug_assert_eq!(volume.is_empty() || volume.held, due.is_none() && opens.is_none());
        debug_assert!(opens.is_none() || !volume.data.is_empty());
        debug_assert!(due.is_none() || opens.is_none() || !volume.flushes.is_empty());
        debug_assert!(volume.in_flight <= self.in_flight);
        debug_assert!(!volume.held || self.held > 0);
        debug_assert!(volume.is_empty() || self.queued > 0);
    }
}

impl Volume {
    fn new(knobs: &VolumeKnobs) -> Self {
        Self {
            knobs: *knobs,
            rate: RateGate::default(),
            in_flight: 0,
            flushes: Chain::EMPTY,
            data: Chain::EMPTY,
            held: false,
        }
    }

    fn lane(&mut self, kind: IoKind) -> &mut Chain {
        if kind == IoKind::Flush { &mut self.flushes } else { &mut self.data }
    }

    fn is_empty(&self) -> bool {
        self.flushes.is_empty() && self.data.is_empty()
    }

    fn is_at_bound(&self) -> bool {
        self.knobs.concurrency.is_some_and(|bound| self.in_flight >= bound.get())
    }

    /// When its oldest request that may pass the rate gate is due, and when the gate opens for its data if it is
    /// shut.
    fn due_and_opening(
        &self,
        now: Instant,
        waiting: &SlotChains<Waiting>,
    ) -> (Option<Instant>, Option<Instant>) {
        let due = |first: &Waiting| first.io.arrived + self.knobs.due_after;
        let flush_due = waiting.front(&self.flushes).map(due);
        let Some(data) = waiting.front(&self.data) else { return (flush_due, None) };
        let opens = self.rate.opens_at(data.io.kind);
        if opens > now {
            return (flush_due, Some(opens));
        }
        let data_due = due(data);
        (Some(flush_due.map_or(data_due, |flush_due| flush_due.min(data_due))), None)
    }
}

fn known(volumes: &mut [Option<Volume>], id: VolumeId) -> &mut Volume {
    volumes.get_mut(id.0 as usize).and_then(Option::as_mut).expect("the volume was added")
}

fn file(heap: &mut VolumeHeap, volume: VolumeId, at: Option<Instant>) {
    match at {
        Some(at) => heap.set(volume, at),
        None => heap.remove(volume),
    }
}

#[cfg(test)]
mod tests;
