//! A second computation of what a volume was promised and what it got: its SLO windows, and its requests'
//! deadlines. [`Windows`] has the requests of each window.
//!
//! It counts requests as they pass. It shares nothing with the engine except the curve of [`Slo`] itself.

use weir_engine::{Control, EngineConfig, VolumeConfig, WindowReport, WindowTraffic};
use weir_model::{Arrivals, Direction, Instant, Io, IoId, Offered, Slo, Span, Target, Verdict, VolumeId};

use super::served::Served;
use super::windows::{Promise, Windows};
use super::{Breach, Verified};

#[derive(Debug)]
pub(super) struct Account {
    slo: Option<Slo>,
    /// Its absolute target.
    absolute: Option<Target>,
    /// What its windows are judged by in place of the SLO: the target, under the law of promises.
    goal: Option<Target>,
    /// Requests that are neither answered nor aborted.
    outstanding: u32,
    /// Whether it was beyond its SLO, and has more requests left than its SLO allows.
    is_beyond: bool,
    since: Instant,
    /// The arrivals of the window before.
    previous: Arrivals,
    arrived: Offered,
    /// Arrivals that are neither reads nor writes.
    others: u64,
    /// How many reads and writes were answered since the window began, and the sum of their latencies.
    answered: (u64, Span),
    windows: Windows,
    /// When the window began that is to be judged next, and what came in it up to `since`.
    began: Instant,
    came: Offered,
    served: Served,
    /// Since the last control tick: how many requests were answered, and the sum of their times at the array.
    in_period: (u64, Span),
    at_array: Option<Span>,
    /// The latency that the law works with, as of the last tick.
    target: Option<Span>,
}

impl Account {
    pub(super) fn new(now: Instant, config: &VolumeConfig, control: &Control) -> Self {
        let mut account = Self {
            slo: config.slo.clone(),
            absolute: config.objective.target,
            goal: goal(config, control),
            outstanding: 0,
            is_beyond: false,
            since: now,
            previous: Arrivals::default(),
            arrived: Offered::default(),
            others: 0,
            answered: (0, Span::ZERO),
            windows: Windows::default(),
            began: now,
            came: Offered::default(),
            served: Served::new(now),
            in_period: (0, Span::ZERO),
            at_array: None,
            target: None,
        };
        account.target = account.target_of_mix(None);
        account
    }

    pub(super) fn set_promise(&mut self, now: Instant, config: &VolumeConfig, control: &Control) {
        self.slo.clone_from(&config.slo);
        self.absolute = config.objective.target;
        if std::mem::replace(&mut self.goal, goal(config, control)) != self.goal {
            self.served = Served::new(now);
        }
    }

    /// A request has come.
    pub(super) fn on_arrival(&mut self, io: &Io) {
        self.served.on_time(io.arrived, self.outstanding);
        self.outstanding += 1;
        match io.kind.direction() {
            Some(Direction::Read) => self.arrived.reads += 1,
            Some(Direction::Write) => self.arrived.writes += 1,
            None => self.others += 1,
        }
        if io.kind.direction().is_some() {
            self.windows.on_arrival(io.arrived, io.id);
        }
    }

    /// A request was taken back.
    pub(super) fn on_abort(&mut self, now: Instant, id: IoId) {
        self.served.on_time(now, self.outstanding);
        self.outstanding = self.outstanding.saturating_sub(1);
        self.windows.on_abort(now, id, limit(self.goal));
    }

    /// A request was answered, with success and so many bytes (`ok`) or not. It was at the array for so long,
    /// if it was a read or a write.
    pub(super) fn on_answer(
        &mut self,
        now: Instant,
        id: IoId,
        ok: Option<u32>,
        at_array: Option<Span>,
        total: Span,
    ) {
        self.served.on_time(now, self.outstanding);
        self.outstanding = self.outstanding.saturating_sub(1);
        self.windows.on_answer(now, id, ok.is_some(), limit(self.goal));
        let Some(bytes) = ok else { return };
        self.served.on_answer(bytes);
        if let Some(at_array) = at_array {
            self.answered = (self.answered.0 + 1, self.answered.1 + total);
            self.in_period = (self.in_period.0 + 1, self.in_period.1 + at_array);
        }
    }

    /// A control period has ended: computes the target and the time at the array that hold until the next
    /// tick.
    pub(super) fn on_control_tick(&mut self) {
        let (answered, sum) = std::mem::take(&mut self.in_period);
        self.at_array = mean(sum, answered).or(self.at_array);
        let recent = Offered {
            reads: self.previous.transfers.reads + self.arrived.reads,
            writes: self.previous.transfers.writes + self.arrived.writes,
            over: Span::ZERO,
        };
        self.target = self.target_of_mix(recent.read_fraction());
        let is_left = |slo: &Slo, target| self.is_beyond && self.outstanding > slo.outstanding(target);
        let slo = self.slo.as_ref();
        self.is_beyond = slo.is_some_and(|slo| self.target.is_none_or(|target| is_left(slo, target)));
    }

