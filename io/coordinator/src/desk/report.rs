//! What `/metrics` and `weir status` tell: counters, nodes, and the transfers that wait or run.
//!
//! All of it is in the desk's memory. The lists that people ask for (`lists.rs`) come from the catalogue; a
//! report is asked for every few seconds, and must not read a database while clients wait.

use weir_model::{Bandwidth, Direction, Instant};
use weir_status::{
    DirectionStatus, EndedTransfers, NodeStatus, PeakStatus, TransferKind, TransferState, TransferStatus,
    TransfersStatus,
};
use weir_transfer::{DeviceBytes, NodeIndex};

use super::{Desk, Live, passed_ms};
use crate::catalogue::State;
use crate::proto::Kind;

/// The most transfers in a report.
const MOST_TOLD: usize = 1_000;

/// A transfer that has run for less is not below its rate, in milliseconds: it has hardly begun.
const BEGINS_MS: u64 = 3_000;

/// What a node has moved since the start, in bytes.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct MovedBytes {
    read: u64,
    written: u64,
}

impl MovedBytes {
    /// So many bytes more.
    pub(super) const fn add(&mut self, direction: Direction, bytes: u64) {
        let moved = match direction {
            Direction::Read => &mut self.read,
            Direction::Write => &mut self.written,
        };
        *moved = moved.saturating_add(bytes);
    }

    const fn get(self, direction: Direction) -> u64 {
        match direction {
            Direction::Read => self.read,
            Direction::Write => self.written,
        }
    }

    /// The same in both directions.
    pub(super) const fn both(self) -> DeviceBytes {
        DeviceBytes { read: self.read, written: self.written }
    }
}

/// Counts a transfer that ended so.
pub(super) const fn count(ended: &mut EndedTransfers, state: State) {
    match state {
        State::Done => ended.done += 1,
        State::Failed => ended.failed += 1,
        State::Cancelled => ended.cancelled += 1,
        State::Interrupted => ended.interrupted += 1,
        State::Waiting | State::Active => {}
    }
}

impl Live {
    /// For how long it has run, in milliseconds.
    fn ran_ms(&self, now: Instant) -> u64 {
        let runs = if self.node.is_some() { passed_ms(now, self.since) } else { 0 };
        self.progress.moving + runs
    }

    /// For how long it has waited since its client asked, in milliseconds.
    fn waited_ms(&self, now: Instant) -> u64 {
        let waits = if self.node.is_none() { passed_ms(now, self.since) } else { 0 };
        self.waited + waits
    }

    /// The average rate that it had while it ran, in bytes a second; `None`: it has not run yet.
    fn had(&self, now: Instant) -> Option<u64> {
        let ran = self.ran_ms(now);
        let had = (u128::from(self.progress.moved) * 1_000).checked_div(u128::from(ran))?;
        Some(u64::try_from(had).unwrap_or(u64::MAX))
    }

    /// Whether it has run for a while, with less than the rate that it asked for.
    pub(super) fn is_below(&self, now: Instant) -> bool {
        let ran = self.ran_ms(now);
        let (moved, asked) = (u128::from(self.progress.moved), u128::from(self.new.rate));
        ran >= BEGINS_MS && moved * 1_000 < asked * u128::from(ran)
    }
}

impl Desk {
    /// Counts a transfer that is done.
    pub(super) fn count_done(&mut self, is_below: bool) {
        self.count(State::Done);
        self.ended.below += u64::from(is_below);
    }

