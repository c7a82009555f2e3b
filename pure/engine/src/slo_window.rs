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
//! Windows are closed in their order. So the n-th window that ends is the n-th that is closed.
//!
//! A request that fails is taken out of its window, because an SLO speaks of requests that are served. One
//! that its client takes back stays in, with its age at that time: a law that starves a volume until its
//! clients give up has not kept the promise. Requests that are neither reads nor writes have no target, but
//! they count towards the offered rate: they take the device like any other, and with the volume's deadlines.

use std::collections::VecDeque;

use weir_control::Latency;
use weir_model::{Arrivals, Direction, Instant, Offered, Slo, Span, Verdict};

use crate::event::{WindowReport, WindowTraffic};
use crate::sensors::{LatencySensor, RateSensor};
use crate::tally::Tally;

/// The most windows that have ended and wait for their verdict. If a device hangs, a window is missed when it
/// is as old as its target. So many wait only if one of very many requests hangs, or if a window is much
/// shorter than its target.
const KEPT: usize = 64;

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
    /// The reads and writes that came in the window that is running.
    running: Requests,
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
            running: Requests::default(),
            answered: LatencySensor::default(),
            ended: VecDeque::new(),
        }
    }

    /// Begins anew. Requests that came before belong to no window any more.
    pub(crate) fn restart(&mut self, now: Instant) {
        *self = Self { number: self.number.next(), ..Self::new(now) };
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
        self.number
    }

    /// A read or a write that came then, in that window, has ended.
    pub(crate) fn on_end(&mut self, now: Instant, came: Instant, window: WindowNumber, ending: Ending) {
        let Some(requests) = self.requests_of(window) else { return };
        match ending {
            Ending::Answered => {
                requests.tally.on_end(now, came);
                requests.completed += 1;
            }
            Ending::Aborted => requests.tally.on_end(now, came),
            Ending::Failed => requests.tally.on_withdrawal(came),
        }
    }

    /// A read or a write was answered with success, whenever it came.
    pub(crate) fn on_answer(&mut self, latency: Latency) {
        self.answered.record(latency);
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

    /// Ends the window, and begins the next. `oldest` is when the volume's oldest read or write without an
    /// answer arrived.
    pub(crate) fn end(&mut self, now: Instant, slo: Option<&Slo>, oldest: Option<Instant>) -> WindowTraffic {
        let offered = self.arrived.over(now.since(self.since));
        let promise = self.promise(slo, oldest.map(|came| now.since(came)));
        self.ended.push_back(Ended { offered, requests: std::mem::take(&mut self.running), promise });
        self.since = now;
        self.number = self.number.next();
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
            Promise::Mean(target) => Some(target),
            Promise::Certain(target, _) => target,
        };
        let Requests { tally, completed } = requests;
        Some(WindowReport { offered, completed, mean_latency: tally.mean(now), target, verdict })
    }

    /// What the window that ends now is judged by, if the oldest request without an answer has this age.
    fn promise(&self, slo: Option<&Slo>, oldest: Option<Span>) -> Promise {
        let Some(slo) = slo else { return Promise::Certain(None, Verdict::NoSlo) };
        let transfers = self.arrived.over(Span::ZERO).total();
        match self.target(slo) {
            None if transfers + self.others == 0 && oldest.is_none() => Promise::Certain(None, Verdict::Idle),
            None => Promise::Certain(None, Verdict::OutOfContract),
            Some(target) if transfers == 0 && oldest.is_some_and(|age| age > target) => {
                Promise::Certain(Some(target), Verdict::Missed)
            }
            Some(target) => Promise::Mean(target),
        }
    }

    fn requests_of(&mut self, window: WindowNumber) -> Option<&mut Requests> {
        let ago = self.number.since(window);
        if ago == 0 {
            return Some(&mut self.running);
        }
        let place = self.ended.len().checked_sub(ago)?;
        Some(&mut self.ended.get_mut(place)?.requests)
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
        let target = match self.promise {
            Promise::Certain(_, verdict) => return Some(verdict),
            Promise::Mean(target) => target,
        };
        let tally = &self.requests.tally;
        if tally.count == 0 {
            Some(Verdict::Idle)
        } else if tally.is_beyond(now, target) {
            Some(Verdict::Missed)
        } else {
            (tally.outstanding == 0).then_some(Verdict::Met)
        }
    }
}

#[cfg(test)]
mod tests;
