//! The law of promises: nobody is held back unless a promise needs it.
//!
//! **Problem.** A volume is promised a latency, a percentile, a rate or a bandwidth. Others share the device
//! and are promised nothing: *background* volumes. The law holds these back as far as promises need it, and
//! no further. It is told nothing about the device. It knows how long requests took, and how many were where.
//!
//! **Form.** Each period of 50 ms:
//!
//! ```text
//! strain = how close the volume that is worst off is to missing its promise (`watch`)
//! bound  = cut by up to a half    if strain says that the open window is about to be missed
//!          raised                 if it says that even the worst of some hundred windows will be kept
//!          kept                   otherwise                                        (`guard`)
//! ```
//!
//! The bound is how many requests all background volumes together may have at the device. Below one it is a
//! share of time. Promised volumes go first. One that is alone at the device is served as without any law.
//!
//! **Why this form.** Façade's depth bounds everybody, also the volume that is to be helped. Maestro's bounds
//! move by 5 % in 2 s and share out what nobody can use. Both act after a window was missed. A cap in
//! requests a second, which an operator would set, is right for one load. This law acts on the window that is
//! open, only on the background volumes, and lets go when there is room.
//!
//! - **Before anybody is in danger** the device may have as many background requests as it answers in a fifth
//!   of a second (`room`). So when a promised volume comes, it does not wait for a backlog of minutes.
//! - **Silence** (`silence`). A bound stays for a moment when promised volumes fall silent, if they came back
//!   soon before. For that time the guard learns a bound of its own, from the first seconds of each burst
//!   (`comeback`).
//! - **What each background request costs.** A write that a cache takes at once costs the device its time
//!   later. So no more of them go in the time of one promised request than the bound allows.
//! - **Turns** (`knee`). Background volumes take turns, a request each. While two of them always have
//!   requests, the device gets no more than keeps it busy: otherwise the turns are its own, and whoever has
//!   more requests there gets more. Meanwhile they take turns by the device's time and by priority, and a
//!   volume whose requests go in order has the device for itself for a quantum.
//! - **Promised volumes among themselves** (`order`, `line`). If one is hindered by requests of others that
//!   have time, and nobody else is left to be held back, their requests go in order.
//! - **Promised rates** (`rates`). What a volume asks for beyond its rate is background. If not all rates
//!   fit, they are lowered by priority.
//! - **Only if it helps** (`trial`). An order and lowered rates end if promises lack more under them than
//!   without them.
//! - **Out of reach** (`reach`). A promise that is missed though nobody is left to be held back is named,
//!   with the reason.
//!
//! **Several gateways** (`others`). Each gateway of an array runs this law over its own volumes, and bounds
//! its own background. It hears how the promises of all other gateways stand, as if these were one more
//! promised volume. A strain that is heard and asks for a cut is obeyed at once. Silences, cuts and the least
//! bound are those of all gateways together; turns, the order and held rates are each gateway's own.
//!
//! **What it does not do**: it bounds all background volumes together, whatever the sizes of their requests;
//! a latency that is missed is not weighed against a rate that is missed; and a promise that is out of reach
//! goes on to hold the others back.

mod between;
mod comeback;
mod guard;
mod knee;
mod line;
mod observation;
mod order;
mod others;
mod rates;
mod reach;
mod room;
mod silence;
mod standings;
mod steps;
mod strain;
mod trial;
mod watch;

#[cfg(test)]
mod tests;

use weir_model::{Instant, Span, Target};

pub use observation::{PromiseObservation, PromisedObservation, WindowSeen};
pub use others::Standing;
pub use reach::{Because, Shortfall};
pub use standings::Standings;
pub use strain::Strain;

use comeback::Comeback;
use guard::{Background, Guard, Missed};
use knee::{ALWAYS, Knee};
use line::Line;
use order::Order;
use others::{Others, Told};
use rates::Rates;
use reach::Reach;
use room::Room;
use silence::{Presence, Silence};
use trial::Trial;
use watch::Watch;

use crate::law::Law;

