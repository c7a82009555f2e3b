//! Random operations on a scheduler, and a harness that does them and keeps an account of its own.

use std::num::NonZeroU32;

use proptest::prelude::*;
use weir_model::{
    Bandwidth, Completion, Instant, Io, IoId, IoKind, Iops, Priority, QueueDepth, Span, TimeShare, VolumeId,
};
use weir_sched::{BackgroundKnobs, Covered, Dispatch, RateGate, SchedSnapshot, Scheduler, VolumeKnobs};

/// How many volumes a [`Harness`] has.
pub const VOLUMES: u32 = 4;

/// An operation on a scheduler.
#[derive(Clone, Copy, Debug)]
pub enum Operation {
    /// A request comes in.
    Submit {
        /// The volume that it is for.
        volume: VolumeId,
        /// What it does.
        kind: IoKind,
        /// Its length in bytes.
        length: u32,
    },
    /// So many reads come in, each of which begins where the last one of the volume ended.
    Scan(VolumeId, u32),
    /// The scheduler is polled once.
    Poll,
    /// The scheduler is polled until it issues nothing.
    Drain,
    /// The device finishes one of its requests: the one with this index, modulo their number.
    Complete(usize),
    /// A client aborts one of all requests ever made: the one with this index, modulo their number.
    Abort(usize),
    /// Time passes.
    Advance(Span),
    /// The depth is set.
    SetDepth(QueueDepth),
    /// What background volumes may have of the device is set.
    SetBackground(BackgroundKnobs),
    /// How many requests of promised volumes may be at the device is set.
    SetPromised(QueueDepth),
    /// The quantum of background volumes is set.
    SetQuantum(Option<Span>),
    /// A volume is set.
    SetVolume(VolumeId, VolumeKnobs),
    /// All queued requests are taken out and submitted again.
    TakeQueued,
}

/// The result of an operation.
#[derive(Clone, PartialEq, Debug)]
pub enum Outcome {
    /// The answer to a poll.
    Polled(Dispatch),
    /// The answer to an abort.
    Aborted(Option<Io>),
    /// The requests that were taken out.
    Taken(Vec<Io>),
}

/// A list of operations, mostly requests, polls and completions, as in real use. `quanta`: background volumes
/// may have to take turns by time.
pub fn operations(quanta: bool) -> impl Strategy<Value = Vec<Operation>> {
    let volume = || (0..VOLUMES).prop_map(VolumeId);
    let kind = || prop::sample::select(IoKind::ALL.to_vec());
    let length = || prop::sample::select(vec![512u32, 4096, 65_536, 1 << 20]);
    let span = prop_oneof![0u64..1_000, 0u64..2_000_000, 0u64..300_000_000].prop_map(Span::from_nanos);
    let operation = prop_oneof![
        8 => (volume(), kind(), length()).prop_map(|(volume, kind, length)| Operation::Submit {
            volume, kind, length
        }),
        4 => Just(Operation::Poll),
        3 => Just(Operation::Drain),
        6 => any::<usize>().prop_map(Operation::Complete),
        1 => any::<usize>().prop_map(Operation::Abort),
        5 => span.prop_map(Operation::Advance),
        1 => (1u32..8).prop_map(|depth| Operation::SetDepth(QueueDepth::new(depth))),
        1 => background_knobs().prop_map(Operation::SetBackground),
        1 => prop::sample::select(vec![1, 2, 5, u32::MAX])
            .prop_map(|most| Operation::SetPromised(QueueDepth::new(most))),
        1 => (volume(), 1u32..50).prop_map(|(volume, requests)| Operation::Scan(volume, requests)),
        1 => if quanta { quantum().prop_map(Operation::SetQuantum).boxed() } else { Just(Operation::Poll).boxed() },
        1 => (volume(), knobs()).prop_map(|(volume, knobs)| Operation::SetVolume(volume, knobs)),
        1 => Just(Operation::TakeQueued),
    ];
    prop::collection::vec(operation, 1..200)
}