    /// How long after its arrival a request is due at the array; `None`: it is background. If no depth is
    /// bounded, each request is due when it arrives, but under the law of promises only if something is
    /// promised.
    pub(super) fn due_after(&self, config: &EngineConfig) -> Option<Span> {
        match config.control {
            Control::None | Control::Maestro(_) | Control::Leased(_) | Control::Pid(_) => Some(Span::ZERO),
            Control::Promise | Control::SharedPromise => {
                let is_covered = self.target.is_some() && !self.is_beyond;
                (self.absolute.is_some() || is_covered).then_some(Span::ZERO)
            }
            Control::Facade(_) => {
                let needed = self.at_array.unwrap_or(Span::ZERO).saturating_mul(2);
                Some(Span::from_nanos(self.target?.as_nanos().saturating_sub(needed.as_nanos())))
            }
        }
    }

    /// The engine has ended a window: checks its traffic. `oldest` is the arrival of the oldest read or write
    /// that is not answered.
    pub(super) fn end_window(
        &mut self,
        now: Instant,
        length: Span,
        volume: VolumeId,
        oldest: Option<Instant>,
        reported: &WindowTraffic,
    ) -> Verified {
        let lasted = now.since(self.since);
        if lasted != length {
            return Err(Box::new(Breach::WindowLength { volume, lasted, length }));
        }
        let offered = Offered { over: lasted, ..self.arrived };
        let (answered, sum) = std::mem::take(&mut self.answered);
        let computed = WindowTraffic { offered, answered, mean_latency: mean(sum, answered) };
        if computed != *reported {
            return Err(Box::new(Breach::Traffic { volume, reported: *reported, computed }));
        }
        self.came.reads += offered.reads;
        self.came.writes += offered.writes;
        if let Some(promise) = self.promise(now, oldest.map(|came| now.since(came))) {
            let offered = Offered { over: now.since(self.began), ..self.came };
            self.windows.end(now, offered, promise);
            (self.began, self.came) = (now, Offered::default());
        }
        self.since = now;
        self.previous = Arrivals { transfers: offered, others: std::mem::take(&mut self.others) };
        self.arrived = Offered::default();
        Ok(())
    }

    /// The engine has closed a window: checks its report.
    pub(super) fn close_window(
        &mut self,
        now: Instant,
        volume: VolumeId,
        reported: &WindowReport,
    ) -> Verified {
        self.windows.close(now, volume, reported)
    }

    /// The engine has reported everything of this instant.
    pub(super) fn at_rest(&self, now: Instant, volume: VolumeId) -> Verified {
        self.windows.at_rest(now, volume)
    }

    /// What the window that ends now is judged by, if a request has waited for so long; `None`: it has to be
    /// longer.
    fn promise(&mut self, now: Instant, waited: Option<Span>) -> Option<Promise> {
        let came = self.came.total();
        Some(match self.goal {
            Some(Target::Latency(limit)) => mean_of(limit, came, waited),
            Some(Target::Percentile(_, limit)) if came == 0 => Promise::Certain(Verdict::Idle, Some(limit)),
            Some(Target::Percentile(percentile, limit)) => {
                let above = self.windows.running() * u64::from(1_000 - percentile.tenths());
                return (above >= 10_000).then_some(Promise::Percentile(percentile, limit, now));
            }
            Some(target) => {
                self.served.on_time(now, self.outstanding);
                Promise::Certain(self.served.verdict(now.since(self.began), target)?, None)
            }
            None => match self.target_of_mix(self.arrived.read_fraction()) {
                _ if self.slo.is_none() => Promise::Certain(Verdict::NoSlo, None),
                Some(target) => mean_of(target, came, waited),
                None if came + self.others == 0 && waited.is_none() => Promise::Certain(Verdict::Idle, None),
                None => Promise::Certain(Verdict::OutOfContract, None),
            },
        })
    }

    /// The latency promised to this share of reads; without one, the tighter of the two promises.
    fn target_of_mix(&self, reads: Option<f64>) -> Option<Span> {
        let slo = self.slo.as_ref()?;
        match reads {
            Some(reads) => slo.target(&self.previous, reads),
            None => slo.target(&self.previous, 0.0).min(slo.target(&self.previous, 1.0)),
        }
    }
}

/// What a window is judged by to which so many requests came, if they are promised a mean latency.
fn mean_of(target: Span, came: u64, waited: Option<Span>) -> Promise {
    match waited {
        _ if came > 0 => Promise::Mean(target),
        Some(waited) if waited > target => Promise::Certain(Verdict::Missed, Some(target)),
        _ => Promise::Certain(Verdict::Idle, Some(target)),
    }
}

/// What windows are judged by in place of the SLO.
fn goal(config: &VolumeConfig, control: &Control) -> Option<Target> {
    config.objective.target.filter(|_| control.is_of_promises())
}

/// How long a request may take, if a percentile is promised.
const fn limit(goal: Option<Target>) -> Option<Span> {
    if let Some(Target::Percentile(_, limit)) = goal { Some(limit) } else { None }
}

fn mean(sum: Span, number: u64) -> Option<Span> {
    sum.as_nanos().checked_div(number).map(Span::from_nanos)
}

#[cfg(test)]
mod tests;
