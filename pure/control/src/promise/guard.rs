//! Guards the promises: how many requests background volumes may have at the device.
//!
//! | state | what the guard does |
//! |---|---|
//! | nobody was in danger yet | no bound |
//! | a window is about to be missed, and is missed more from moment to moment | cuts the bound by up to a half, and waits until the cut can be seen |
//! | cuts down to a sixteenth did not help | the device does what it was given before: waits until that is done |
//! | one window in some hundred would be missed | takes the bound back slowly |
//! | there is room | raises the bound: fast up to where the last trouble began, slowly above |
//! | nobody has reached the bound for 5 s | no bound |
//!
//! **Why by factors.** The right bound is a fraction of a request for disks behind a full cache, and hundreds
//! for flash. Below one, it is a share of time: one request at a time, for this part of the time.
//!
//! **What hides behind the device.** A write cache takes a thousand writes in a second and destages them for
//! a minute. Reads are slow for that minute, whatever is done. When it is over, the guard knows what the
//! device has really done: the background requests of that cycle, over its seconds. It allows a part of that,
//! and more only slowly.

use super::between::Between;
use super::steps::{self, CUT, SETTLES, UNFELT};
use super::strain::{AIM, Strain};
use super::{PERIOD, PromiseObservation};

/// A cut is seen when requests have been answered that came after it, but not later than after a second.
const SETTLES_AT_MOST: f64 = 20.0;
/// The first bound is at most half of this, however many requests a backlog had put at the device.
const FIRST: f64 = 64.0;
/// The least bound before the device was seen to do what it was given before: a sixteenth of the time. Less
/// than that helps no promise on a device with one server.
const LEAST: f64 = 1.0 / 16.0;
/// The bound while the device does what it was given before: each request makes that longer.
const LEAST_IN_DEBT: f64 = 1.0 / 256.0;
/// Cuts to such a part of the bound that did not help mean that the device does what it was given before.
const DEBT: f64 = 1.0 / 16.0;
/// The part of what the device has done in a cycle that is allowed in the next one.
const DRAINED: f64 = 0.7;
/// How fast the bound grows while there is plenty of room, a second: it doubles.
const FAST: f64 = 0.7;
/// If there is room for as many doublings of the strain, it grows fast everywhere.
const FAR: f64 = 3.0;
/// At the next trouble the guard goes straight to the bound with which the last one ended, and a half more.
const JUMP: f64 = 1.5;
/// That memory fades: the bound that it stands for grows by this, a second.
const FADES: f64 = 0.03;
/// The seconds after a silence tell that more would do if their strain is below this.
const EASY: f64 = 0.8;

/// What background volumes did in a period, in sum.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub(super) struct Background {
    /// Requests that are in the scheduler.
    pub(super) waiting: u32,
    /// Requests at the device.
    pub(super) at_device: u32,
    /// The most requests at the device at a time.
    pub(super) peak: u32,
    /// Requests answered.
    pub(super) answered: u32,
}

impl Background {
    /// What they did in this period.
    pub(super) fn of(seen: &PromiseObservation) -> Self {
        let (peak, at_device) = (seen.background_peak, seen.background_at_device);
        let mut all = Self { peak, at_device, ..Self::default() };
        for volume in seen.volumes.iter().filter(|volume| volume.target.is_none()) {
            all.waiting += volume.outstanding - volume.at_device;
            all.answered += volume.answered;
        }
        all
    }

    /// The same with what a volume asked for beyond what its promise covers.
    pub(super) const fn and_beyond(self, beyond: Beyond) -> Self {
        let Beyond { waiting, answered } = beyond;
        Self { waiting: self.waiting + waiting, answered: self.answered + answered, ..self }
    }

    /// Both together, with what is at the device of this.
    pub(super) const fn and(self, other: Self) -> Self {
        Self { waiting: self.waiting + other.waiting, answered: self.answered + other.answered, ..self }
    }

    /// Whether they had a request.
    pub(super) const fn is_there(self) -> bool {
        self.waiting > 0 || self.at_device > 0 || self.answered > 0
    }
}

/// What a volume asked for in a period beyond what its promise covers, in requests.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub(super) struct Beyond {
    /// Some that wait in the scheduler: which of them are covered by then is not known.
    pub(super) waiting: u32,
    /// Answered.
    pub(super) answered: u32,
}

