//! First come, first served, at once: the scheduler of a pool without control.
//!
//! It stands in the same place as [`crate::Edf`], so a comparison of the two compares only their decisions.
//! It ignores every knob: the depth, the deadlines and the limits of the volumes.

use weir_model::{Completion, Instant, Io, IoId, QueueDepth, Span, VolumeId};

use crate::waiting::{AtDevice, GateClocks, PoolGates, State, VolumeClock};
use crate::{
    BackgroundKnobs, Chain, Dispatch, SchedSnapshot, Scheduler, SlotChains, VolumeKnobs, VolumeWaits,
};

/// Issues every request in the order in which it came.
#[derive(Debug)]
pub struct PassThrough {
    queued: u32,
    in_flight: u32,
    waiting: SlotChains<Io>,
    queue: Chain,
    /// By volume number.
    volumes: Vec<Option<Volume>>,
    clocks: GateClocks,
}

/// A volume.
#[derive(Debug)]
struct Volume {
    /// How many of its requests are at the device.
    in_flight: u32,
    /// How many of them wait, and what for: only for the driver.
    clock: VolumeClock,
}

/// No gate is ever shut.
const fn open(in_flight: u32) -> PoolGates {
    PoolGates {
        in_flight,
        promised: 0,
        depth_is_shut: false,
        promised_is_shut: false,
        turn_is_taken: false,
        bound_is_set: false,
    }
}

impl PassThrough {
    /// A scheduler without volumes.
    pub const fn new() -> Self {
        Self {
            queued: 0,
            in_flight: 0,
            waiting: SlotChains::new(),
            queue: Chain::EMPTY,
            volumes: Vec::new(),
            clocks: GateClocks::new(),
        }
    }

    /// A volume, with all that was waited up to now added up.
    fn counted(&mut self, now: Instant, id: VolumeId) -> &mut Volume {
        if !self.clocks.is_at(now) {
            self.clocks.advance(now, open(self.in_flight));
        }
        let volume = self.volumes.get_mut(id.0 as usize).and_then(Option::as_mut);
        let volume = volume.expect("the volume was added");
        let requests = AtDevice { all: volume.in_flight, promised: 0 };
        volume.clock.settle(id, &mut self.clocks, true, requests);
        volume
    }
}

impl Volume {
    /// Requests of it wait from now on, or none.
    const fn file(&mut self) {
        self.clock.enter(if self.clock.queued > 0 { State::Ready } else { State::Empty });
    }
}

impl Default for PassThrough {
    fn default() -> Self {
        Self::new()
    }
}

impl Scheduler for PassThrough {
    fn submit(&mut self, now: Instant, io: Io) {
        let volume = self.counted(now, io.volume);
        volume.clock.queued += 1;
        volume.file();
        self.waiting.push_back(&mut self.queue, io.id.slot, io);
        self.queued += 1;
    }

    fn poll_dispatch(&mut self, now: Instant) -> Dispatch {
        let Some(io) = self.waiting.pop_front(&mut self.queue) else { return Dispatch::Idle };
        let volume = self.counted(now, io.volume);
        volume.clock.on_issue();
        volume.in_flight += 1;
        volume.file();
        self.queued -= 1;
        self.in_flight += 1;
        Dispatch::Issue(io)
    }

    fn on_complete(&mut self, now: Instant, done: &Completion) {
        let volume = self.counted(now, done.volume);
        assert!(volume.in_flight > 0, "{:?} has nothing at the device", done.volume);
        volume.in_flight -= 1;
        self.in_flight -= 1;
    }

    fn abort(&mut self, now: Instant, id: IoId) -> Option<Io> {
        self.waiting.get(id.slot).filter(|io| io.id == id)?;
        let io = self.waiting.remove(&mut self.queue, id.slot);
        let volume = self.counted(now, io.volume);
        volume.clock.queued -= 1;
        volume.file();
        self.queued -= 1;
        Some(io)
    }

    fn set_depth(&mut self, _now: Instant, _depth: QueueDepth) {}

    fn set_background(&mut self, _now: Instant, _knobs: BackgroundKnobs) {}

    fn set_promised(&mut self, _now: Instant, _most: QueueDepth) {}

    fn set_quantum(&mut self, _now: Instant, _quantum: Option<Span>) {}

    fn set_volume(&mut self, _now: Instant, volume: VolumeId, _knobs: &VolumeKnobs) {
        let index = volume.0 as usize;
        if index >= self.volumes.len() {
            self.volumes.resize_with(index + 1, || None);
        }
        self.volumes[index].get_or_insert_with(|| Volume { in_flight: 0, clock: VolumeClock::new() });
    }

    fn remove_volume(&mut self, now: Instant, volume: VolumeId) {
        let gone = self.counted(now, volume);
        assert!(gone.clock.queued == 0 && gone.in_flight == 0, "{volume:?} still has requests");
        self.clocks.forget(volume);
        self.volumes[volume.0 as usize] = None;
    }

    fn take_queued(&mut self, now: Instant) -> Vec<Io> {
        let taken: Vec<Io> = std::iter::from_fn(|| self.waiting.pop_front(&mut self.queue)).collect();
        for io in &taken {
            let volume = self.counted(now, io.volume);
            volume.clock.queued -= 1;
            volume.file();
        }
        self.queued = 0;
        taken
    }

    fn adopt_in_flight(&mut self, now: Instant, volume: VolumeId) {
        self.counted(now, volume).in_flight += 1;
        self.in_flight += 1;
    }

    fn take_waits(&mut self, now: Instant, into: &mut Vec<VolumeWaits>) {
        let mut listed = self.clocks.take_listed();
        listed.retain(|id| {
            let volume = self.counted(now, *id);
            let goes_on = volume.clock.queued > 0 || volume.in_flight > 0;
            into.push(volume.clock.hand_over(*id, goes_on));
            goes_on
        });
        self.clocks.keep_listed(listed);
    }

    fn snapshot(&self) -> SchedSnapshot {
        SchedSnapshot { queued: self.queued, in_flight: self.in_flight, background: self.in_flight }
    }
}
