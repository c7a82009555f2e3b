//! What is issued and what waits: the depth, a volume's own bound, and the longest that anybody may wait.
//!
//! The rate limits of a volume are not recomputed here. A limit may hold a request back only until everything that
//! was issued before is paid for ([`debt`]); a gate that is shut for longer starves its volume like any other.

mod debt;

use std::collections::VecDeque;
use std::num::NonZeroU32;

use weir_engine::{Grant, VolumeConfig};
use weir_model::{Instant, Io, IoId, IoKind, QueueDepth, Span, VolumeId};

use super::ledger::Ledger;
use super::{Breach, Verified};
use debt::Debt;

#[derive(Debug)]
pub(super) struct Gates {
    /// What the law allows at the array; `None` without a law.
    depth: Option<QueueDepth>,
    /// What the law shares out among all volumes; `None` if it does not.
    total: Option<NonZeroU32>,
    /// A volume's bound has changed at this instant.
    bounds_changed: bool,
    in_flight: u32,
    volumes: Vec<Volume>,
    /// By volume: when its oldest waiting request is due. Apart from the rest, as it is read at every instant.
    due: Vec<Instant>,
}

#[derive(Debug)]
struct Volume {
    due_after: Span,
    /// What its operator lets it do.
    config: VolumeConfig,
    /// What the law lets it do, if it says.
    grant: Option<Grant>,
    in_flight: u32,
    /// Flushes pass the rate limits.
    flushes: Lane,
    data: Lane,
    requests: Debt,
    bytes: Debt,
}

/// Requests in the order of their arrival, and among them some that do not wait any more.
#[derive(Default, Debug)]
struct Lane(VecDeque<(IoId, Instant)>);

impl Gates {
    pub(super) const fn new(depth: Option<QueueDepth>, total: Option<NonZeroU32>) -> Self {
        Self { depth, total, bounds_changed: false, in_flight: 0, volumes: Vec::new(), due: Vec::new() }
    }

    /// The next volume, by number, is held to these limits.
    pub(super) fn add(&mut self, due_after: Span, config: &VolumeConfig) {
        let mut volume = Volume {
            due_after,
            config: config.clone(),
            grant: None,
            in_flight: 0,
            flushes: Lane::default(),
            data: Lane::default(),
            requests: Debt::default(),
            bytes: Debt::default(),
        };
        volume.refresh_rates(Instant::ORIGIN);
        self.volumes.push(volume);
        self.due.push(Instant::FAR_FUTURE);
    }

    pub(super) fn set_limits(&mut self, now: Instant, volume: VolumeId, config: &VolumeConfig) {
        let volume = &mut self.volumes[volume.0 as usize];
        volume.config = config.clone();
        volume.refresh_rates(now);
    }

    /// The law lets a volume do this from now on.
    pub(super) fn set_grant(&mut self, now: Instant, volume: VolumeId, grant: Grant) {
        let volume = &mut self.volumes[volume.0 as usize];
        volume.grant = Some(grant);
        volume.refresh_rates(now);
        self.bounds_changed = true;
    }

    pub(super) fn on_removed(&mut self, volume: VolumeId) {
        self.volumes[volume.0 as usize].grant = None;
    }

    pub(super) fn set_due_after(&mut self, volume: VolumeId, due_after: Span) {
        self.volumes[volume.0 as usize].due_after = due_after;
        self.refresh(volume);
    }

    pub(super) const fn set_depth(&mut self, depth: Option<QueueDepth>) {
        self.depth = depth;
    }

    /// The depth that is reported is the one in force.
    pub(super) fn check_depth(&self, reported: QueueDepth) -> Verified {
        if self.depth == Some(reported) {
            return Ok(());
        }
        Err(Box::new(Breach::DepthMisreported { reported, in_force: self.depth }))
    }

    pub(super) fn on_submit(&mut self, io: &Io) {
        let volume = &mut self.volumes[io.volume.0 as usize];
        let lane = if io.kind == IoKind::Flush { &mut volume.flushes } else { &mut volume.data };
        lane.0.push_back((io.id, io.arrived));
        if lane.0.len() == 1 {
            self.refresh(io.volume);
        }
    }

    /// A request was issued, which the ledger knows already.
    pub(super) fn on_issue(&mut self, now: Instant, io: &Io, ledger: &Ledger) -> Verified {
        let due = self.due[io.volume.0 as usize];
        let volume = &mut self.volumes[io.volume.0 as usize];
        if let Some(depth) = self.depth.filter(|depth| self.in_flight >= depth.get() && due > now) {
            let in_flight = self.in_flight;
            return Err(Box::new(Breach::DepthExceeded { volume: io.volume, in_flight, depth, due }));
        }
        if let Some(bound) = volume.bound().filter(|bound| volume.in_flight >= bound.get()) {
            let (in_flight, bound) = (volume.in_flight + 1, bound.get());
            return Err(Box::new(Breach::ConcurrencyExceeded { volume: io.volume, in_flight, bound }));
        }
        volume.in_flight += 1;
        self.in_flight += 1;
        volume.charge(now, io);
        volume.forget_gone(ledger);
        self.refresh(io.volume);
        Ok(())
    }