/// Random knobs: any of the gates, with or without a promise.
pub fn knobs() -> impl Strategy<Value = VolumeKnobs> {
    let target = prop_oneof![0u64..100, 1_000u64..50_000, Just(10_000_000)].prop_map(Span::from_micros);
    let target = prop::option::weighted(0.6, target);
    let concurrency = prop::option::of((1u32..4).prop_map(|bound| NonZeroU32::new(bound).expect("from one")));
    let iops = prop::option::of(prop::sample::select(vec![1.0, 50.0, 3_333.0, 1e6]));
    let bandwidth = prop::option::of(prop::sample::select(vec![4_096u64, 1 << 20, 1 << 30]));
    let priority = prop::sample::select(vec![1.0, 4.0, 0.001, 1e9]);
    (target, covered(), concurrency, iops, bandwidth, priority).prop_map(
        |(due_after, covered, concurrency, iops, bandwidth, priority)| VolumeKnobs {
            due_after,
            covered,
            concurrency,
            max_iops: iops.and_then(Iops::new),
            max_bandwidth: bandwidth.and_then(Bandwidth::new),
            priority: Priority::new(priority).expect("above zero"),
        },
    )
}

/// Random rates that a promise covers: mostly all requests.
fn covered() -> impl Strategy<Value = Covered> {
    let iops = prop::option::weighted(0.3, prop::sample::select(vec![1.0, 50.0, 3_333.0, 1e6]));
    let bandwidth = prop::option::weighted(0.2, prop::sample::select(vec![4_096u64, 1 << 20]));
    (iops, bandwidth).prop_map(|(iops, bandwidth)| Covered {
        iops: iops.and_then(Iops::new),
        bandwidth: bandwidth.and_then(Bandwidth::new),
    })
}

/// A random quantum: none, one of no length, of a nanosecond, of some requests, and a long one.
fn quantum() -> impl Strategy<Value = Option<Span>> {
    prop::option::weighted(0.9, prop::sample::select(vec![0, 1, 2_000_000, 150_000_000]))
        .prop_map(|quantum| quantum.map(Span::from_nanos))
}

/// Random knobs of background volumes: no bound, a bound with and without a pace, only a share, or nothing.
pub fn background_knobs() -> impl Strategy<Value = BackgroundKnobs> {
    let most = prop::sample::select(vec![0, 1, 2, 3, u32::MAX]);
    let share = prop::sample::select(vec![0, 10_000, 100_000, 500_000]);
    let least = prop::sample::select(vec![0, 7, 1_000_000, 50_000_000]).prop_map(Span::from_nanos);
    (most, share, least).prop_map(|(most, millionths, least)| {
        let share = TimeShare::from_millionths(millionths).expect("at most a half");
        BackgroundKnobs { most, share, least }
    })
}

/// A scheduler, and an account of its own of what the scheduler holds. Every step panics if the scheduler
/// breaks a rule that holds for all schedulers.
#[derive(Debug)]
pub struct Harness<S> {
    scheduler: S,
    now: Instant,
    depth: QueueDepth,
    knobs: Vec<VolumeKnobs>,
    /// In order of submission.
    queued: Vec<Io>,
    at_device: Vec<Io>,
    /// By slot: whether it is in use, and its generation.
    slots: Vec<(bool, u32)>,
    /// By volume: which of its requests its promise covers.
    covered: Vec<RateGate>,
    /// The requests at the device that went beyond that, and whose they are.
    beyond: Vec<(IoId, VolumeId)>,
    /// By volume: where its next request begins. One of 4 KiB goes on where it ended, all others go back.
    ends: [u64; VOLUMES as usize],
    /// Every request that was ever submitted.
    ids: Vec<IoId>,
    outcomes: Vec<Outcome>,
    /// Whether the scheduler must obey depth, concurrency and the bound of background requests.
    has_gates: bool,
    /// What background requests may have of the device.
    background: BackgroundKnobs,
    promised: QueueDepth,
    /// The background request at the device that passed the depth or their bound, and when.
    passed: Option<(IoId, Instant)>,
    /// When the one before was dispatched, and for how long it was at the device.
    passed_before: Option<(Instant, Span)>,
}

