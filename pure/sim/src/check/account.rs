//! A second computation of what a volume was promised and what it got: its SLO windows, and its requests'
//! deadlines.
//!
//! It counts requests as they pass. It shares nothing with the engine except the curve of [`Slo`] itself.

use weir_engine::{Control, EngineConfig, VolumeConfig, WindowReport};
use weir_model::{Arrivals, Direction, Instant, Offered, Slo, Span, Verdict, VolumeId};

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
    answered: Offered,
    /// The sum of the latencies of the answered requests.
    latency: Span,
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
            answered: Offered::default(),
            latency: Span::ZERO,
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

    /// A request is over.
    pub(super) const fn on_end(&mut self) {
        self.outstanding = self.outstanding.saturating_sub(1);
    }

    pub(super) const fn on_arrival(&mut self, direction: Option<Direction>) {
        self.outstanding += 1;
        match direction {
            Some(direction) => count(&mut self.arrived, direction),
            None => self.others += 1,
        }
    }

    /// A request was answered with success.
    pub(super) fn on_answer(&mut self, direction: Direction, at_array: Span, total: Span) {
        count(&mut self.answered, direction);
        self.latency += total;
        self.in_period.0 += 1;
        self.in_period.1 += at_array;
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
                (self.has_target || is_covered).then_some(Span::ZERO)
            }
            Control::Facade(_) => {
                let needed = self.at_array.unwrap_or(Span::ZERO).saturating_mul(2);
                Some(Span::from_nanos(self.target?.as_nanos().saturating_sub(needed.as_nanos())))
            }
        }
    }

    /// The engine has ended a window: checks its report. `oldest` is the arrival of the oldest read or write
    /// that is not answered.
    pub(super) fn close_window(
        &mut self,
        now: Instant,
        length: Span,
        volume: VolumeId,
        oldest: Option<Instant>,
        reported: &WindowReport,
    ) -> Verified {
        let lasted = now.since(self.since);
        if lasted != length {
            return Err(Box::new(Breach::WindowLength { volume, lasted, length }));
        }
        let computed = self.report(now, oldest);
        if computed != *reported {
            return Err(Box::new(Breach::Window { volume, reported: *reported, computed }));
        }
        self.since = now;
        self.previous = Arrivals { transfers: computed.offered, others: self.others };
        self.arrived = Offered::default();
        self.others = 0;
        self.answered = Offered::default();
        self.latency = Span::ZERO;
        Ok(())
    }

    fn report(&self, now: Instant, oldest: Option<Instant>) -> WindowReport {
        let completed = self.answered.total();
        let mean_latency = mean(self.latency, completed);
        let mix = self.answered.read_fraction().or_else(|| self.arrived.read_fraction());
        let target = self.target_of_mix(mix);
        let waited = oldest.map(|arrived| now.since(arrived));
        let verdict = match (target, mean_latency.or(waited)) {
            _ if self.slo.is_none() => Verdict::NoSlo,
            (None, None) if self.others == 0 => Verdict::Idle,
            (None, _) => Verdict::OutOfContract,
            (Some(_), None) => Verdict::Idle,
            (Some(target), Some(latency)) if latency > target => Verdict::Missed,
            (Some(_), Some(_)) if mean_latency.is_some() => Verdict::Met,
            // The waiting requests have not waited for too long yet.
            (Some(_), Some(_)) => Verdict::Idle,
        };
        let offered = Offered { over: now.since(self.since), ..self.arrived };
        WindowReport { offered, completed, mean_latency, target, verdict }
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

const fn count(offered: &mut Offered, direction: Direction) {
    match direction {
        Direction::Read => offered.reads += 1,
        Direction::Write => offered.writes += 1,
    }
}

fn mean(sum: Span, number: u64) -> Option<Span> {
    sum.as_nanos().checked_div(number).map(Span::from_nanos)
}

#[cfg(test)]
mod tests;
