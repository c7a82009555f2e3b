//! The rules of `Edf` without anything that makes them fast: one list of requests, searched from the start
//! each time. Background volumes take turns by requests: turns by time have a test of their own, which
//! measures what each volume gets (`tests/turns.rs` of the scheduler).
//!
//! It shares the rate gate with the real scheduler. The gate's arithmetic has tests of its own; the oracle
//! checks how the scheduler uses the gate.

use std::collections::BTreeMap;

use weir_model::{Completion, Instant, Io, IoId, IoKind, QueueDepth, Span, TimeShare, VolumeId};
use weir_sched::{BackgroundKnobs, Dispatch, RateGate, SchedSnapshot, Scheduler, VolumeKnobs};

/// Earliest deadline first by exhaustive search.
#[derive(Debug)]
pub struct OracleEdf {
    depth: QueueDepth,
    promised: QueueDepth,
    knobs: BackgroundKnobs,
    /// When every background request has had the time that it counts as.
    paid: Instant,
    volumes: BTreeMap<VolumeId, Volume>,
    /// In the order in which they were submitted.
    queued: Vec<Io>,
    /// The volume of every background request that was issued, in the order of issue.
    background: Vec<VolumeId>,
    /// Every request that passed the depth gate by the lane: when it was dispatched, and when it was
    /// finished, if it was.
    by_lane: Vec<(IoId, Instant, Option<Instant>)>,
}

#[derive(Debug)]
struct Volume {
    knobs: VolumeKnobs,
    rate: RateGate,
    in_flight: u32,
    /// Which of its requests its promise covers, and those at the device that it did not cover.
    covered: RateGate,
    beyond: Vec<IoId>,
    /// Whether the last request was a flush that overtook data that could have gone.
    flush_overtook: bool,
}

/// What a volume could do now.
struct Prospect {
    volume: VolumeId,
    /// The request that it would send, and when the oldest request that it could send is due (`None`:
    /// background).
    first: Option<(Option<Instant>, Io)>,
    /// When its rate gate opens, if that holds a request back.
    opens: Option<Instant>,
}

impl OracleEdf {
    /// A scheduler without volumes.
    pub const fn new(depth: QueueDepth, share: TimeShare) -> Self {
        Self {
            depth,
            promised: QueueDepth::MAX,
            knobs: BackgroundKnobs::open(share),
            paid: Instant::ORIGIN,
            volumes: BTreeMap::new(),
            queued: Vec::new(),
            background: Vec::new(),
            by_lane: Vec::new(),
        }
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
        let is_open = |io: &Io| volume.rate.opens_at(io.kind) <= now;
        let firsts = [first(true), first(false)];
        let opens =
            firsts.iter().flatten().filter(|io| !is_open(io)).map(|io| volume.rate.opens_at(io.kind)).min();
        let [flush, data] = firsts.map(|first| first.filter(is_open));
        let oldest = flush.into_iter().chain(data).map(|io| io.arrived).min();
        let due = oldest.zip(volume.knobs.due_after).map(|(arrived, due_after)| arrived + due_after);
        let flush_first = !volume.flush_overtook || data.is_none();
        let sent = if flush_first { flush.or(data) } else { data };
        let covered = sent.and_then(|io| volume.covered_later(now, io.kind));
        let due = due.filter(|_| covered.is_none());
        let opens = opens.into_iter().chain(covered).min();
        Prospect { volume: id, first: sent.map(|io| (due, io)), opens }
    }

    fn background_in_flight(&self) -> u32 {
        self.volumes.values().map(Volume::background).sum()
    }

    /// When the lane opens, if it is not taken and no background request is at the device.
    fn lane_opens(&self) -> Option<Instant> {
        if self.knobs.share == TimeShare::ZERO || self.background_in_flight() > 0 {
            return None;
        }
        let Some((_, dispatched, finished)) = self.by_lane.last() else { return Some(Instant::ORIGIN) };
        let used = (*finished)?.since(*dispatched).max(self.knobs.least);
        self.knobs.share.pays_for(used).map(|closed| *dispatched + closed)
    }

    /// When the pace lets the next background request go: all but the last of those that may go at once may
    /// be unpaid by then.
    fn keeps_pace_at(&self) -> Instant {
        let BackgroundKnobs { most, least, .. } = self.knobs;
        self.paid - Span::from_nanos(least.as_nanos() - least.as_nanos() / u64::from(most.max(1)))
    }

