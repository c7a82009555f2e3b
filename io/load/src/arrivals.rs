//! When the requests of an open loop are meant to be sent, and which of them are late.
//!
//! [`Pacer`] keeps a place in a computed sequence of arrivals and nothing else, however long the server
//! stalls. The waiting requests are the part of the sequence between the last request sent and `now`. The
//! obvious way, a timer that puts each request into a queue, would need memory for each request that a
//! stalled server keeps waiting.

use rand::distr::Distribution;
use rand_distr::Exp1;
use rand_pcg::Pcg64;
use weir_model::{Instant, Iops, Span};

use crate::Arrival;

/// A request counts as late if it is sent more than this after its intended time.
const LATE_AFTER: Span = Span::from_millis(1);

/// The length of a burst, and the time from the start of one to the start of the next, in nanoseconds.
const BURST: f64 = 50e6;
const BURST_CYCLE: f64 = 200e6;

/// The part of the arrivals that belongs to one connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Share {
    /// The number of the connection, from zero.
    pub index: u32,
    /// The number of connections.
    pub of: u32,
}

/// A sequence of instants, not decreasing.
#[derive(Clone, Debug)]
pub struct Arrivals {
    kind: Arrival,
    origin: Instant,
    /// Mean distance in nanoseconds between arrivals at this connection; of bursts, within a burst.
    period: f64,
    /// Distance in nanoseconds from the origin to the next arrival. Bursts leave out the time between bursts.
    ahead: f64,
    /// Where a constant sequence starts, as a part of the period, so that connections take turns.
    phase: f64,
    /// How many arrivals have been passed.
    passed: u64,
    rng: Pcg64,
    end: Instant,
    /// The most arrivals at or after an instant.
    budget: Option<(Instant, u64)>,
}

impl Arrivals {
    /// The share of one connection in arrivals of `rate` a second over all connections, from `origin` on. A
    /// constant sequence does not use `rng`.
    pub fn new(kind: Arrival, rate: Iops, share: Share, origin: Instant, rng: Pcg64) -> Self {
        let of = f64::from(share.of);
        let active = if kind == Arrival::Bursts { BURST / BURST_CYCLE } else { 1.0 };
        let (period, phase) = (active * of * 1e9 / rate.get(), f64::from(share.index) / of);
        let end = Instant::FAR_FUTURE;
        let mut arrivals =
            Self { kind, origin, period, ahead: 0.0, phase, passed: 0, rng, end, budget: None };
        arrivals.ahead = match kind {
            Arrival::Constant => phase * period,
            Arrival::Poisson | Arrival::Bursts => arrivals.distance(),
        };
        arrivals
    }

    /// The next instant; `None` if the sequence has ended.
    pub fn peek(&self) -> Option<Instant> {
        let next = self.next_instant();
        let spent = self.budget.is_some_and(|(from, left)| next >= from && left == 0);
        (next < self.end && !spent).then_some(next)
    }

    /// Moves on to the next instant.
    pub fn advance(&mut self) {
        let next = self.next_instant();
        if let Some((from, left)) = &mut self.budget
            && next >= *from
        {
            *left = left.saturating_sub(1);
        }
        self.passed += 1;
        self.ahead = match self.kind {
            Arrival::Constant => (to_f64(self.passed) + self.phase) * self.period,
            Arrival::Poisson | Arrival::Bursts => self.ahead + self.distance(),
        };
    }

    /// How many instants were passed by [`Arrivals::advance`].
    pub const fn passed(&self) -> u64 {
        self.passed
    }

    /// Ends the sequence before `end`.
    pub fn end_at(&mut self, end: Instant) {
        self.end = self.end.min(end);
    }

    /// Ends the sequence after `requests` instants at or after `from`.
    pub fn end_after(&mut self, from: Instant, requests: u64) {
        self.budget = Some((from, requests));
    }

    fn distance(&mut self) -> f64 {
        let unit: f64 = Exp1.sample(&mut self.rng);
        unit * self.period
    }

    fn next_instant(&self) -> Instant {
        let ahead = match self.kind {
            Arrival::Constant | Arrival::Poisson => self.ahead,
            Arrival::Bursts => (self.ahead / BURST).floor() * BURST_CYCLE + self.ahead % BURST,
        };
        self.origin + Span::from_secs_f64(ahead / 1e9)
    }
}

/// Hands out the arrivals of one connection once they are due.
#[derive(Clone, Debug)]
pub struct Pacer {
    /// The place of the next request to send.
    sent: Arrivals,
    /// The place up to which arrivals were counted as offered. It is behind `sent`, or ahead of it while
    /// requests wait.
    offered: Arrivals,
}

/// A request that is due.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Due {
    /// When the request was meant to be sent. Its latency counts from here.
    pub intended: Instant,
    /// How much later the request is sent, if it is late (more than 1 ms). The generator, the socket or the
    /// bound on outstanding requests held it up.
    pub late: Option<Span>,
}

impl Pacer {
    /// A pacer at the start of `arrivals`.
    pub fn new(arrivals: Arrivals) -> Self {
        Self { offered: arrivals.clone(), sent: arrivals }
    }

    /// The next request, if it is due. Call this only when the request can be sent.
    pub fn take(&mut self, now: Instant) -> Option<Due> {
        let intended = self.sent.peek().filter(|next| *next <= now)?;
        self.sent.advance();
        Some(Due { intended, late: late(intended, now) })
    }

    /// When the next request is due; `None` if there are no more requests.
    pub fn due_at(&self) -> Option<Instant> {
        self.sent.peek()
    }

    /// How many arrivals lie before `instant`, sent or not. From call to call `instant` must not go back, and
    /// it must not be before a request that was sent.
    pub fn offered_before(&mut self, instant: Instant) -> u64 {
        if self.offered.passed() < self.sent.passed() {
            self.offered = self.sent.clone();
        }
        while self.offered.peek().is_some_and(|next| next < instant) {
            self.offered.advance();
        }
        self.offered.passed()
    }

    /// How many requests were taken.
    pub const fn taken(&self) -> u64 {
        self.sent.passed()
    }

    /// Ends the arrivals before `end`.
    pub fn end_at(&mut self, end: Instant) {
        self.sent.end_at(end);
        self.offered.end_at(end);
    }
}

/// How late a request is that is sent now; `None` if that does not count as late.
pub(crate) fn late(intended: Instant, now: Instant) -> Option<Span> {
    let lateness = now.since(intended);
    (lateness > LATE_AFTER).then_some(lateness)
}

#[allow(clippy::cast_precision_loss)] // exact up to 2^53 requests
const fn to_f64(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests;