/// What is missed. A rate is missed also where rates do not all fit. That is no debt of the device, and says
/// nothing about the bound.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Missed {
    /// Whether a promised latency is, here or elsewhere.
    pub(super) latency: bool,
    /// Whether rates are lowered, because not all of them fit.
    pub(super) rates_are_lowered: bool,
}

/// The guard. Bounds are requests at the device; below one, a share of time.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Guard {
    /// `None`: no bound.
    bound: Option<f64>,
    /// The bound when the trouble began that is not over; `None`: there is none.
    before: Option<f64>,
    /// Up to here, the bound grows fast.
    ceiling: f64,
    /// Whether the ceiling is what the device has drained.
    is_drained: bool,
    /// The bound with which the last trouble ended.
    ended: f64,
    /// Whether the device does what it was given before.
    in_debt: bool,
    missed: Missed,
    /// Since the last debt was paid: seconds, and background requests answered.
    cycle: (f64, f64),
    /// Periods since the last cut, and since somebody reached the bound.
    settled: f64,
    unfelt: f64,
    /// The bound while promised volumes are silent for a moment.
    between: Between,
    /// How many gateways share what background may have in any case.
    sharers: f64,
    /// What others have on average, of those that have a bound. A cut leaves no more.
    fair: f64,
}

impl Default for Guard {
    fn default() -> Self {
        Self {
            bound: None,
            before: None,
            ceiling: f64::MAX,
            is_drained: false,
            ended: f64::MAX,
            in_debt: false,
            missed: Missed { latency: true, rates_are_lowered: false },
            cycle: (0.0, 0.0),
            settled: 0.0,
            unfelt: 0.0,
            between: Between::default(),
            sharers: 1.0,
            fair: f64::MAX,
        }
    }
}

impl Guard {
    /// Background volumes have requests behind so many gateways, or one. Others have this bound on average.
    pub(super) fn set_sharers(&mut self, sharers: u32, others: Option<f64>) {
        self.sharers = f64::from(sharers.max(1));
        self.fair = others.unwrap_or(f64::MAX);
    }

    /// What is missed from now on.
    pub(super) const fn set_missed(&mut self, missed: Missed) {
        self.missed = missed;
    }

    /// The bound; `None`: there is none.
    pub(super) const fn bound(&self) -> Option<f64> {
        self.bound
    }

    /// Whether the device does what it was given before.
    pub(super) const fn is_in_debt(&self) -> bool {
        self.in_debt
    }

    /// The bound while promised volumes are silent for a moment, and `room` is free.
    pub(super) fn between(&self, room: f64) -> f64 {
        self.bound.map_or(room, |bound| self.between.most(bound, room))
    }

    /// A silence has ended, and this was the worst strain of a second after it.
    pub(super) fn on_return(&mut self, strain: f64, room: f64) {
        self.between.on_return(strain, EASY, 1.0, self.bound.unwrap_or(room), room);
    }

    /// Ends a period in which promised volumes had this strain; `None`: they are silent. At most `room`
    /// requests may be at the device. True: there was a cut, so what was seen before tells nothing of what
    /// comes.
    pub(super) fn step(&mut self, strain: Option<Strain>, seen: Background, room: f64) -> bool {
        self.cycle.0 += PERIOD.as_secs_f64();
        self.cycle.1 += f64::from(seen.answered);
        let Some(strain) = strain else { return false };
        self.settled += 1.0;
        let Some(bound) = self.bound.filter(|_| !strain.is_hard()) else { return self.urge(strain, seen) };
        if self.in_debt {
            return strain.window <= AIM && self.end_debt(strain.service);
        }
        if self.before.take().is_some() {
            self.ended = bound;
        }
        self.ended *= 1.0 + FADES * PERIOD.as_secs_f64();
        self.bound = self.moved(bound, strain, seen).map(|bound| bound.min(room));
        false
    }

    /// Cuts if a window is about to be missed, though no period has ended. True: there was a cut.
    pub(super) fn urge(&mut self, strain: Strain, seen: Background) -> bool {
        match self.bound {
            None => self.begin(strain, seen),
            Some(bound) => strain.is_hard() && self.cut(bound, strain, seen),
        }
    }