/// The most that is said of how close a volume is to missing its promise.
const WORST: f64 = 10.0;
/// A device is busy with something else if requests take so many times as long as they could.
const FAR_LONGER: f64 = 2.0;
/// The least part of the device that a volume is taken to have had.
const LEAST_PART: f64 = 1e-3;
/// How often the law decides. A twentieth of the usual window: a cut can still save the window.
const PERIOD: Span = Span::from_millis(50);
/// Periods of a second.
const SECOND: usize = 20;

/// What background volumes may do at the device, all of them together.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Allowance {
    /// Anything.
    Free,
    /// So many requests at a time. In `cost`, no more of them may begin.
    Requests {
        /// How many.
        most: u32,
        /// What a request costs at least.
        cost: Span,
    },
    /// One request at a time.
    Share {
        /// For which part of the time, above 0 and below 1.
        share: f64,
        /// What a request costs at least.
        cost: Span,
    },
}

/// The volume that is closest to missing its promise.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct WorstOff {
    /// Its number; `None`: it is behind another gateway.
    pub serial: Option<u64>,
    /// How close: 1 is at the limit. 10 stands for all that is above.
    pub strain: f64,
}

/// The law.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Promises {
    /// Of the promised volumes, in the observer's order.
    watches: Vec<Watch>,
    worst: Option<WorstOff>,
    guard: Guard,
    room: Room,
    silence: Silence,
    rates: Rates,
    order: Order,
    trial: Trial,
    /// The promised volumes that had a request of late.
    lines: Vec<Line>,
    knee: Knee,
    /// Periods since somebody could still be held back.
    nobody_left: usize,
    /// Whether a promised volume asks for more than its promise covers. The background is not only that of
    /// which the knee knows then.
    has_beyond: bool,
    reach: Reach,
    /// A silence has ended a moment ago.
    comeback: Option<Comeback>,
    /// The shortest promised latency, in seconds.
    latency: f64,
    /// What a promised request costs at least, in seconds.
    service: f64,
    others: Others,
    /// How many background requests there may be at the device without a bound, while nothing is heard of the
    /// others: as many as when they were heard last, and at first one.
    when_lost: f64,
    told: Told,
    /// What the others have to know.
    news: Option<Standing>,
    /// How often the background was cut.
    cuts: u32,
}

impl Promises {
    /// How often the law decides.
    pub const PERIOD: Span = PERIOD;

    /// The law in one of several gateways of an array. Nothing is known of the others yet.
    pub fn among_others() -> Self {
        Self { others: Others::Unheard, when_lost: 1.0, ..Self::default() }
    }

    /// A promised volume has a request, that with this serial number. What volumes may do changes at once.
    pub fn on_request(&mut self, now: Instant, serial: u64) {
        self.order.on_request(serial);
        self.come_back(now);
    }

    /// Promised volumes have a request.
    fn come_back(&mut self, now: Instant) {
        if self.return_from_silence(now) && self.others != Others::None {
            self.news = Some(self.told.on_return());
        }
    }

    /// How the promises of all other gateways stand. `at_device` background requests are at the device, and
    /// `peak` is the most that were there in this period. What background volumes may do changes at once, if
    /// a window elsewhere is about to be missed.
    ///
    /// A law that was not made by [`Promises::among_others`] does not listen.
    pub fn hear(&mut self, now: Instant, standing: Standing, at_device: u32, peak: u32) {
        if self.others == Others::None {
            return;
        }
        if self.others.hear(now, standing) {
            self.watches.iter_mut().for_each(Watch::forget);
        }
        let standing = self.others.believed(now);
        if standing.is_there {
            self.return_from_silence(now);
        }
        let background = Background { at_device, peak, ..Background::default() };
        self.guard.set_sharers(standing.backgrounds + 1, standing.mean_bound());
        if peak > 0 && standing.strain.is_some_and(|strain| self.guard.urge(strain, background)) {
            self.on_cut();
        }
    }

    /// What the other gateways have to be told now, once. `None`: nothing.
    pub fn poll_news(&mut self) -> Option<Standing> {
        self.news.take()
    }

