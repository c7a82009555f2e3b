//! The windows over which an SLO is judged (Façade §3).
//!
//! "The average latency over any time window should not exceed `f_r tr_i + (1 - f_r) tw_i` if the offered
//! request rate over the previous window is less than `r_i`." The rate is the rate of the previous window, so
//! that the promise is known before the window begins.
//!
//! **A request belongs to the window in which it came**, and the mix is the mix of what came. If a window had
//! the requests that were answered in it, a law could better its figures by letting nothing through: one fast
//! reply beside a hundred requests that hang would keep the promise. So when a window ends, its requests and
//! its target are fixed, and its verdict follows when it is certain:
//!
//! - It is missed as soon as its requests have taken more than the target on average. One without an answer
//!   counts with its age.
//! - It is met when all of its requests have ended within that.
//! - If more than [`KEPT`] windows wait for their verdict, the oldest is judged by the ages of now.
//!
//! A window in which nothing came is missed too, if a request from before has waited at its end for longer
//! than the target. Clients that ask again only when they are answered ask for nothing while a law starves
//! them, and such a volume is not idle.
//!
//! Windows are closed in their order, and none is left out: each begins where the one before ended.
//!
//! A request that fails is taken out of its window, because an SLO speaks of requests that are served. One
//! that its client takes back stays in, with its age at that time: a law that starves a volume until its
//! clients give up has not kept the promise. Requests that are neither reads nor writes have no target, but
//! they count towards the offered rate: they take the device like any other, and with the volume's deadlines.
//!
//! Under the law of promises, a volume may have a target in place of its SLO, which is judged in windows too:
//!
//! - A mean latency as above, whatever the rate.
//! - A percentile over as many windows as have enough requests together, so that [`ABOVE`] are expected above
//!   it. One that has no answer is late when it is older than the limit.
//! - A rate as [`rate`] says.

mod rate;

use std::collections::VecDeque;

use weir_control::Latency;
use weir_model::{Arrivals, Direction, Instant, Offered, Percentile, Slo, Span, Target, Verdict};

use crate::event::{WindowReport, WindowTraffic};
use crate::sensors::{LatencySensor, RateSensor};
use crate::tally::Tally;

use rate::Service;

/// The most windows that have ended and wait for their verdict. If a device hangs, a window is missed when it
/// is as old as its target. So many wait only if one of very many requests hangs, or if a window is much
/// shorter than its target.
const KEPT: usize = 64;

/// How many requests of a window are expected above a percentile, at least. A percentile of fewer is chance.
const ABOVE: u64 = 10;

/// The windows of one volume that are not judged yet.
#[derive(Clone, Debug)]
pub(crate) struct SloWindows {
    since: Instant,
    /// The number of the window that is running.
    number: WindowNumber,
    /// What arrived in the window before.
    previous: Arrivals,
    arrived: RateSensor,
    /// How many requests of other kinds arrived.
    others: u64,
    /// A target in place of the SLO.
    target: Option<Target>,
    /// When the window began that is to be judged next. A percentile may need several.
    began: Instant,
    /// What came in it, up to `since`.
    came: RateSensor,
    /// The reads and writes that came in it.
    running: Requests,
    /// What a promised rate is judged by.
    service: Option<Box<Service>>,
    /// The latency of what was answered in it, whenever that came.
    answered: LatencySensor,
    /// The windows that have ended, the oldest first. Their numbers are the ones before `number`.
    ended: VecDeque<Ended>,
}

/// The number of a window of a volume. The numbers of one volume count up, and wrap around.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct WindowNumber(u32);

/// How a request has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ending {
    /// It was answered with success.
    Answered,
    /// It was answered with an error.
    Failed,
    /// Its client took it back while it was queued.
    Aborted,
}

/// The reads and writes that came in a window.
#[derive(Clone, Copy, Default, Debug)]
struct Requests {
    tally: Tally,
    /// How many were answered with success.
    completed: u64,
    /// How many ended later than a promised percentile allows.
    late: u64,
}

/// A window that has ended.
#[derive(Clone, Debug)]
struct Ended {
    offered: Offered,
    requests: Requests,
    promise: Promise,
}

/// What a window is judged by.
#[derive(Clone, Copy, Debug)]
enum Promise {
    /// The mean latency of its requests.
    Mean(Span),
    /// This part of its requests takes at most so long.
    Percentile {
        percentile: Percentile,
        limit: Span,
        /// When the window ended.
        ended: Instant,
    },
    /// Nothing more: the verdict was certain when it ended, with this target.
    Certain(Option<Span>, Verdict),
}