impl<S: Scheduler> Harness<S> {
    /// A scheduler with [`VOLUMES`] volumes. `gates`: it must obey depth and concurrency, at first with this
    /// share for background requests, and no bound for them.
    pub fn new(make: impl FnOnce(QueueDepth) -> S, gates: Option<TimeShare>) -> Self {
        let depth = QueueDepth::new(4);
        let mut scheduler = make(depth);
        let knobs = vec![VolumeKnobs::with_target(Span::from_millis(10)); VOLUMES as usize];
        for (volume, knobs) in (0..).zip(&knobs) {
            scheduler.set_volume(Instant::ORIGIN, VolumeId(volume), knobs);
        }
        Self {
            scheduler,
            now: Instant::ORIGIN,
            depth,
            knobs,
            queued: Vec::new(),
            at_device: Vec::new(),
            slots: Vec::new(),
            covered: (0..VOLUMES).map(|_| RateGate::covering()).collect(),
            beyond: Vec::new(),
            ends: [0; VOLUMES as usize],
            ids: Vec::new(),
            outcomes: Vec::new(),
            has_gates: gates.is_some(),
            background: BackgroundKnobs::open(gates.unwrap_or(TimeShare::PERCENT)),
            promised: QueueDepth::MAX,
            passed: None,
            passed_before: None,
        }
    }

    /// Does all of `operations`. Then lets time pass and the device finish requests until none is left.
    pub fn run(mut self, operations: &[Operation]) -> Vec<Outcome> {
        for operation in operations {
            self.apply(*operation);
            let SchedSnapshot { queued, in_flight, .. } = self.scheduler.snapshot();
            assert_eq!((queued as usize, in_flight as usize), (self.queued.len(), self.at_device.len()));
        }
        self.finish();
        self.outcomes
    }

    fn apply(&mut self, operation: Operation) {
        match operation {
            Operation::Submit { volume, kind, length } => self.submit(volume, kind, length),
            Operation::Scan(volume, requests) => {
                (0..requests).for_each(|_| self.submit(volume, IoKind::Read, 4096));
            }
            Operation::Poll => drop(self.poll()),
            Operation::Drain => drop(self.drain()),
            Operation::Complete(nth) => self.complete(nth),
            Operation::Abort(nth) => self.abort(nth),
            Operation::Advance(span) => self.advance(self.now + span),
            Operation::SetDepth(depth) => {
                self.depth = depth;
                self.scheduler.set_depth(self.now, depth);
            }
            Operation::SetBackground(knobs) => self.set_background(knobs),
            Operation::SetPromised(most) => {
                self.promised = most;
                self.scheduler.set_promised(self.now, most);
            }
            Operation::SetQuantum(quantum) => self.scheduler.set_quantum(self.now, quantum),
            Operation::SetVolume(volume, knobs) => {
                let at = volume.0 as usize;
                if knobs.due_after.is_some() != self.knobs[at].due_after.is_some() {
                    self.beyond.retain(|(_, of)| *of != volume);
                }
                self.knobs[at] = knobs;
                self.covered[at].set_limits(self.now, knobs.covered.iops, knobs.covered.bandwidth);
                self.scheduler.set_volume(self.now, volume, &knobs);
            }
            Operation::TakeQueued => self.take_queued(),
        }
    }

    fn submit(&mut self, volume: VolumeId, kind: IoKind, length: u32) {
        let slot = self.slots.iter().position(|(used, _)| !used).unwrap_or_else(|| {
            self.slots.push((false, 0));
            self.slots.len() - 1
        });
        self.slots[slot].0 = true;
        let id = IoId { slot: u32::try_from(slot).expect("few slots"), generation: self.slots[slot].1 };
        let offset = self.ends[volume.0 as usize];
        self.ends[volume.0 as usize] = if length == 4096 { offset + 4096 } else { 0 };
        let io = Io { id, volume, kind, offset, length, arrived: self.now };
        self.ids.push(id);
        self.queued.push(io);
        self.scheduler.submit(self.now, io);
    }

    fn poll(&mut self) -> Dispatch {
        let dispatch = self.scheduler.poll_dispatch(self.now);
        match dispatch {
            Dispatch::Issue(io) => self.check_issued(io),
            Dispatch::Idle => assert!(self.queued.is_empty(), "idle while {:?} wait", self.queued),
            Dispatch::WaitUntil(at) => {
                assert!(at > self.now, "waits for {at:?}, which is past at {:?}", self.now);
                assert!(!self.queued.is_empty(), "waits for nothing");
            }
            Dispatch::AtDepth { recheck } => {
                assert!(recheck.is_none_or(|at| at > self.now), "rechecks at {recheck:?}, at {:?}", self.now);
                let may_come = recheck.is_some() || !self.at_device.is_empty() || self.is_background_shut();
                assert!(may_come, "waits for a completion, and nothing is at the device");
            }
        }
        self.outcomes.push(Outcome::Polled(dispatch));
        dispatch
    }

