//! First come, first served, at once: the scheduler of a pool without control.
//!
//! It stands in the same place as [`crate::Edf`], so a comparison of the two compares only their decisions.
//! It ignores every knob: the depth, the deadlines and the limits of the volumes.

use weir_model::{Completion, Instant, Io, IoId, QueueDepth, Span, VolumeId};

use crate::{BackgroundKnobs, Chain, Dispatch, SchedSnapshot, Scheduler, SlotChains, VolumeKnobs};

/// Issues every request in the order in which it came.
#[derive(Debug)]
pub struct PassThrough {
    queued: u32,
    in_flight: u32,
    waiting: SlotChains<Io>,
    queue: Chain,
    /// By volume number: how many of its requests wait or are at the device.
    outstanding: Vec<Option<u32>>,
}

impl PassThrough {
    /// A scheduler without volumes.
    pub const fn new() -> Self {
        Self {
            queued: 0,
            in_flight: 0,
            waiting: SlotChains::new(),
            queue: Chain::EMPTY,
            outstanding: Vec::new(),
        }
    }

    fn outstanding(&mut self, volume: VolumeId) -> &mut u32 {
        let index = volume.0 as usize;
        self.outstanding.get_mut(index).and_then(Option::as_mut).expect("the volume was added")
    }
}

impl Default for PassThrough {
    fn default() -> Self {
        Self::new()
    }
}

impl Scheduler for PassThrough {
    fn submit(&mut self, _now: Instant, io: Io) {
        *self.outstanding(io.volume) += 1;
        self.waiting.push_back(&mut self.queue, io.id.slot, io);
        self.queued += 1;
    }

    fn poll_dispatch(&mut self, _now: Instant) -> Dispatch {
        let Some(io) = self.waiting.pop_front(&mut self.queue) else { return Dispatch::Idle };
        self.queued -= 1;
        self.in_flight += 1;
        Dispatch::Issue(io)
    }

    fn on_complete(&mut self, _now: Instant, done: &Completion) {
        let outstanding = self.outstanding(done.volume);
        assert!(*outstanding > 0, "{:?} has nothing at the device", done.volume);
        *outstanding -= 1;
        self.in_flight -= 1;
    }

    fn abort(&mut self, _now: Instant, id: IoId) -> Option<Io> {
        self.waiting.get(id.slot).filter(|io| io.id == id)?;
        let io = self.waiting.remove(&mut self.queue, id.slot);
        *self.outstanding(io.volume) -= 1;
        self.queued -= 1;
        Some(io)
    }

    fn set_depth(&mut self, _now: Instant, _depth: QueueDepth) {}

    fn set_background(&mut self, _now: Instant, _knobs: BackgroundKnobs) {}

    fn set_promised(&mut self, _now: Instant, _most: QueueDepth) {}

    fn set_quantum(&mut self, _now: Instant, _quantum: Option<Span>) {}

    fn set_volume(&mut self, _now: Instant, volume: VolumeId, _knobs: &VolumeKnobs) {
        let index = volume.0 as usize;
        if index >= self.outstanding.len() {
            self.outstanding.resize(index + 1, None);
        }
        self.outstanding[index].get_or_insert(0);
    }

    fn remove_volume(&mut self, _now: Instant, volume: VolumeId) {
        assert!(*self.outstanding(volume) == 0, "{volume:?} still has requests");
        self.outstanding[volume.0 as usize] = None;
    }

    fn take_queued(&mut self, _now: Instant) -> Vec<Io> {
        let taken: Vec<Io> = std::iter::from_fn(|| self.waiting.pop_front(&mut self.queue)).collect();
        for io in &taken {
            *self.outstanding(io.volume) -= 1;
        }
        self.queued = 0;
        taken
    }

    fn adopt_in_flight(&mut self, _now: Instant, volume: VolumeId) {
        *self.outstanding(volume) += 1;
        self.in_flight += 1;
    }

    fn snapshot(&self) -> SchedSnapshot {
        SchedSnapshot { queued: self.queued, in_flight: self.in_flight, background: self.in_flight }
    }
}
