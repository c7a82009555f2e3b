//! A second computation of what a volume was promised and what it got: its SLO windows, and its requests'
//! deadlines. [`Windows`] has the requests of each window.
//!
//! It counts requests as they pass. It shares nothing with the engine except the curve of [`Slo`] itself.

use weir_engine::{Control, EngineConfig, VolumeConfig, WindowReport, WindowTraffic};
use weir_model::{Arrivals, Direction, Instant, Io, IoId, Offered, Slo, Span, Verdict, VolumeId};

use super::windows::{Promise, Windows};
use super::{Breach, Verified};

#[derive(Debug)]
pub(super) struct Account {
    slo: Option<Slo>,
    /// Whether it has an absolute target.
    has_target: bool,
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
    /// Since the last control tick: how many requests were answered, and the sum of their times at the array.
    in_period: (u64, Span),
    at_array: Option<Span>,
    /// The latency that the law works with, as of the last tick.
    target: Option<Span>,
}

impl Account {
    pub(super) fn new(now: Instant, config: &VolumeConfig) -> Self {
        let mut account = Self {
            slo: config.slo.clone(),
            has_target: config.objective.target.is_some(),
            outstanding: 0,
            is_beyond: false,
            since: now,
            previous: Arrivals::default(),
            arrived: Offered::default(),
            others: 0,
            answered: (0, Span::ZERO),
            windows: Windows::default(),
            in_period: (0, Span::ZERO),
            at_array: None,
            target: None,
        };
        account.target = account.target_of_mix(None);
        account
    }

    pub(super) fn set_promise(&mut self, config: &VolumeConfig) {
        self.slo.clone_from(&config.slo);
        self.has_target = config.objective.target.is_some();
    }

    /// A request has come.
    pub(super) fn on_arrival(&mut self, io: &Io) {
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
        self.outstanding = self.outstanding.saturating_sub(1);
        self.windows.on_abort(now, id);
    }

    /// A request was answered, with success (`ok`) or not. It was at the array for so long, if it was a read
    /// or a write.
    pub(super) fn on_answer(
        &mut self,
        now: Instant,
        id: IoId,
        ok: bool,
        at_array: Option<Span>,
        total: Span,
    ) {
        self.outstanding = self.outstanding.saturating_sub(1);
        self.windows.on_answer(now, id, ok);
        if let Some(at_array) = at_array.filter(|_| ok) {
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
            Control::Promise => {
                let is_covered = self.target.is_some() && !self.is_beyond;
                (self.has_target || is_covered).then_some(Span::ZERO)
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
        self.windows.end(now, offered, self.promise(oldest.map(|came| now.since(came))));
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

    /// What the window that ends now is judged by, if a request has waited for so long.
    fn promise(&self, waited: Option<Span>) -> Promise {
        let (came, others) = (self.arrived.total(), self.others);
        let target = self.target_of_mix(self.arrived.read_fraction());
        match (target, waited) {
            _ if self.slo.is_none() => Promise::Certain(Verdict::NoSlo, None),
            (None, None) if came + others == 0 => Promise::Certain(Verdict::Idle, None),
            (None, _) => Promise::Certain(Verdict::OutOfContract, None),
            (Some(target), _) if came > 0 => Promise::Mean(target),
            (Some(target), Some(waited)) if waited > target => {
                Promise::Certain(Verdict::Missed, Some(target))
            }
            (Some(target), _) => Promise::Certain(Verdict::Idle, Some(target)),
        }
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

fn mean(sum: Span, number: u64) -> Option<Span> {
    sum.as_nanos().checked_div(number).map(Span::from_nanos)
}

#[cfg(test)]
mod tests;