    /// Whether there are other gateways of which nothing was heard for two seconds.
    pub fn has_lost_others(&self, now: Instant) -> bool {
        self.others.are_lost(now)
    }

    /// What background volumes may do now.
    pub fn allowance(&self, now: Instant) -> Allowance {
        let (beside, alone) = (self.room.beside(self.latency()), self.room.alone());
        if self.others.are_lost(now) {
            return self.allowed(self.guard.held(self.when_lost));
        }
        if self.watches.is_empty() && !self.others.last().is_promised {
            let bounded = |most| Allowance::Requests { most, cost: Span::ZERO };
            return self.knee.bound().map_or(Allowance::Free, bounded);
        }
        match self.silence.presence(now) {
            Presence::There => self.allowed(self.guard.bound().unwrap_or(beside)),
            Presence::Between => self.allowed(self.guard.between(alone)),
            Presence::Away => Allowance::Requests { most: self.at_most(alone), cost: Span::ZERO },
        }
    }

    /// How many requests of promised volumes may be at the device, the most urgent ones; `None`: any number.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // more than fits is as good as all
    pub fn in_order(&self) -> Option<u32> {
        self.order.bound(self.room.alone()).map(|bound| bound as u32)
    }

    /// How long after they came the requests of promised volumes are due, by serial number and in the order
    /// of what was observed. Volumes that were silent for a second are left out.
    pub fn dues(&self) -> impl Iterator<Item = (u64, Span)> + '_ {
        let due = |line: &Line| Span::from_secs_f64(self.order.due(line.due, line.priority));
        self.lines.iter().map(move |line| (line.serial, due(line)))
    }

    /// How long a background volume whose requests go in order has the device for itself; `None`: it does
    /// not.
    pub fn quantum(&self) -> Option<Span> {
        self.knee.quantum()
    }

    /// The volume that was worst off in the last period; `None` if no promised volume was there.
    pub const fn worst(&self) -> Option<WorstOff> {
        self.worst
    }

    /// The promise that is missed though nobody is left to be held back; `None`: all are within reach.
    pub fn shortfall(&self) -> Option<Shortfall<u64>> {
        self.reach.shortfall(self.rates.are_lowered() || self.in_order().is_some())
    }

    /// How many times the promised rate of each promised volume is covered, by serial number and in the order
    /// of what was observed, above 0. Less than once: not all rates fit. `None`: all that it asks for.
    pub fn covered(&self) -> impl Iterator<Item = (u64, Option<f64>)> + '_ {
        self.watches.iter().map(|watch| (watch.serial(), watch.covered()))
    }

    /// A promised volume has a request, here or elsewhere. True: a silence ends.
    fn return_from_silence(&mut self, now: Instant) -> bool {
        let is_return = self.silence.on_request(now);
        if is_return {
            self.comeback = Some(Comeback::default());
        }
        is_return
    }

    /// The background was cut: what was seen before tells nothing of what comes.
    fn on_cut(&mut self) {
        self.cuts = self.cuts.wrapping_add(1);
        self.watches.iter_mut().for_each(Watch::forget);
    }

    /// The shortest promised latency, here or elsewhere, in seconds.
    fn latency(&self) -> f64 {
        self.others.last().latency.map_or(self.latency, |latency| self.latency.min(latency.as_secs_f64()))
    }

    fn allowed(&self, bound: f64) -> Allowance {
        let cost = Span::from_secs_f64(self.service);
        if bound >= 1.0 {
            Allowance::Requests { most: self.at_most(bound), cost }
        } else {
            Allowance::Share { share: bound.min(0.5), cost }
        }
    }

    /// This bound of 1 or more as a whole number, if background volumes do not have to take turns.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // more than fits is as good as all
    fn at_most(&self, bound: f64) -> u32 {
        (bound as u32).min(self.knee.bound().filter(|_| !self.has_beyond).unwrap_or(u32::MAX))
    }

    /// Takes in what was seen of the promised volumes: the worst strain, or `None` if all are silent.
    fn watch(&mut self, seen: &PromiseObservation) -> Option<Strain> {
        let (mut worst, mut place) = (None::<Strain>, 0);
        self.worst = None;
        self.lines.clear();
        self.latency = f64::MAX;
        for (at, volume) in seen.volumes.iter().enumerate() {
            let Some(target) = volume.target else { continue };
            if self.watches.get(place).is_none_or(|watch| !watch.is_of(volume.serial, target)) {
                // The volumes behind it have moved, too.
                self.watches.truncate(place);
                self.watches.push(Watch::new(volume.serial, target));
            }
            if let Target::Latency(limit) | Target::Percentile(_, limit) = target {
                self.latency = self.latency.min(limit.as_secs_f64());
            }
            let Some(watch) = self.watches.get_mut(place) else { continue };
            if let Some(strain) = watch.observe(target, volume) {
                let close = watch.closeness().min(WORST);
                self.reach.note(at, close);
                if self.worst.is_none_or(|worst| worst.strain < close) {
                    self.worst = Some(WorstOff { serial: Some(volume.serial), strain: close });
                }
                self.lines.push(Line {
                    serial: volume.serial,
                    strain,
                    close,
                    is_of_latency: matches!(target, Target::Latency(_) | Target::Percentile(..)),
                    part_at_device: watch.part_at_device(),
                    due: watch.due(volume.outstanding),
                    priority: volume.priority,
                    at_device: f64::from(volume.at_device),
                    waiting: f64::from(volume.outstanding - volume.at_device),
                });
                worst = Some(worst.map_or(strain, |worst| worst.worse(strain)));
            }
            place += 1;
        }
        self.watches.truncate(place);
        worst
    }

    /// What the background did: volumes that are promised nothing, and requests beyond what is covered.
    fn background(&mut self, seen: &PromiseObservation) -> Background {
        let promised = seen.volumes.iter().filter(|volume| volume.target.is_some());
        // More answers than are covered may be of requests that were covered before.
        let promised = promised.filter(|_| seen.background_peak > 0);
        let beyond = promised.zip(&self.watches).map(|(volume, watch)| watch.beyond(volume));
        let beyond = beyond.fold(Background::default(), Background::and_beyond);
        self.has_beyond = beyond.is_there();
        Background::of(seen).and(beyond)
    }

    /// The strain of this gateway's volumes together with that of the others'.
    fn beside_others(&mut self, own: Option<Strain>, others: Option<Strain>) -> Option<Strain> {
        let Some(others) = others else { return own };
        if self.worst.is_none_or(|worst| worst.strain < others.window) {
            self.worst = Some(WorstOff { serial: None, strain: others.window });
        }
        Some(own.map_or(others, |own| own.worse(others)))
    }

    /// Whether promised volumes are held back for one another.
    fn is_held(&self) -> bool {
        self.order.is_there() || self.rates.are_lowered()
    }

    /// Decides what of promised rates is covered: a part, if that is the last resort. A volume that is alone
    /// at the device is served as without any law.
    fn step_rates(&mut self, seen: &PromiseObservation, is_last_resort: bool) {
        let mut background = seen.volumes.iter().filter(|volume| volume.target.is_none());
        let is_beside = background.any(|volume| volume.outstanding > 0 || volume.arrived > 0);
        let is_alone = self.lines.len() < 2 && !is_beside && self.others == Others::None;
        let promised = || seen.volumes.iter().filter(|volume| volume.target.is_some());
        let all: f64 = self.watches.iter().map(Watch::at_device).sum();
        let part = |watch: &Watch| if all > 0.0 { (watch.at_device() / all).max(LEAST_PART) } else { 1.0 };
        let of = |(volume, watch): (&PromisedObservation, &Watch)| {
            Some((volume.priority, watch.got(part(watch))?))
        };
        self.rates.step(is_last_resort, promised().zip(&self.watches).filter_map(of));
        for (volume, watch) in promised().zip(&mut self.watches) {
            let got = watch.got(part(watch));
            let is_covered = !is_alone && watch.is_of_rate();
            watch.cover(is_covered.then(|| self.rates.covered(volume.priority, got)));
        }
    }
}