    fn issue(&mut self, now: Instant, io: Io) -> Dispatch {
        let is_beyond = self.volumes[&io.volume].covered_later(now, io.kind).is_some();
        if is_beyond || self.volumes[&io.volume].is_background() {
            self.background.push(io.volume);
            self.paid = self.paid.max(now) + self.knobs.pace();
        }
        self.queued.retain(|other| other.id != io.id);
        let is_data = |other: &&Io| other.volume == io.volume && other.kind != IoKind::Flush;
        let data = self.queued.iter().find(is_data).map(|data| data.kind);
        let volume = self.volumes.get_mut(&io.volume).expect("it was just seen");
        let data_may_pass = data.is_some_and(|kind| volume.rate.opens_at(kind) <= now);
        volume.flush_overtook = io.kind == IoKind::Flush && data_may_pass;
        volume.in_flight += 1;
        volume.rate.charge(now, io.kind, io.length);
        if is_beyond {
            volume.beyond.push(io.id);
        } else {
            volume.covered.charge(now, io.kind, io.length);
        }
        Dispatch::Issue(io)
    }
}

impl Volume {
    const fn is_background(&self) -> bool {
        self.knobs.due_after.is_none()
    }

    /// How many of its requests at the device are background requests.
    fn background(&self) -> u32 {
        if self.is_background() {
            self.in_flight
        } else {
            self.beyond.len().try_into().expect("few requests")
        }
    }

    /// From when on its promise covers a request of this kind, if it does not now.
    fn covered_later(&self, now: Instant, kind: IoKind) -> Option<Instant> {
        let is_bounded = !self.is_background() && self.knobs.covered.is_bounded();
        Some(self.covered.opens_at(kind)).filter(|from| is_bounded && *from > now)
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
        let firsts = || prospects.iter().filter_map(|p| p.first.map(|(due, io)| (due, p.volume, io)));
        let promised = firsts().filter_map(|(due, id, io)| Some((due?, id, io))).min_by_key(|x| (x.0, x.1));
        let last_turn =
            |id: VolumeId| self.background.iter().rposition(|turn| *turn == id).map_or(0, |i| i + 1);
        let background =
            firsts().filter(|(due, ..)| due.is_none()).min_by_key(|(_, id, _)| (last_turn(*id), *id));
        let opens = prospects.iter().filter_map(|p| p.opens).min();
        let lane = background.and_then(|_| self.lane_opens());
        let has_room = self.in_flight() < self.depth.get();
        let may_go = background.is_some() && has_room && self.background_in_flight() < self.knobs.most;
        let paced = may_go.then(|| self.keeps_pace_at());
        let is_open = self.in_flight() - self.background_in_flight() < self.promised.get();
        match (promised.filter(|_| is_open), background) {
            (Some((due, _, io)), _) if has_room || due <= now => self.issue(now, io),
            (None, Some((.., io))) if paced.is_some_and(|paced| paced <= now) => self.issue(now, io),
            (_, Some((.., io))) if lane.is_some_and(|opens| opens <= now) => {
                self.by_lane.push((io.id, now, None));
                self.issue(now, io)
            }
            _ => {
                let due = promised.filter(|_| is_open).map(|(due, ..)| due);
                let recheck = [due, opens, lane, paced].into_iter().flatten().min();
                let held = self.queued.iter().any(|io| self.is_held(io.volume));
                if promised.is_some() || background.is_some() || held {
                    Dispatch::AtDepth { recheck }
                } else {
                    Dispatch::WaitUntil(recheck.expect("what is neither held nor ready waits for its rate"))
                }
            }
        }
    }

    fn on_complete(&mut self, now: Instant, done: &Completion) {
        if let Some((_, _, finished)) = self.by_lane.iter_mut().rfind(|(id, ..)| *id == done.id) {
            finished.get_or_insert(now);
        }
        let volume = self.volumes.get_mut(&done.volume).expect("the volume was added");
        volume.in_flight -= 1;
        volume.beyond.retain(|id| *id != done.id);
    }

    fn abort(&mut self, _now: Instant, id: IoId) -> Option<Io> {
        let place = self.queued.iter().position(|io| io.id == id)?;
        Some(self.queued.remove(place))
    }

    fn set_depth(&mut self, _now: Instant, depth: QueueDepth) {
        self.depth = depth;
    }

    fn set_background(&mut self, now: Instant, knobs: BackgroundKnobs) {
        self.paid = self.paid.min(now + knobs.least);
        self.knobs = knobs;
    }

    fn set_promised(&mut self, _now: Instant, most: QueueDepth) {
        self.promised = most;
    }

    fn set_quantum(&mut self, _now: Instant, _quantum: Option<Span>) {}

    fn set_volume(&mut self, now: Instant, id: VolumeId, knobs: &VolumeKnobs) {
        let volume = self.volumes.entry(id).or_insert_with(|| Volume {
            knobs: *knobs,
            rate: RateGate::default(),
            in_flight: 0,
            covered: RateGate::covering(),
            beyond: Vec::new(),
            flush_overtook: false,
        });
        if volume.knobs.due_after.is_some() != knobs.due_after.is_some() {
            volume.beyond.clear();
        }
        volume.knobs = *knobs;
        volume.covered.set_limits(now, knobs.covered.iops, knobs.covered.bandwidth);
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
        SchedSnapshot { queued, in_flight: self.in_flight(), background: self.background_in_flight() }
    }
}
