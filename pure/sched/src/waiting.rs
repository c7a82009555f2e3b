//! What made requests wait: adds it up as time passes.
//!
//! A volume is always in one of four states ([`State`]): it has no waiting request, its rate or its bound
//! holds its requests back, or it is *ready*. A ready volume waits for a gate of the pool. Which gates are
//! shut is the same for all volumes. So the pool has a clock for each gate, which goes while the gate is
//! shut. A volume looks at the clocks only when its own state or the number of its requests changes.
//! Nothing here loops over volumes on the path of a request.
//!
//! **Exact for each request.** The requests of a volume go in the order of arrival, but for flushes. So all
//! that wait share the volume's state, and one clock of the volume ([`VolumeClock::limited`]) is enough: what
//! it advances between a request's arrival and its dispatch is the time for which the volume's own limits
//! held the request. Example: a request comes at 10 ms. The volume's rate holds the volume until 14 ms, then
//! the device is full until 19 ms. The clock advances by 4 ms, and the other 5 ms were the depth.
//!
//! A flush that passes data held by a bandwidth makes its volume ready for as long as the flush waits.
//!
//! **What a volume has of the device** is counted as in [`device_time`](crate::device_time): a clock goes at
//! `1/n` of the speed of time while `n` requests are there.

use weir_model::{Instant, Span, VolumeId};

use crate::device_time::SharedClock;
use crate::{Knob, VolumeWaits};

/// The clocks of a pool.
#[derive(Debug)]
pub(crate) struct GateClocks {
    at: Instant,
    readings: Readings,
    /// Of all requests at the device.
    shared: SharedClock,
    /// Of the promised ones, going only while their bound is reached.
    by_promised: SharedClock,
    /// The volumes that had a request in this period.
    listed: Vec<VolumeId>,
}

/// What the clocks of a pool say.
#[derive(Clone, Copy, Debug)]
struct Readings {
    /// For how long each gate was shut, in nanoseconds. No two of those that one volume waits for go at a
    /// time.
    depth: u64,
    promised: u64,
    turn: u64,
    background: u64,
    /// The device's time, shared out among the requests there: all of it; that in which the depth was shut or
    /// a volume had the device for itself; and that in which the promised bound was reached, among promised
    /// requests.
    shared: u64,
    shared_while_shut: u64,
    shared_by_promised: u64,
}

impl Readings {
    const ZERO: Self = Self {
        depth: 0,
        promised: 0,
        turn: 0,
        background: 0,
        shared: 0,
        shared_while_shut: 0,
        shared_by_promised: 0,
    };
}

/// What makes the requests of a pool wait now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PoolGates {
    /// How many requests are at the device.
    pub(crate) in_flight: u32,
    /// How many of them are of promised volumes.
    pub(crate) promised: u32,
    pub(crate) depth_is_shut: bool,
    pub(crate) promised_is_shut: bool,
    /// A background volume has the device for itself.
    pub(crate) turn_is_taken: bool,
    /// Background volumes have a bound.
    pub(crate) bound_is_set: bool,
}

impl GateClocks {
    pub(crate) const fn new() -> Self {
        Self {
            at: Instant::ORIGIN,
            readings: Readings::ZERO,
            shared: SharedClock::new(),
            by_promised: SharedClock::new(),
            listed: Vec::new(),
        }
    }

    /// Lets the clocks go on to `now`. Called before anything that they depend on changes.
    #[inline]
    pub(crate) fn advance(&mut self, now: Instant, pool: PoolGates) {
        let passed = now.since(self.at).as_nanos();
        self.at = now;
        let PoolGates { in_flight, promised, depth_is_shut, promised_is_shut, turn_is_taken, bound_is_set } =
            pool;
        let readings = &mut self.readings;
        if depth_is_shut {
            readings.depth += passed;
        } else {
            readings.promised += if promised_is_shut { passed } else { 0 };
            readings.turn += if turn_is_taken { passed } else { 0 };
            readings.background += if bound_is_set && !turn_is_taken { passed } else { 0 };
        }
        self.shared.sharing = in_flight;
        let went = self.shared.read(now).wrapping_sub(readings.shared);
        readings.shared = readings.shared.wrapping_add(went);
        if depth_is_shut || turn_is_taken {
            readings.shared_while_shut = readings.shared_while_shut.wrapping_add(went);
        }
        self.by_promised.sharing = promised;
        if promised_is_shut {
            readings.shared_by_promised = self.by_promised.read(now);
        } else {
            self.by_promised.start(now); // nobody asks, and a division is most of what this costs
        }
    }

    /// Whether the clocks have gone on to `now` already. They never go back, whatever a driver says: a sum
    /// that is a little wrong must not end a process.
    #[inline]
    pub(crate) fn is_at(&self, now: Instant) -> bool {
        self.at >= now // most calls are of a batch
    }

    /// Takes the volumes that had a request in the period.
    pub(crate) fn take_listed(&mut self) -> Vec<VolumeId> {
        std::mem::take(&mut self.listed)
    }

    /// These volumes still have requests.
    pub(crate) fn keep_listed(&mut self, listed: Vec<VolumeId>) {
        self.listed = listed;
    }

    /// A volume is gone.
    pub(crate) fn forget(&mut self, volume: VolumeId) {
        self.listed.retain(|listed| *listed != volume);
    }
}

/// How many requests of a volume are at the device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AtDevice {
    pub(crate) all: u32,
    /// Of these, the promised ones.
    pub(crate) promised: u32,
}