    fn check_issued(&mut self, io: Io) {
        let place = self.queued.iter().position(|waiting| *waiting == io).expect("only what waits is issued");
        let overtaken = self.queued[..place].iter().find(|earlier| {
            let same_lane = (earlier.kind == IoKind::Flush) == (io.kind == IoKind::Flush);
            earlier.volume == io.volume && same_lane
        });
        assert_eq!(overtaken, None, "{io:?} overtook its own volume's");
        if self.has_gates {
            self.check_bounds(io);
        }
        self.at_device.push(self.queued.remove(place));
    }

    /// Checks concurrency, depth, and what background requests may have. Called before `io` is counted at the
    /// device.
    fn check_bounds(&mut self, io: Io) {
        let knobs = &self.knobs[io.volume.0 as usize];
        assert!(!self.is_at_bound(io.volume), "too many of {io:?}");
        // A flush may leave on the deadline of the older data that it overtakes.
        let oldest =
            self.queued.iter().find(|waiting| waiting.volume == io.volume).map(|first| first.arrived);
        let has_room = self.at_device.len() < self.depth.get() as usize;
        let is_beyond =
            knobs.due_after.is_some() && self.covered[io.volume.0 as usize].opens_at(io.kind) > self.now;
        if is_beyond {
            self.beyond.push((io.id, io.volume));
        } else {
            self.covered[io.volume.0 as usize].charge(self.now, io.kind, io.length);
        }
        match (oldest, knobs.due_after.filter(|_| !is_beyond)) {
            (Some(arrived), Some(due_after)) => {
                assert!(has_room || arrived + due_after <= self.now, "{io:?} is beyond the depth");
                assert!(!self.promised_are_full(), "{io:?} is beyond the bound of promised volumes");
            }
            _ if has_room && self.background_at_device() < self.background.most as usize => {
                self.check_nothing_promised_could_go(io);
            }
            _ => self.check_passing(io),
        }
    }

    fn is_at_bound(&self, volume: VolumeId) -> bool {
        let of_volume = self.at_device.iter().filter(|other| other.volume == volume).count();
        self.knobs[volume.0 as usize].concurrency.is_some_and(|bound| of_volume >= bound.get() as usize)
    }

    fn is_background(&self, volume: VolumeId) -> bool {
        self.knobs[volume.0 as usize].due_after.is_none()
    }

    /// Checks that no request of a promised volume without rate limits waits, unless the volume is at its
    /// concurrency bound, or all of them are at theirs.
    fn check_nothing_promised_could_go(&self, background: Io) {
        let could_go = |io: &&Io| {
            let knobs = &self.knobs[io.volume.0 as usize];
            let is_unlimited = knobs.max_iops.is_none() && knobs.max_bandwidth.is_none();
            let is_unlimited = is_unlimited && !knobs.covered.is_bounded();
            !self.is_background(io.volume) && is_unlimited && !self.is_at_bound(io.volume)
        };
        let first = self.queued.iter().find(could_go).filter(|_| !self.promised_are_full());
        assert_eq!(first, None, "{background:?} went before a promise");
    }

    fn promised_are_full(&self) -> bool {
        self.at_device.len() - self.background_at_device() >= self.promised.get() as usize
    }

    fn background_at_device(&self) -> usize {
        let is_beyond = |io: &Io| self.beyond.iter().any(|(id, _)| *id == io.id);
        self.at_device.iter().filter(|other| self.is_background(other.volume) || is_beyond(other)).count()
    }

    /// Whether no background request may ever go with the knobs as they are.
    fn is_background_shut(&self) -> bool {
        self.background.most == 0 && self.background.share == TimeShare::ZERO
    }

    /// A background request passes the depth or the bound: checks that no other is at the device, and that
    /// the one before has used no more than their share.
    fn check_passing(&mut self, io: Io) {
        let BackgroundKnobs { share, least, .. } = self.background;
        assert_eq!(self.background_at_device(), 0, "{io:?} passes while another is at the device");
        assert_eq!(self.passed, None, "{io:?} passes while another one does");
        let is_paid = self.passed_before.map_or(share > TimeShare::ZERO, |(since, used)| {
            share.pays_for(used.max(least)).is_some_and(|paid| since + paid <= self.now)
        });
        assert!(is_paid, "{io:?} is beyond the share of {share}");
        self.passed = Some((io.id, self.now));
    }