impl Law for Promises {
    type Observation = PromiseObservation;
    type Setting = Allowance;

    fn step(&mut self, now: Instant, seen: &PromiseObservation) -> Allowance {
        let mut promised = seen.volumes.iter().filter(|volume| volume.target.is_some());
        if promised.clone().any(|volume| volume.outstanding > 0) {
            self.come_back(now);
        }
        let is_there = promised.any(|volume| volume.outstanding > 0 || volume.arrived > 0);
        let others = self.others.believed(now);
        if others.is_there {
            self.return_from_silence(now);
        }
        self.reach.observe(seen);
        let own = self.watch(seen);
        let strain = self.beside_others(own, others.strain);
        self.service = strain.map(|strain| strain.service).filter(|time| *time > 0.0).unwrap_or(self.service);
        let background = self.background(seen);
        let answered = seen.volumes.iter().map(|volume| f64::from(volume.answered)).sum();
        self.room.note(answered);
        self.knee.step(always(seen), seen.background_peak, answered);
        let room = self.room.beside(self.latency());
        let last_second = self.watches.iter().map(Watch::last_second).fold(0.0, f64::max);
        let fared = strain.map(|_| last_second.max(others.last_second));
        if let Some(worst) = self.comeback.as_mut().and_then(|comeback| comeback.step(fared)) {
            self.comeback = None;
            self.guard.on_return(worst, room);
        }
        let has_background = background.is_there();
        self.guard.set_sharers(u32::from(has_background) + others.backgrounds, others.mean_bound());
        let before = self.guard.bound();
        // Behind several gateways, it may be another background that is in the way.
        let is_guarded = has_background || self.others == Others::None;
        let urgent = strain.filter(|strain| is_guarded || !strain.is_hard());
        let is_late = |line: &Line| line.is_of_latency && line.close > 1.0;
        self.guard.set_missed(Missed {
            latency: others.strain.is_some() || self.lines.iter().any(is_late),
            rates_are_lowered: self.rates.are_lowered(),
        });
        if self.guard.step(urgent, background, room) {
            self.on_cut();
        }
        if self.others.are_lost(now) {
            self.guard.take_back(before);
        } else {
            self.when_lost = self.room.alone();
        }
        let is_in_the_way = has_background && self.guard.bound().is_none_or(|bound| bound >= 1.0);
        let nobody_left = !is_in_the_way && !others.is_in_the_way && !self.others.are_lost(now);
        self.nobody_left = if nobody_left { self.nobody_left + 1 } else { 0 };
        if self.nobody_left > SECOND {
            self.watches.iter_mut().for_each(Watch::learn_reach);
        }
        if self.trial.step(&self.lines, self.is_held()) {
            self.order.let_go();
            self.rates.let_go();
        }
        let may_hold = nobody_left && (self.is_held() || self.trial.may_begin());
        self.step_rates(seen, may_hold);
        if self.order.step(may_hold, &self.lines, last_second, self.room.alone()) {
            self.watches.iter_mut().for_each(Watch::forget);
        }
        if self.others != Others::None {
            let bound = self.guard.bound().filter(|_| has_background);
            self.news = self.told.news(Standing {
                is_promised: !self.watches.is_empty(),
                is_there,
                latency: (self.latency < f64::MAX).then(|| Span::from_secs_f64(self.latency)),
                strain: own,
                last_second,
                backgrounds: u32::from(has_background),
                bounded: u32::from(bound.is_some()),
                bounds: bound.unwrap_or_default(),
                is_in_the_way,
                cuts: self.cuts,
            });
        }
        let is_slow = own.is_some_and(|strain| strain.latency > FAR_LONGER * strain.service);
        self.reach.step(nobody_left, is_slow && self.guard.is_in_debt());
        self.allowance(now)
    }
}

/// How many background volumes had requests all the time.
fn always(seen: &PromiseObservation) -> usize {
    let all = PERIOD.as_secs_f64() * ALWAYS;
    let background = seen.volumes.iter().filter(|volume| volume.target.is_none());
    background.filter(|volume| volume.busy.as_secs_f64() >= all).count()
}
