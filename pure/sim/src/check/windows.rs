//! A second judgement of SLO windows, from a list of the requests of each.
//!
//! The engine keeps sums, because it has no room for lists. A mistake in the sums, or a request that counts
//! in the wrong window, shows here.

use std::collections::{BTreeMap, VecDeque};

use weir_engine::WindowReport;
use weir_model::{Instant, IoId, Offered, Percentile, Span, Verdict, VolumeId};

use super::{Breach, Verified};

/// The most windows that may have ended and not be closed.
const MOST_OPEN: usize = 64;

/// The windows of a volume that are not closed.
#[derive(Default, Debug)]
pub(super) struct Windows {
    running: Requests,
    /// The oldest first.
    ended: VecDeque<Window>,
    /// How many windows were closed.
    closed: usize,
    /// When the last one ended.
    last_end: Option<Instant>,
    /// Where each request is that has not ended.
    places: BTreeMap<IoId, Place>,
}

/// Where a request is: the number of its window, and its place among the requests that came in it.
#[derive(Clone, Copy, Debug)]
struct Place {
    window: usize,
    place: usize,
}

/// The reads and writes that came in a window.
#[derive(Default, Debug)]
struct Requests {
    came: Vec<Request>,
    waiting: usize,
}

#[derive(Clone, Copy, Debug)]
struct Request {
    came: Instant,
    fate: Fate,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    Waits,
    Answered(Ended),
    Failed,
    TakenBack(Ended),
}

/// When a request ended, and whether that was later than its window's percentile allowed then.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Ended {
    at: Instant,
    is_late: bool,
}

/// A window that has ended.
#[derive(Debug)]
struct Window {
    offered: Offered,
    promise: Promise,
    requests: Requests,
}

/// What a window is judged by, known at its end.
#[derive(Clone, Copy, Debug)]
pub(super) enum Promise {
    /// A mean latency.
    Mean(Span),
    /// A percentile of the latencies of the window that ended then.
    Percentile(Percentile, Span, Instant),
    /// Nothing; this is its verdict, and its target.
    Certain(Verdict, Option<Span>),
}

impl Windows {
    /// A read or a write has come.
    pub(super) fn on_arrival(&mut self, now: Instant, id: IoId) {
        let window = self.closed + self.ended.len();
        self.places.insert(id, Place { window, place: self.running.came.len() });
        self.running.came.push(Request { came: now, fate: Fate::Waits });
        self.running.waiting += 1;
    }

    /// A request was answered, with success (`ok`) or not. `limit`: what a promised percentile allows in the
    /// window that is running.
    pub(super) fn on_answer(&mut self, now: Instant, id: IoId, ok: bool, limit: Option<Span>) {
        self.settle(now, id, limit, |ended| if ok { Fate::Answered(ended) } else { Fate::Failed });
    }

    /// A request was taken back.
    pub(super) fn on_abort(&mut self, now: Instant, id: IoId, limit: Option<Span>) {
        self.settle(now, id, limit, Fate::TakenBack);
    }

    fn settle(&mut self, now: Instant, id: IoId, limit: Option<Span>, fate: impl Fn(Ended) -> Fate) {
        // Not there: it is neither a read nor a write.
        let Some(Place { window, place }) = self.places.remove(&id) else { return };
        let Some(number) = window.checked_sub(self.closed) else { return };
        let (limit, requests) = match self.ended.get_mut(number) {
            Some(window) => (window.promise.limit(), &mut window.requests),
            None => (limit, &mut self.running),
        };
        let request = &mut requests.came[place];
        let is_late = limit.is_some_and(|limit| now.since(request.came) > limit);
        request.fate = fate(Ended { at: now, is_late });
        requests.waiting -= 1;
    }

    /// How many of the requests of the running window have not failed.
    pub(super) fn running(&self) -> u64 {
        self.running.came.iter().filter(|request| request.fate != Fate::Failed).count() as u64
    }

    /// The running window ends.
    pub(super) fn end(&mut self, now: Instant, offered: Offered, promise: Promise) {
        self.ended.push_back(Window { offered, promise, requests: std::mem::take(&mut self.running) });
        self.last_end = Some(now);
    }