impl SloWindows {
    /// Before the first window of a volume.
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            since: now,
            number: WindowNumber::default(),
            previous: Arrivals::default(),
            arrived: RateSensor::default(),
            others: 0,
            target: None,
            began: now,
            came: RateSensor::default(),
            running: Requests::default(),
            service: None,
            answered: LatencySensor::default(),
            ended: VecDeque::new(),
        }
    }

    /// Begins anew, for a volume that has so many requests. These belong to no window any more.
    pub(crate) fn restart(&mut self, now: Instant, outstanding: u32) {
        let target = self.target;
        *self = Self { number: self.number.next(), ..Self::new(now) };
        self.set_target(now, target, outstanding);
    }

    /// Sets a target in place of the SLO, for a volume that has so many requests. It is in force at once.
    pub(crate) fn set_target(&mut self, now: Instant, target: Option<Target>, outstanding: u32) {
        if target == self.target {
            return;
        }
        let is_rate = matches!(target, Some(Target::Rate(_) | Target::Throughput(_)));
        self.service = is_rate.then(|| Box::new(Service::new(now, outstanding)));
        self.target = target;
    }

    /// A request has arrived; `None`: it is neither a read nor a write. Returns the window to which it
    /// belongs.
    pub(crate) fn on_arrival(&mut self, now: Instant, direction: Option<Direction>) -> WindowNumber {
        match direction {
            Some(direction) => {
                self.arrived.record(direction);
                self.running.tally.on_arrival(now);
            }
            None => self.others += 1,
        }
        if let Some(service) = &mut self.service {
            service.on_arrival(now);
        }
        self.number
    }

    /// A request that came then has ended. `window`: the one to which it belongs; `None`: it is neither a
    /// read nor a write.
    pub(crate) fn on_end(
        &mut self,
        now: Instant,
        came: Instant,
        window: Option<WindowNumber>,
        ending: Ending,
    ) {
        if let Some(service) = &mut self.service {
            service.on_end(now);
        }
        let Some((requests, limit)) = window.and_then(|window| self.requests_of(window)) else { return };
        match ending {
            Ending::Answered => {
                requests.tally.on_end(now, came);
                requests.completed += 1;
            }
            Ending::Aborted => requests.tally.on_end(now, came),
            Ending::Failed => return requests.tally.on_withdrawal(came),
        }
        requests.late += u64::from(limit.is_some_and(|limit| now.since(came) > limit));
    }

    /// A request of so many bytes was answered with success, whenever it came. `latency`: of a read or a
    /// write.
    pub(crate) fn on_answer(&mut self, bytes: u32, latency: Option<Latency>) {
        if let Some(latency) = latency {
            self.answered.record(latency);
        }
        if let Some(service) = &mut self.service {
            service.on_answer(bytes);
        }
    }

    /// What arrived in the window before: the rate that the window that is running will be judged by.
    pub(crate) const fn offered_before(&self) -> Arrivals {
        self.previous
    }

    /// The share of reads in what arrived in this window and the one before. A window that has just begun has
    /// too few requests for a mix of its own.
    pub(crate) fn recent_mix(&self) -> Option<f64> {
        let now = self.arrived.over(Span::ZERO);
        let before = self.previous.transfers;
        let (reads, writes) = (before.reads + now.reads, before.writes + now.writes);
        Offered { reads, writes, over: Span::ZERO }.read_fraction()
    }

    /// What the window that is running will be judged by, if its mix stays as it is.
    pub(crate) fn target(&self, slo: &Slo) -> Option<Span> {
        match self.arrived.over(Span::ZERO).read_fraction() {
            Some(reads) => slo.target(&self.previous, reads),
            None => slo.target(&self.previous, 1.0).min(slo.target(&self.previous, 0.0)),
        }
    }

    /// Ends the window, and begins the next. If its target needs a longer one, both are judged as one.
    /// `oldest` is when the volume's oldest read or write without an answer arrived.
    pub(crate) fn end(&mut self, now: Instant, slo: Option<&Slo>, oldest: Option<Instant>) -> WindowTraffic {
        let offered = self.arrived.over(now.since(self.since));
        self.came.add(self.arrived);
        if let Some(promise) = self.promise(now, slo, oldest.map(|came| now.since(came))) {
            let offered = std::mem::take(&mut self.came).over(now.since(self.began));
            self.ended.push_back(Ended { offered, requests: std::mem::take(&mut self.running), promise });
            self.began = now;
            self.number = self.number.next();
        }
        self.since = now;
        self.previous = Arrivals { transfers: offered, others: std::mem::take(&mut self.others) };
        self.arrived = RateSensor::default();
        let answered = std::mem::take(&mut self.answered);
        let mean_latency = answered.mean().map(|mean| mean.total);
        WindowTraffic { offered, answered: answered.count(), mean_latency }
    }

    /// Whether a window has ended and is not closed.
    pub(crate) fn has_ended(&self) -> bool {
        !self.ended.is_empty()
    }

    /// Closes the oldest window that has ended, if its verdict is certain.
    pub(crate) fn close(&mut self, now: Instant) -> Option<WindowReport> {
        let oldest = self.ended.front()?;
        let is_one_too_many = self.ended.len() > KEPT;
        // What is not certain has not exceeded its target.
        let verdict = oldest.verdict(now).or_else(|| is_one_too_many.then_some(Verdict::Met))?;
        let Ended { offered, requests, promise } = self.ended.pop_front()?;
        let target = match promise {
            Promise::Mean(target) | Promise::Percentile { limit: target, .. } => Some(target),
            Promise::Certain(target, _) => target,
        };
        let Requests { tally, completed, .. } = requests;
        Some(WindowReport { offered, completed, mean_latency: tally.mean(now), target, verdict })
    }

    /// What the window that ends now is judged by, if the oldest request without an answer has this age;
    /// `None`: it has to be longer.
    fn promise(&mut self, now: Instant, slo: Option<&Slo>, oldest: Option<Span>) -> Option<Promise> {
        match self.target {
            None => Some(self.promise_of_slo(slo, oldest)),
            Some(Target::Latency(limit)) => Some(self.promise_of_mean(limit, oldest)),
            Some(Target::Percentile(percentile, limit)) => {
                let needed = (ABOVE * 1_000).div_ceil(1_000 - u64::from(percentile.tenths()));
                match self.came.over(Span::ZERO).total() {
                    0 => Some(Promise::Certain(Some(limit), Verdict::Idle)),
                    _ if self.running.tally.count < needed => None,
                    _ => Some(Promise::Percentile { percentile, limit, ended: now }),
                }
            }
            Some(target @ (Target::Rate(_) | Target::Throughput(_))) => {
                let verdict = self.service.as_mut()?.verdict(now, self.began, target)?;
                Some(Promise::Certain(None, verdict))
            }
        }
    }

    fn promise_of_slo(&self, slo: Option<&Slo>, oldest: Option<Span>) -> Promise {
        let Some(slo) = slo else { return Promise::Certain(None, Verdict::NoSlo) };
        let came = self.came.over(Span::ZERO).total() + self.others;
        match self.target(slo) {
            None if came == 0 && oldest.is_none() => Promise::Certain(None, Verdict::Idle),
            None => Promise::Certain(None, Verdict::OutOfContract),
            Some(target) => self.promise_of_mean(target, oldest),
        }
    }

    fn promise_of_mean(&self, target: Span, oldest: Option<Span>) -> Promise {
        let is_empty = self.came.over(Span::ZERO).total() == 0;
        if is_empty && oldest.is_some_and(|age| age > target) {
            Promise::Certain(Some(target), Verdict::Missed)
        } else {
            Promise::Mean(target)
        }
    }

    /// The requests of a window, and how long they may take if a percentile is promised.
    fn requests_of(&mut self, window: WindowNumber) -> Option<(&mut Requests, Option<Span>)> {
        let ago = self.number.since(window);
        if ago == 0 {
            let limit = if let Some(Target::Percentile(_, limit)) = self.target { Some(limit) } else { None };
            return Some((&mut self.running, limit));
        }
        let place = self.ended.len().checked_sub(ago)?;
        let Ended { requests, promise, .. } = self.ended.get_mut(place)?;
        let limit = if let Promise::Percentile { limit, .. } = promise { Some(*limit) } else { None };
        Some((requests, limit))
    }
}

