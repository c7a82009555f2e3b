//! A gateway of the simulated cluster: an engine that is nothing but the terms in force.

use weir_control::{Grant, PortObservation};
use weir_leases::{Grants, Hello, Leaseholder, Report, Terms, UNTOLD};
use weir_model::{Instant, Span};

use super::{INTERVAL, STEP};

#[derive(Debug)]
pub struct Gateway {
    volumes: Vec<String>,
    /// Which run of which gateway.
    run: u64,
    holder: Leaseholder,
    /// What the engine was told last.
    terms: Option<Terms>,
    /// How far its clock is ahead.
    offset: Span,
    /// Whether it has a stream, as far as it knows.
    connected: bool,
    /// When it tries to connect next.
    retry_at: Instant,
    /// Until when it is not running.
    down_until: Instant,
    report_at: Instant,
    reports: u64,
    /// How many requests its clients would have at the device, of each volume.
    pub demand: u32,
    /// How long it waits between attempts.
    pub backoff: Span,
}

impl Gateway {
    pub fn new(n: usize, volumes: Vec<String>) -> Self {
        let n = n as u64;
        Self {
            volumes,
            run: n,
            holder: Leaseholder::new(n),
            terms: None,
            offset: Span::from_nanos(777_777_777_777 * n),
            connected: false,
            retry_at: Instant::ORIGIN,
            down_until: Instant::ORIGIN,
            report_at: Instant::ORIGIN + Span::from_millis(17 * n),
            reports: 0,
            demand: 50,
            backoff: STEP,
        }
    }

    pub fn stop(&mut self, until: Instant) {
        self.down_until = until;
        self.run += 1_000;
        (self.holder, self.terms, self.connected) = (Leaseholder::new(self.run), None, false);
    }

    pub fn sleep(&mut self, until: Instant) {
        self.down_until = until;
    }

    pub fn is_up(&self, now: Instant) -> bool {
        now >= self.down_until
    }

    /// What its engine bounds a volume to; nothing while it is down.
    pub fn grant(&self, now: Instant, volume: &str) -> Option<Grant> {
        let grant = match &self.terms {
            Some(terms) => terms.in_force(now + self.offset).get(volume).copied().unwrap_or(UNTOLD),
            None => UNTOLD,
        };
        (self.is_up(now) && self.volumes.iter().any(|served| served == volume)).then_some(grant)
    }

    pub fn poll_hello(&mut self, now: Instant) -> Option<Hello> {
        if self.connected || !self.is_up(now) || now < self.retry_at {
            return None;
        }
        (self.connected, self.reports) = (true, 0);
        Some(self.holder.hello(now + self.offset, self.volumes.iter().cloned()))
    }

    pub fn handle_lost(&mut self, now: Instant) {
        (self.connected, self.retry_at) = (false, now + self.backoff);
    }

    /// The number to acknowledge.
    pub fn handle_grants(&mut self, now: Instant, grants: &Grants) -> Option<u64> {
        let terms = self.holder.handle_grants(now + self.offset, grants);
        let number = self.holder.handle_applied(&terms);
        self.terms = Some(terms);
        number
    }

    pub fn run(&mut self, now: Instant) {
        if !self.is_up(now) {
            return;
        }
        if let Some(terms) = self.holder.handle_timeout(now + self.offset) {
            self.terms = Some(terms);
        }
    }

    pub fn poll_report(&mut self, now: Instant) -> Option<Report> {
        if now < self.report_at || !self.is_up(now) {
            return None;
        }
        self.report_at = self.report_at.max(now - INTERVAL) + INTERVAL;
        self.reports += 1;
        self.holder.handle_reported(now + self.offset, self.reports);
        let seen = |volume: &String| {
            let bound = self.grant(now, volume).unwrap_or(UNTOLD).concurrency;
            let seen = PortObservation {
                over: INTERVAL,
                answered: u64::from(self.demand),
                at_device: f64::from(self.demand.min(bound.get())),
                outstanding: f64::from(self.demand),
                bound: Some(bound),
                ..PortObservation::default()
            };
            (volume.clone(), seen)
        };
        let volumes = self.volumes.iter().map(seen).collect();
        Some(Report { number: self.reports, volumes })
    }
}