    /// The engine has closed a window: checks its report.
    pub(super) fn close(&mut self, now: Instant, volume: VolumeId, reported: &WindowReport) -> Verified {
        let is_one_too_many = self.ended.len() > MOST_OPEN;
        let Some(window) = self.ended.pop_front() else {
            return wrong(volume, "was closed before it ended");
        };
        self.closed += 1;
        let verdict = match window.verdict(now) {
            Some(verdict) => verdict,
            None if is_one_too_many => Verdict::Met,
            None => return wrong(volume, "was closed before its verdict was certain"),
        };
        let computed = window.report(now, verdict);
        if computed == *reported {
            return Ok(());
        }
        Err(Box::new(Breach::Window { volume, reported: *reported, computed }))
    }

    /// The engine has reported everything of this instant. It looks at a window's verdict when a request
    /// ends, and when a window ends.
    pub(super) fn at_rest(&self, now: Instant, volume: VolumeId) -> Verified {
        let Some(oldest) = self.ended.front() else { return Ok(()) };
        let is_certain = match oldest.promise {
            _ if self.last_end == Some(now) => oldest.verdict(now).is_some() || self.ended.len() > MOST_OPEN,
            Promise::Mean(_) | Promise::Percentile(..) => oldest.requests.waiting == 0,
            Promise::Certain(..) => true,
        };
        if is_certain { wrong(volume, "is not closed, though its verdict is certain") } else { Ok(()) }
    }
}

impl Promise {
    /// How long a request may take, if a percentile is promised.
    const fn limit(&self) -> Option<Span> {
        if let Self::Percentile(_, limit, _) = self { Some(*limit) } else { None }
    }
}

impl Window {
    /// How long each of its requests has taken until now; without those that failed.
    fn taken(&self, now: Instant) -> impl Iterator<Item = u128> {
        let taken = move |&Request { came, fate, .. }: &Request| match fate {
            Fate::Waits => Some(now.since(came)),
            Fate::Answered(ended) | Fate::TakenBack(ended) => Some(ended.at.since(came)),
            Fate::Failed => None,
        };
        self.requests.came.iter().filter_map(taken).map(|span| u128::from(span.as_nanos()))
    }

    /// The verdict, if nothing that is still to come can change it.
    fn verdict(&self, now: Instant) -> Option<Verdict> {
        let number = self.taken(now).count() as u128;
        let sum = self.taken(now).sum::<u128>();
        let (is_missed, may_be_missed) = match self.promise {
            Promise::Certain(verdict, _) => return Some(verdict),
            _ if number == 0 => return Some(Verdict::Idle),
            Promise::Mean(target) => {
                (sum > number * u128::from(target.as_nanos()), self.requests.waiting > 0)
            }
            Promise::Percentile(percentile, limit, ended) => {
                let is_above = |late: usize| {
                    let in_time = number - late as u128;
                    in_time * 1_000 < number * u128::from(percentile.tenths())
                };
                let (late, waiting) = (self.late(), self.requests.waiting);
                let is_old = now.since(ended) > limit;
                (is_above(if is_old { late + waiting } else { late }), is_above(late + waiting))
            }
        };
        match (is_missed, may_be_missed) {
            (true, _) => Some(Verdict::Missed),
            (false, false) => Some(Verdict::Met),
            (false, true) => None,
        }
    }

    /// How many of its requests ended late.
    fn late(&self) -> usize {
        let fates = self.requests.came.iter().map(|request| &request.fate);
        let is_late = |fate: &&Fate| {
            matches!(
                fate,
                Fate::Answered(Ended { is_late: true, .. }) | Fate::TakenBack(Ended { is_late: true, .. })
            )
        };
        fates.filter(is_late).count()
    }

    fn report(&self, now: Instant, verdict: Verdict) -> WindowReport {
        let fates = self.requests.came.iter().map(|request| &request.fate);
        let mean = self.taken(now).sum::<u128>().checked_div(self.taken(now).count() as u128);
        WindowReport {
            offered: self.offered,
            completed: fates.filter(|fate| matches!(fate, Fate::Answered(_))).count() as u64,
            mean_latency: mean.and_then(|mean| u64::try_from(mean).ok()).map(Span::from_nanos),
            target: match self.promise {
                Promise::Mean(target) | Promise::Percentile(_, target, _) => Some(target),
                Promise::Certain(_, target) => target,
            },
            verdict,
        }
    }
}

fn wrong(volume: VolumeId, why: &'static str) -> Verified {
    Err(Box::new(Breach::WindowTiming { volume, why }))
}

#[cfg(test)]
mod tests;