    pub(super) fn on_answer(&mut self, volume: VolumeId) {
        self.in_flight -= 1;
        self.volumes[volume.0 as usize].in_flight -= 1;
    }

    /// A request was aborted, which the ledger knows already.
    pub(super) fn on_abort(&mut self, volume: VolumeId, ledger: &Ledger) {
        self.volumes[volume.0 as usize].forget_gone(ledger);
        self.refresh(volume);
    }

    /// Everything was issued that may be.
    pub(super) fn at_rest(&mut self, now: Instant) -> Verified {
        if std::mem::take(&mut self.bounds_changed) {
            self.check_total()?;
        }
        for (due, volume) in self.due.iter().zip(0..) {
            if *due <= now && self.volumes[volume as usize].is_starved(now) {
                return Err(Box::new(Breach::Starved { volume: VolumeId(volume), due: *due }));
            }
        }
        Ok(())
    }

    /// The bounds that the law has given are within its total, or one for each volume.
    fn check_total(&self) -> Verified {
        let bounds =
            self.volumes.iter().filter_map(|volume| volume.grant).map(|grant| grant.concurrency.get());
        let (sum, count) = bounds.fold((0, 0), |(sum, count), bound| (sum + bound, count + 1));
        match self.total {
            Some(total) if sum > total.get().max(count) => {
                Err(Box::new(Breach::TotalExceeded { bounds: sum, total: total.get() }))
            }
            _ => Ok(()),
        }
    }

    fn refresh(&mut self, volume: VolumeId) {
        self.due[volume.0 as usize] = self.volumes[volume.0 as usize].due();
    }
}

impl Volume {
    /// The most requests that it may have at the array.
    fn bound(&self) -> Option<NonZeroU32> {
        let granted = self.grant.map(|grant| grant.concurrency);
        self.config.concurrency.into_iter().chain(granted).min()
    }

    fn refresh_rates(&mut self, now: Instant) {
        let granted = self.grant.and_then(|grant| grant.max_iops);
        let iops = self.config.max_iops.into_iter().chain(granted).map(weir_model::Iops::get);
        self.requests.set_rate(now, iops.reduce(f64::min));
        let granted = self.grant.and_then(|grant| grant.max_bandwidth);
        let bandwidth = self.config.max_bandwidth.into_iter().chain(granted).min();
        self.bytes.set_rate(now, bandwidth.map(bytes_a_second));
    }

    fn charge(&mut self, now: Instant, io: &Io) {
        if io.kind != IoKind::Flush {
            self.requests.charge(now, 1);
        }
        if io.kind.direction().is_some() {
            self.bytes.charge(now, io.length);
        }
    }

    fn forget_gone(&mut self, ledger: &Ledger) {
        self.flushes.forget_gone(ledger);
        self.data.forget_gone(ledger);
    }

    /// When its oldest waiting request is due.
    fn due(&self) -> Instant {
        let oldest = [&self.flushes, &self.data].into_iter().filter_map(Lane::oldest).min();
        oldest.map_or(Instant::FAR_FUTURE, |arrived| arrived + self.due_after)
    }

    /// Whether something is due that nothing of its own holds back.
    fn is_starved(&self, now: Instant) -> bool {
        let is_due = |lane: &Lane| lane.oldest().is_some_and(|arrived| arrived + self.due_after <= now);
        let is_held = self.bound().is_some_and(|bound| self.in_flight >= bound.get());
        let is_gated = !(self.requests.is_paid(now) && self.bytes.is_paid(now));
        !is_held && (is_due(&self.flushes) || is_due(&self.data) && !is_gated)
    }
}

impl Lane {
    fn oldest(&self) -> Option<Instant> {
        self.0.front().map(|(_, arrived)| *arrived)
    }

    fn forget_gone(&mut self, ledger: &Ledger) {
        while self.0.front().is_some_and(|(id, _)| !ledger.is_queued(*id)) {
            self.0.pop_front();
        }
    }
}

#[allow(clippy::cast_precision_loss)] // a bound may be off by a part in 2^53
const fn bytes_a_second(limit: weir_model::Bandwidth) -> f64 {
    limit.get() as f64
}

#[cfg(test)]
mod tests;