impl WindowNumber {
    const fn next(self) -> Self {
        Self(self.0.wrapping_add(1))
    }

    /// How many windows later this one is.
    const fn since(self, other: Self) -> usize {
        self.0.wrapping_sub(other.0) as usize
    }
}

impl Ended {
    /// The verdict, if it is certain.
    fn verdict(&self, now: Instant) -> Option<Verdict> {
        let Requests { tally, late, .. } = &self.requests;
        let (is_missed, is_met) = match self.promise {
            Promise::Certain(_, verdict) => return Some(verdict),
            _ if tally.count == 0 => return Some(Verdict::Idle),
            Promise::Mean(target) => (tally.is_beyond(now, target), tally.outstanding == 0),
            Promise::Percentile { percentile, limit, ended } => {
                let most_late = tally.count * (1_000 - u64::from(percentile.tenths())) / 1_000;
                // All of its requests came before its end.
                let late_by_age = if now.since(ended) > limit { tally.outstanding } else { 0 };
                (late + late_by_age > most_late, late + tally.outstanding <= most_late)
            }
        };
        match (is_missed, is_met) {
            (true, _) => Some(Verdict::Missed),
            (false, true) => Some(Verdict::Met),
            (false, false) => None,
        }
    }
}

#[cfg(test)]
mod tests;