/// What a volume is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    /// Nothing of it waits.
    Empty,
    /// Its rate holds all that waits.
    AtRate,
    /// It has as many requests at the device as it may have.
    AtBound,
    /// Something of it waits for the pool's gates.
    Ready,
}

/// What has been added up for a volume.
#[derive(Debug)]
pub(crate) struct VolumeClock {
    state: State,
    /// How many of its requests wait.
    pub(crate) queued: u32,
    /// For how long, in all, its own limits have held its requests back.
    limited: Span,
    /// Up to when all this is added up, and what the pool's clocks said then.
    at: Instant,
    seen: Readings,
    is_listed: bool,
    period: VolumeWaits,
}

impl VolumeClock {
    pub(crate) const fn new() -> Self {
        Self {
            state: State::Empty,
            queued: 0,
            limited: Span::ZERO,
            at: Instant::ORIGIN,
            seen: Readings::ZERO,
            is_listed: false,
            period: VolumeWaits::none(VolumeId(0)),
        }
    }

    /// For how long, up to now, its own limits have held its requests back, in all.
    pub(crate) fn limited(&self, now: Instant) -> Span {
        match self.state {
            State::AtRate | State::AtBound => self.limited + now.saturating_since(self.at),
            State::Empty | State::Ready => self.limited,
        }
    }

    /// From now on the volume is in this state.
    pub(crate) const fn enter(&mut self, state: State) {
        self.state = state;
    }

    /// One of its requests goes to the device.
    pub(crate) const fn on_issue(&mut self) {
        self.queued -= 1;
        self.period.issued += 1;
    }

    /// Adds up the time since it was called last. Called before the volume's state or the number of its
    /// requests changes, with how many of them are at the device, after the clocks have gone on.
    /// `is_background`: what of it waits, waits as background.
    #[inline]
    pub(crate) fn settle(
        &mut self,
        id: VolumeId,
        clocks: &mut GateClocks,
        is_background: bool,
        requests: AtDevice,
    ) {
        if self.at != clocks.at {
            self.add_up(clocks, is_background, requests);
        }
        if !self.is_listed {
            self.is_listed = true;
            clocks.listed.push(id);
        }
    }

    /// Hands over what was added up since the last call, and begins anew. `goes_on`: whether the volume has
    /// requests.
    pub(crate) fn hand_over(&mut self, id: VolumeId, goes_on: bool) -> VolumeWaits {
        self.is_listed = goes_on;
        VolumeWaits { volume: id, ..std::mem::replace(&mut self.period, VolumeWaits::none(id)) }
    }

    fn add_up(&mut self, clocks: &GateClocks, is_background: bool, requests: AtDevice) {
        let now = clocks.at;
        self.limited = self.limited(now);
        let passed = now.since(self.at);
        let before = std::mem::replace(&mut self.seen, clocks.readings);
        self.at = now;
        if self.queued > 0 {
            self.add_waits(passed, &before, is_background);
        }
        if requests.all > 0 {
            self.add_shares(passed, &before, requests);
        }
    }

    /// What its requests waited for, after the clocks said `before`.
    fn add_waits(&mut self, passed: Span, before: &Readings, is_background: bool) {
        let requests = u64::from(self.queued);
        let mut add = |knob: Knob, nanos: u64| {
            if nanos > 0 {
                self.period.wait_for(knob, Span::from_nanos(nanos.saturating_mul(requests)));
            }
        };
        match self.state {
            State::Empty => {}
            State::AtRate => add(Knob::Rate, passed.as_nanos()),
            State::AtBound => add(Knob::Concurrency, passed.as_nanos()),
            State::Ready => {
                let depth = self.seen.depth - before.depth;
                add(Knob::Depth, depth);
                if is_background {
                    let turn = self.seen.turn - before.turn;
                    let background = self.seen.background - before.background;
                    add(Knob::Turn, turn);
                    add(Knob::BackgroundBound, background);
                    add(Knob::Driver, passed.as_nanos() - depth - turn - background);
                } else {
                    let promised = self.seen.promised - before.promised;
                    add(Knob::PromisedBound, promised);
                    add(Knob::Driver, passed.as_nanos() - depth - promised);
                }
            }
        }
    }

    /// What it had of the device with so many requests there, after the clocks said `before`.
    fn add_shares(&mut self, passed: Span, before: &Readings, requests: AtDevice) {
        let in_flight = u64::from(requests.all);
        let waiting = if self.state == State::Ready { self.queued.into() } else { 0 };
        let share = |now: u64, before: u64| now.wrapping_sub(before).saturating_mul(in_flight);
        let whole = share(self.seen.shared, before.shared);
        self.period.at_device += passed.saturating_mul(in_flight);
        // A recording may hold instants that are centuries apart.
        self.period.share = self.period.share.saturating_add(whole);
        self.period.own_at_device += SharedClock::part_of(whole, in_flight);
        let shut = share(self.seen.shared_while_shut, before.shared_while_shut);
        if shut > 0 {
            self.period.shut_share = self.period.shut_share.saturating_add(shut);
            self.period.own_while_shut += SharedClock::part_of(shut, waiting);
        }
        let went = self.seen.shared_by_promised.wrapping_sub(before.shared_by_promised);
        let promised = went.saturating_mul(requests.promised.into());
        if promised > 0 {
            self.period.promised_share = self.period.promised_share.saturating_add(promised);
            self.period.own_at_promised += SharedClock::part_of(promised, waiting);
        }
    }
}
