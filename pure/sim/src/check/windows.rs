//! A second judgement of SLO windows, from a list of the requests of each.
//!
//! The engine keeps sums, because it has no room for lists. A mistake in the sums, or a request that counts
//! in the wrong window, shows here.

use std::collections::{BTreeMap, VecDeque};

use weir_engine::WindowReport;
use weir_model::{Instant, IoId, Offered, Span, Verdict, VolumeId};

use super::{Breach, Verified};

/// The most windows that may have ended and not be closed.
const MOST_OPEN: usize = 64;

/// The windows of a volume that are not closed.
#[derive(Default, Debug)]
pub(super) struct Windows {
    running: Requests,
    /// The oldest first.
    ended: VecDeque<Ended>,
    /// When the last one ended.
    last_end: Option<Instant>,
}

/// The reads and writes that came in a window.
#[derive(Default, Debug)]
struct Requests {
    came: BTreeMap<IoId, (Instant, Fate)>,
    waiting: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    Waits,
    Answered(Instant),
    Failed,
    TakenBack(Instant),
}

#[derive(Debug)]
struct Ended {
    offered: Offered,
    promise: Promise,
    requests: Requests,
}

/// What a window is judged by, known at its end.
#[derive(Clone, Copy, Debug)]
pub(super) enum Promise {
    /// A mean latency.
    Mean(Span),
    /// Nothing; this is its verdict, and its target.
    Certain(Verdict, Option<Span>),
}

impl Windows {
    /// A read or a write has come.
    pub(super) fn on_arrival(&mut self, now: Instant, id: IoId) {
        self.running.came.insert(id, (now, Fate::Waits));
        self.running.waiting += 1;
    }

    /// A request was answered, with success (`ok`) or not.
    pub(super) fn on_answer(&mut self, now: Instant, id: IoId, ok: bool) {
        self.settle(id, if ok { Fate::Answered(now) } else { Fate::Failed });
    }

    /// A request was taken back.
    pub(super) fn on_abort(&mut self, now: Instant, id: IoId) {
        self.settle(id, Fate::TakenBack(now));
    }

    fn settle(&mut self, id: IoId, fate: Fate) {
        let ended = self.ended.iter_mut().map(|window| &mut window.requests);
        for requests in ended.chain([&mut self.running]) {
            if let Some((_, of)) = requests.came.get_mut(&id) {
                *of = fate;
                requests.waiting -= 1;
            }
        }
    }

    /// The running window ends.
    pub(super) fn end(&mut self, now: Instant, offered: Offered, promise: Promise) {
        self.ended.push_back(Ended { offered, promise, requests: std::mem::take(&mut self.running) });
        self.last_end = Some(now);
    }

    /// The engine has closed a window: checks its report.
    pub(super) fn close(&mut self, now: Instant, volume: VolumeId, reported: &WindowReport) -> Verified {
        let is_one_too_many = self.ended.len() > MOST_OPEN;
        let Some(window) = self.ended.pop_front() else {
            return wrong(volume, "was closed before it ended");
        };
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
            Promise::Mean(_) => oldest.requests.waiting == 0,
            Promise::Certain(..) => true,
        };
        if is_certain { wrong(volume, "is not closed, though its verdict is certain") } else { Ok(()) }
    }
}

impl Ended {
    /// How long each of its requests has taken until now; without those that failed.
    fn taken(&self, now: Instant) -> impl Iterator<Item = u128> {
        let taken = move |&(came, fate): &(Instant, Fate)| match fate {
            Fate::Waits => Some(now.since(came)),
            Fate::Answered(at) | Fate::TakenBack(at) => Some(at.since(came)),
            Fate::Failed => None,
        };
        self.requests.came.values().filter_map(taken).map(|span| u128::from(span.as_nanos()))
    }

    /// The verdict, if nothing that is still to come can change it.
    fn verdict(&self, now: Instant) -> Option<Verdict> {
        let target = match self.promise {
            Promise::Certain(verdict, _) => return Some(verdict),
            Promise::Mean(target) => u128::from(target.as_nanos()),
        };
        let (number, sum) = (self.taken(now).count() as u128, self.taken(now).sum::<u128>());
        match number {
            0 => Some(Verdict::Idle),
            _ if sum > number * target => Some(Verdict::Missed),
            _ => (self.requests.waiting == 0).then_some(Verdict::Met),
        }
    }

    fn report(&self, now: Instant, verdict: Verdict) -> WindowReport {
        let fates = self.requests.came.values().map(|(_, fate)| fate);
        let mean = self.taken(now).sum::<u128>().checked_div(self.taken(now).count() as u128);
        WindowReport {
            offered: self.offered,
            completed: fates.filter(|fate| matches!(fate, Fate::Answered(_))).count() as u64,
            mean_latency: mean.and_then(|mean| u64::try_from(mean).ok()).map(Span::from_nanos),
            target: match self.promise {
                Promise::Mean(target) => Some(target),
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
