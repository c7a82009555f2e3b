//! What is issued and what waits: the depth, a volume's own bound, and the longest that anybody may wait.
//!
//! The rate limits of a volume are not recomputed here. A limit may hold a request back only until everything that
//! was issued before is paid for ([`debt`]); a gate that is shut for longer starves its volume like any other.

mod debt;

use std::collections::VecDeque;
use std::num::NonZeroU32;

use weir_engine::VolumeConfig;
use weir_model::{Instant, Io, IoId, IoKind, QueueDepth, Span, VolumeId};

use super::ledger::Ledger;
use super::{Breach, Verified};
use debt::Debt;

#[derive(Debug)]
pub(super) struct Gates {
    /// What the law allows at the array; `None` without a law.
    depth: Option<QueueDepth>,
    in_flight: u32,
    volumes: Vec<Volume>,
    /// By volume: when its oldest waiting request is due. Apart from the rest, as it is read at every instant.
    due: Vec<Instant>,
}

#[derive(Debug)]
struct Volume {
    due_after: Span,
    concurrency: Option<NonZeroU32>,
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
    pub(super) const fn new(depth: Option<QueueDepth>) -> Self {
        Self { depth, in_flight: 0, volumes: Vec::new(), due: Vec::new() }
    }

    /// The next volume, by number, is held to these limits.
    pub(super) fn add(&mut self, due_after: Span, config: &VolumeConfig) {
        let mut volume = Volume {
            due_after,
            concurrency: None,
            in_flight: 0,
            flushes: Lane::default(),
            data: Lane::default(),
            requests: Debt::default(),
            bytes: Debt::default(),
        };
        volume.set_limits(Instant::ORIGIN, config);
        self.volumes.push(volume);
        self.due.push(Instant::FAR_FUTURE);
    }

    pub(super) fn set_limits(&mut self, now: Instant, volume: VolumeId, config: &VolumeConfig) {
        self.volumes[volume.0 as usize].set_limits(now, config);
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
        if let Some(bound) = volume.concurrency.filter(|bound| volume.in_flight >= bound.get()) {
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
    pub(super) fn at_rest(&self, now: Instant) -> Verified {
        for (due, volume) in self.due.iter().zip(0..) {
            if *due <= now && self.volumes[volume as usize].is_starved(now) {
                return Err(Box::new(Breach::Starved { volume: VolumeId(volume), due: *due }));
            }
        }
        Ok(())
    }

    fn refresh(&mut self, volume: VolumeId) {
        self.due[volume.0 as usize] = self.volumes[volume.0 as usize].due();
    }
}

impl Volume {
    fn set_limits(&mut self, now: Instant, config: &VolumeConfig) {
        self.concurrency = config.concurrency;
        self.requests.set_rate(now, config.max_iops.map(|limit| limit.get()));
        self.bytes.set_rate(now, config.max_bandwidth.map(bytes_a_second));
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
        let is_held = self.concurrency.is_some_and(|bound| self.in_flight >= bound.get());
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
