//! The rules of `Edf`, and nothing that makes them fast: one list of requests, searched from the start each time.
//!
//! It shares the rate gate with the real one. The gate's arithmetic is tested by itself; what is compared here is
//! what is done with it.

use std::collections::BTreeMap;

use weir_model::{Completion, Instant, Io, IoId, IoKind, QueueDepth, VolumeId};
use weir_sched::{Dispatch, RateGate, SchedSnapshot, Scheduler, VolumeKnobs};

/// Earliest deadline first by exhaustive search.
#[derive(Debug)]
pub struct OracleEdf {
    depth: QueueDepth,
    volumes: BTreeMap<VolumeId, Volume>,
    /// In the order in which they were submitted.
    queued: Vec<Io>,
}

#[derive(Debug)]
struct Volume {
    knobs: VolumeKnobs,
    rate: RateGate,
    in_flight: u32,
}

/// What a volume could do now.
struct Prospect {
    volume: VolumeId,
    /// The request that it would send, and when that is due.
    first: Option<(Instant, Io)>,
    /// When its rate gate, which is shut, opens.
    opens: Option<Instant>,
}

impl OracleEdf {
    /// A scheduler without volumes.
    pub const fn new(depth: QueueDepth) -> Self {
        Self { depth, volumes: BTreeMap::new(), queued: Vec::new() }
    }

    fn in_flight(&self) -> u32 {
        self.volumes.values().map(|volume| volume.in_flight).sum()
    }

    fn is_held(&self, id: VolumeId) -> bool {
        let volume = &self.volumes[&id];
        volume.knobs.concurrency.is_some_and(|bound| volume.in_flight >= bound.get())
    }

    fn prospect(&self, now: Instant, id: VolumeId) -> Prospect {
        let volume = &self.volumes[&id];
        let first = |flush: bool| {
            self.queued.iter().find(|io| io.volume == id && (io.kind == IoKind::Flush) == flush).copied()
        };
        let (flush, data) = (first(true), first(false));
        let opens = data.map(|io| volume.rate.opens_at(io.kind)).filter(|opens| *opens > now);
        let open_data = data.filter(|_| opens.is_none());
        let oldest = flush.into_iter().chain(open_data).map(|io| io.arrived).min();
        let due = oldest.map(|arrived| arrived + volume.knobs.due_after);
        Prospect { volume: id, first: due.zip(flush.or(open_data)), opens }
    }
}

impl Scheduler for OracleEdf {
    fn submit(&mut self, _now: Instant, io: Io) {
        self.queued.push(io);
    }

    fn poll_dispatch(&mut self, now: Instant) -> Dispatch {
        if self.queued.is_empty() {
            return Dispatch::Idle;
        }
        let ids: Vec<VolumeId> = self.volumes.keys().copied().collect();
        let prospects: Vec<Prospect> =
            ids.iter().filter(|id| !self.is_held(**id)).map(|id| self.prospect(now, *id)).collect();
        let urgent = prospects
            .iter()
            .filter_map(|p| p.first.map(|(due, io)| (due, p.volume, io)))
            .min_by_key(|x| (x.0, x.1));
        let opens = prospects.iter().filter_map(|p| p.opens).min();
        let held = self.queued.iter().any(|io| self.is_held(io.volume));
        match urgent {
            Some((due, id, io)) if due <= now || self.in_flight() < self.depth.get() => {
                self.queued.retain(|other| other.id != io.id);
                let volume = self.volumes.get_mut(&id).expect("it was just seen");
                volume.in_flight += 1;
                volume.rate.charge(now, io.kind, io.length);
                Dispatch::Issue(io)
            }
            Some((due, ..)) => Dispatch::AtDepth { recheck: Some(opens.map_or(due, |opens| opens.min(due))) },
            None if held => Dispatch::AtDepth { recheck: opens },
            None => Dispatch::WaitUntil(opens.expect("what is neither held nor ready waits for its rate")),
        }
    }

    fn on_complete(&mut self, _now: Instant, done: &Completion) {
        self.volumes.get_mut(&done.volume).expect("the volume was added").in_flight -= 1;
    }

    fn abort(&mut self, _now: Instant, id: IoId) -> Option<Io> {
        let place = self.queued.iter().position(|io| io.id == id)?;
        Some(self.queued.remove(place))
    }

    fn set_depth(&mut self, _now: Instant, depth: QueueDepth) {
        self.depth = depth;
    }

    fn set_volume(&mut self, now: Instant, id: VolumeId, knobs: &VolumeKnobs) {
        let volume = self.volumes.entry(id).or_insert_with(|| Volume {
            knobs: *knobs,
            rate: RateGate::default(),
            in_flight: 0,
        });
        volume.knobs = *knobs;
        volume.rate.set_limits(now, knobs.max_iops, knobs.max_bandwidth);
    }

    fn remove_volume(&mut self, _now: Instant, id: VolumeId) {
        self.volumes.remove(&id);
    }

    fn take_queued(&mut self, _now: Instant) -> Vec<Io> {
        std::mem::take(&mut self.queued)
    }

    fn adopt_in_flight(&mut self, _now: Instant, id: VolumeId) {
        self.volumes.get_mut(&id).expect("the volume was added").in_flight += 1;
    }

    fn snapshot(&self) -> SchedSnapshot {
        let queued = u32::try_from(self.queued.len()).expect("a test has few requests");
        SchedSnapshot { queued, in_flight: self.in_flight() }
    }
}