    /// The bound while nobody says whether promises elsewhere are kept, and `room` is free.
    pub(super) fn held(&self, room: f64) -> f64 {
        self.bound.map_or(room, |bound| bound.max(LEAST / self.sharers))
    }

    /// Takes back a raise since the bound was this.
    pub(super) fn take_back(&mut self, before: Option<f64>) {
        if let Some(before) = before {
            self.bound = Some(self.bound.map_or(before, |bound| bound.min(before)));
        }
    }

    /// The first bound, if a window is about to be missed while background volumes are there.
    fn begin(&mut self, strain: Strain, seen: Background) -> bool {
        if strain.window <= 1.0 || strain.lately <= 1.0 || seen.peak == 0 {
            return false;
        }
        let before = f64::from(seen.peak).min(FIRST / self.sharers).min(self.fair / CUT.0);
        *self = Self {
            bound: Some((before * CUT.0).max(LEAST / self.sharers)),
            before: Some(before),
            ceiling: f64::MAX,
            settled: 0.0,
            unfelt: 0.0,
            ..*self
        };
        true
    }

    fn cut(&mut self, bound: f64, strain: Strain, seen: Background) -> bool {
        let settles = SETTLES.max((strain.latency / PERIOD.as_secs_f64()).min(SETTLES_AT_MOST));
        let has_drained = f64::from(seen.at_device) <= bound.floor().max(1.0);
        if self.in_debt || !has_drained || self.settled < settles {
            return false;
        }
        let known = if self.before.is_none() { self.ended * JUMP } else { f64::MAX };
        let before = *self.before.get_or_insert(bound);
        let least = self.least(bound);
        let next = (bound * steps::cut(strain)).min(known).min(self.fair).max(least);
        self.settled = 0.0;
        self.in_debt = self.missed.latency && next < 1.0 && next <= before * DEBT && seen.at_device <= 1;
        if !self.in_debt {
            // What helps a latency is found cut by cut. Where rates do not fit, no cut would be enough.
            let trouble = if self.missed.latency { bound } else { before };
            if self.missed.latency || !self.missed.rates_are_lowered {
                self.ceiling = self.ceiling.min(trouble * 0.8);
            }
        }
        self.bound = Some(if self.in_debt { LEAST_IN_DEBT / self.sharers } else { next });
        true
    }

    /// The device has done what it was given before.
    fn end_debt(&mut self, service: f64) -> bool {
        self.in_debt = false;
        let (seconds, requests) = std::mem::take(&mut self.cycle);
        self.is_drained = true;
        self.ceiling = (DRAINED * requests / seconds * service).max(LEAST_IN_DEBT / self.sharers);
        self.bound = Some(self.ceiling / 2.0);
        true
    }

    /// The bound for the next period, if no window is about to be missed.
    fn moved(&mut self, bound: f64, strain: Strain, seen: Background) -> Option<f64> {
        let seconds = PERIOD.as_secs_f64();
        let likely = strain.likely.max(strain.window);
        if likely > 1.0 && strain.lately > 0.0 {
            return Some((bound * (1.0 - steps::back(likely) * seconds)).max(self.least(bound)));
        }
        if likely >= AIM {
            return Some(bound);
        }
        let is_felt = seen.waiting > 0 || f64::from(seen.peak) >= bound.floor().max(1.0);
        self.unfelt = if is_felt { 0.0 } else { self.unfelt + 1.0 };
        if !is_felt {
            return (self.unfelt * seconds <= UNFELT).then_some(bound);
        }
        let next = bound * (1.0 + self.growth(bound, likely) * seconds);
        if bound >= self.ceiling {
            self.ceiling = next;
        }
        Some(next)
    }

    /// The least that a cut may leave of this bound. A cache may need a bound far below a sixteenth.
    const fn least(&self, bound: f64) -> f64 {
        if self.is_drained { LEAST_IN_DEBT / self.sharers } else { (LEAST / self.sharers).min(bound) }
    }

    /// How fast a bound may grow that was felt, a second.
    fn growth(&self, bound: f64, likely: f64) -> f64 {
        let doublings = (AIM / likely.max(1e-3)).log2();
        let room = doublings.min(1.0);
        if bound < self.ceiling {
            return FAST * room;
        }
        let slow = steps::slow(room, self.settled);
        let fast = FAST * (doublings / FAR).min(1.0).powi(2);
        if self.is_drained { slow } else { slow.max(fast) }
    }
}