    fn set_background(&mut self, knobs: BackgroundKnobs) {
        self.background = knobs;
        self.scheduler.set_background(self.now, knobs);
    }

    /// Polls until there is nothing to issue. Returns the reason.
    fn drain(&mut self) -> Dispatch {
        loop {
            let dispatch = self.poll();
            if !matches!(dispatch, Dispatch::Issue(_)) {
                return dispatch;
            }
        }
    }

    fn complete(&mut self, nth: usize) {
        if self.at_device.is_empty() {
            return;
        }
        let io = self.at_device.remove(nth % self.at_device.len());
        if let Some((_, since)) = self.passed.take_if(|(id, _)| *id == io.id) {
            self.passed_before = Some((since, self.now.since(since)));
        }
        self.beyond.retain(|(id, _)| *id != io.id);
        self.scheduler.on_complete(self.now, &Completion { id: io.id, volume: io.volume, ok: true });
        self.free(io.id);
    }

    fn abort(&mut self, nth: usize) {
        if self.ids.is_empty() {
            return;
        }
        let id = self.ids[nth % self.ids.len()];
        let aborted = self.scheduler.abort(self.now, id);
        let place = self.queued.iter().position(|io| io.id == id);
        assert_eq!(
            aborted,
            place.map(|place| self.queued[place]),
            "an abort takes what waits and nothing else"
        );
        if let Some(place) = place {
            self.queued.remove(place);
            self.free(id);
        }
        self.outcomes.push(Outcome::Aborted(aborted));
    }

    fn take_queued(&mut self) {
        let taken = self.scheduler.take_queued(self.now);
        assert_eq!(taken, self.queued, "everything that waits, in the order in which it came");
        assert_eq!(self.scheduler.snapshot().queued, 0);
        for io in &taken {
            self.scheduler.submit(self.now, *io);
        }
        self.outcomes.push(Outcome::Taken(taken));
    }

    fn free(&mut self, id: IoId) {
        let slot = &mut self.slots[id.slot as usize];
        *slot = (false, slot.1 + 1);
    }

    /// Lets time pass. If the scheduler has named an instant on the way, checks that it was right.
    fn advance(&mut self, to: Instant) {
        if let Some(Outcome::Polled(before)) = self.outcomes.last().cloned() {
            let again = self.scheduler.poll_dispatch(self.now);
            if again == before {
                self.check_wake_up(before, to);
            } else if let Dispatch::Issue(io) = again {
                self.check_issued(io); // something has changed since it was asked
                self.outcomes.push(Outcome::Polled(again));
            }
        }
        self.now = self.now.max(to);
    }

    /// `before` is the scheduler's answer now. A nanosecond before the instant that it names, the answer must
    /// be the same. At that instant, a rate gate must be open, if the scheduler waited for one.
    fn check_wake_up(&mut self, before: Dispatch, to: Instant) {
        let named = match before {
            Dispatch::WaitUntil(at) | Dispatch::AtDepth { recheck: Some(at) } if at <= to => at,
            _ => return,
        };
        self.now = named - Span::from_nanos(1);
        assert_eq!(self.poll(), before, "something else before the instant that was named");
        self.now = named;
        let after = self.poll();
        if matches!(before, Dispatch::WaitUntil(_)) {
            assert!(
                matches!(after, Dispatch::Issue(_) | Dispatch::AtDepth { .. }),
                "{after:?} after {before:?}"
            );
        }
    }

    /// Checks that all requests leave: waits for the instants that the scheduler names, and completes
    /// requests while it is at depth. Gives background volumes a share if they would get nothing.
    fn finish(&mut self) {
        if self.is_background_shut() {
            self.set_background(BackgroundKnobs { most: 0, share: TimeShare::PERCENT, least: Span::ZERO });
        }
        loop {
            match self.drain() {
                Dispatch::WaitUntil(at) => self.now = at,
                Dispatch::AtDepth { recheck: Some(at) } if self.at_device.is_empty() => self.now = at,
                Dispatch::AtDepth { .. } => self.complete(0),
                Dispatch::Idle | Dispatch::Issue(_) => break,
            }
        }
        assert!(self.queued.is_empty());
        while !self.at_device.is_empty() {
            self.complete(0);
        }
        for volume in 0..VOLUMES {
            self.scheduler.remove_volume(self.now, VolumeId(volume));
        }
        assert_eq!(self.scheduler.snapshot(), SchedSnapshot::default());
    }
}