    /// All that a coordinator reports about itself.
    pub(crate) fn status(&self, now: Instant) -> TransfersStatus {
        let mut nodes: Vec<_> =
            (0..self.nodes.len()).map(|node| self.node_status(now, NodeIndex(node))).collect();
        nodes.sort_by(|one, other| one.name.cmp(&other.name));
        let running = || self.live.iter().filter(|(_, live)| live.node.is_some());
        let waiting = || self.live.iter().filter(|(_, live)| live.node.is_none());
        let told = running().chain(waiting()).take(MOST_TOLD);
        let (runs, waits) = (running().count(), waiting().count());
        TransfersStatus {
            policy: self.config.policy.name().to_string(),
            waiting: waits as u64,
            running: runs as u64,
            running_below: running().filter(|(_, live)| live.is_below(now)).count() as u64,
            ended: self.ended,
            nodes,
            transfers: told.map(|(id, live)| self.transfer_status(now, *id, live)).collect(),
            left_out: (runs + waits).saturating_sub(MOST_TOLD) as u64,
        }
    }

    fn node_status(&self, now: Instant, node: NodeIndex) -> NodeStatus {
        let (config, known) = (&self.config.nodes[node.0], &self.nodes[node.0]);
        let (read, write) = known.measured.map_or((None, None), |(read, write)| (Some(read), Some(write)));
        let told = |direction, given: Option<Bandwidth>, measured: Option<Bandwidth>| {
            let (view, rate) = self.scheduler.load(node, direction);
            DirectionStatus {
                active: view.active,
                rate_bytes_per_s: rate,
                average_bytes_per_s: view.average,
                reserved_bytes_per_s: view.reserved,
                peak: given
                    .or(measured)
                    .map(|peak| PeakStatus { bytes_per_s: peak.get(), is_measured: given.is_none() }),
                moved_bytes: known.moved.get(direction),
                external_bytes_per_s: view.external,
            }
        };
        NodeStatus {
            name: config.name.clone(),
            url: config.url.clone(),
            down: known.down.clone(),
            probed_age_s: known.probed.map(|probed| now.saturating_since(probed).as_secs_f64()),
            sensor: known.sensor.as_ref().map(|sensor| sensor.status(now)),
            reads: told(Direction::Read, config.peak_read, read),
            writes: told(Direction::Write, config.peak_write, write),
            class: self.config.classes[config.class].clone(),
            cost: config.cost,
            domain: config.domain.clone(),
            capacity_bytes: config.capacity,
            stored_bytes: known.stored,
            objects: known.objects,
        }
    }

    fn transfer_status(&self, now: Instant, id: u64, live: &Live) -> TransferStatus {
        let runs = live.node.is_some();
        let had = live.had(now);
        let left = live.new.bytes.map(|bytes| bytes.saturating_sub(live.progress.moved));
        TransferStatus {
            transfer: id,
            kind: kind(live.kind),
            object: live.new.name.clone(),
            state: if runs { TransferState::Running } else { TransferState::Waiting },
            why: (!runs).then(|| self.why_it_waits(id)),
            node: live.node.map(|node| self.config.nodes[node.0].name.clone()),
            bytes: live.new.bytes,
            moved_bytes: live.progress.moved,
            had_bytes_per_s: had,
            asked_bytes_per_s: live.new.rate,
            held_to_bytes_per_s: live.pace.filter(|_| runs).map(Bandwidth::get),
            is_below: runs && live.is_below(now),
            waited_s: seconds(live.waited_ms(now)),
            left_s: left.zip(had.filter(|had| runs && *had > 0)).map(|(left, had)| takes(left, had)),
        }
    }
}

/// The protocol has an enum of its own: it may change without changing what scripts read.
const fn kind(kind: Kind) -> TransferKind {
    match kind {
        Kind::Put => TransferKind::Put,
        Kind::Get | Kind::Unspecified => TransferKind::Get, // the second is never admitted
        Kind::Check => TransferKind::Verify,
        Kind::Import => TransferKind::Import,
        Kind::Replicate => TransferKind::Copy,
    }
}

#[allow(clippy::cast_precision_loss)] // a length of time for people
fn seconds(ms: u64) -> f64 {
    ms as f64 / 1e3
}

#[allow(clippy::cast_precision_loss)] // an estimate
fn takes(bytes: u64, bytes_per_second: u64) -> f64 {
    bytes as f64 / bytes_per_second as f64
}

#[cfg(test)]
mod tests;
