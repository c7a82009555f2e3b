//! Checks what is issued and what waits: the depth, a volume's own bound, the bound and the share of the
//! background, and how long a request may wait.
//!
//! The rate limits of a volume are not recomputed exactly. A limit may hold a request back only until
//! everything that was issued before is paid for ([`debt`]). A rate gate that stays shut for longer starves
//! its volume, and that is a breach.

mod background;
mod debt;

use std::collections::{BTreeSet, VecDeque};
use std::num::NonZeroU32;

use weir_engine::{BackgroundKnobs, Covered, Grant, RateGate, VolumeConfig};
use weir_model::{Instant, Io, IoId, IoKind, QueueDepth, Span, TimeShare, VolumeId};

use super::ledger::Ledger;
use super::{Breach, Verified};
use background::Background;
use debt::Debt;

#[derive(Debug)]
pub(super) struct Gates {
    /// How many requests the law allows at the array; `None` if no law bounds the depth.
    depth: Option<QueueDepth>,
    /// How many requests of promised volumes the law allows at the array; `None`: any number.
    promised: Option<QueueDepth>,
    /// How many requests the law shares out among all volumes; `None` if it shares out none.
    total: Option<NonZeroU32>,
    /// Whether the law sets the deadlines that the checkers compute.
    knows_deadlines: bool,
    /// Whether a volume's bound has changed at this instant.
    bounds_changed: bool,
    in_flight: u32,
    background: Background,
    volumes: Vec<Volume>,
    /// By volume: when its oldest waiting request is due, or for a background volume, when it arrived. Apart
    /// from the rest, because it is read at every instant.
    due: Vec<Instant>,
}

#[derive(Debug)]
struct Volume {
    /// `None`: it is background.
    due_after: Option<Span>,
    /// Its configuration, with the operator's limits.
    config: VolumeConfig,
    /// The law's grant, if it gives one.
    grant: Option<Grant>,
    in_flight: u32,
    /// Apart from `data`, because flushes may overtake other requests.
    flushes: Lane,
    data: Lane,
    requests: Debt,
    bytes: Debt,
    /// Which of its requests its promise covers, and the requests at the array that it did not cover. Whether
    /// a request is covered decides how it is counted, so a tolerance would not do here: the gate is the
    /// scheduler's own.
    covered: RateGate,
    beyond: BTreeSet<IoId>,
}

/// Requests in the order of their arrival. Some of them may no longer wait; the first always does, or the
/// lane is empty.
#[derive(Default, Debug)]
struct Lane(VecDeque<Waiting>);

#[derive(Debug)]
struct Waiting {
    id: IoId,
    kind: IoKind,
    arrived: Instant,
}

impl Gates {
    pub(super) const fn new(
        depth: Option<QueueDepth>,
        total: Option<NonZeroU32>,
        share: TimeShare,
        knows_deadlines: bool,
    ) -> Self {
        Self {
            depth,
            promised: None,
            total,
            knows_deadlines,
            bounds_changed: false,
            in_flight: 0,
            background: Background::new(share),
            volumes: Vec::new(),
            due: Vec::new(),
        }
    }

    /// Adds the next volume, by number, with these limits.
    pub(super) fn add(&mut self, due_after: Option<Span>, config: &VolumeConfig) {
        let mut volume = Volume {
            due_after,
            config: config.clone(),
            grant: None,
            in_flight: 0,
            flushes: Lane::default(),
            data: Lane::default(),
            requests: Debt::default(),
            bytes: Debt::default(),
            covered: RateGate::covering(),
            beyond: BTreeSet::new(),
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

    /// The law's grant to a volume from now on.
    pub(super) fn set_grant(&mut self, now: Instant, volume: VolumeId, grant: Grant) {
        let volume = &mut self.volumes[volume.0 as usize];
        volume.grant = Some(grant);
        volume.refresh_rates(now);
        self.bounds_changed = true;
    }

    pub(super) fn on_removed(&mut self, volume: VolumeId) {
        self.volumes[volume.0 as usize].grant = None;
    }

    pub(super) fn set_due_after(&mut self, volume: VolumeId, due_after: Option<Span>) {
        let changed = &mut self.volumes[volume.0 as usize];
        self.background.subtract(changed.background());
        if changed.due_after.is_some() != due_after.is_some() {
            changed.beyond.clear();
        }
        changed.due_after = due_after;
        self.background.add(changed.background());
        self.refresh(volume);
    }

    /// The rates up to which a volume's requests are promised from now on.
    pub(super) fn set_covered(&mut self, now: Instant, volume: VolumeId, covered: Covered) {
        self.volumes[volume.0 as usize].covered.set_limits(now, covered.iops, covered.bandwidth);
    }

    /// What background volumes may do from now on.
    pub(super) fn set_background(&mut self, now: Instant, knobs: BackgroundKnobs) {
        self.background.allow(now, knobs);
    }

    /// Whether background volumes take turns by time, so that one may have the array for itself.
    pub(super) const fn set_quantum(&mut self, quantum: Option<Span>) {
        self.background.takes_turns = quantum.is_some();
    }

    pub(super) const fn set_depth(&mut self, depth: Option<QueueDepth>) {
        self.depth = depth;
    }

    pub(super) const fn set_promised(&mut self, most: Option<QueueDepth>) {
        self.promised = most;
    }

    /// Checks that the reported depth is the one in force.
    pub(super) fn check_depth(&self, reported: QueueDepth) -> Verified {
        if self.depth == Some(reported) {
            return Ok(());
        }
        Err(Box::new(Breach::DepthMisreported { reported, in_force: self.depth }))
    }

    pub(super) fn on_submit(&mut self, io: &Io) {
        let volume = &mut self.volumes[io.volume.0 as usize];
        let lane = if io.kind == IoKind::Flush { &mut volume.flushes } else { &mut volume.data };
        lane.0.push_back(Waiting { id: io.id, kind: io.kind, arrived: io.arrived });
        if lane.0.len() == 1 {
            self.refresh(io.volume);
        }
    }

    /// A request was issued. The ledger knows that already.
    pub(super) fn on_issue(&mut self, now: Instant, io: &Io, ledger: &Ledger) -> Verified {
        let volume = &self.volumes[io.volume.0 as usize];
        let is_beyond = volume.is_beyond(now, io.kind);
        let is_background = volume.due_after.is_none() || is_beyond;
        match is_background {
            _ if !self.knows_deadlines => {}
            true => self.check_background(now, io)?,
            false => self.check_promised(now, io)?,
        }
        let volume = &mut self.volumes[io.volume.0 as usize];
        if let Some(bound) = volume.bound().filter(|bound| volume.in_flight >= bound.get()) {
            let (in_flight, bound) = (volume.in_flight + 1, bound.get());
            return Err(Box::new(Breach::ConcurrencyExceeded { volume: io.volume, in_flight, bound }));
        }
        volume.in_flight += 1;
        self.in_flight += 1;
        if is_beyond {
            volume.beyond.insert(io.id);
        } else {
            volume.covered.charge(now, io.kind, io.length);
        }
        if is_background {
            self.background.on_issue(now);
        }
        volume.charge(now, io);
        volume.forget_gone(ledger);
        self.refresh(io.volume);
        Ok(())
    }

    /// The array has answered a request.
    pub(super) fn on_answer(&mut self, now: Instant, volume: VolumeId, id: IoId) {
        let volume = &mut self.volumes[volume.0 as usize];
        self.in_flight -= 1;
        volume.in_flight -= 1;
        let was_background = volume.due_after.is_none() || volume.beyond.remove(&id);
        self.background.subtract(u32::from(was_background));
        self.background.on_answer(now, id);
    }

    /// A request was aborted. The ledger knows that already.
    pub(super) fn on_abort(&mut self, volume: VolumeId, ledger: &Ledger) {
        self.volumes[volume.0 as usize].forget_gone(ledger);
        self.refresh(volume);
    }

    /// The engine has issued everything that it may issue now.
    pub(super) fn at_rest(&mut self, now: Instant) -> Verified {
        if std::mem::take(&mut self.bounds_changed) {
            self.check_total()?;
        }
        if !self.knows_deadlines {
            return Ok(());
        }
        let mut waits_for_its_turn = None;
        for (due, volume) in self.due.iter().zip(0..).map(|(due, volume)| (*due, VolumeId(volume))) {
            if due <= now && self.is_starved(now, volume) {
                if !self.may_wait_for_its_turn(now, volume) {
                    return Err(Box::new(Breach::Starved { volume, due }));
                }
                waits_for_its_turn = Some(Breach::Starved { volume, due });
            }
        }
        let is_left_idle = self.background.is_left_idle(now, waits_for_its_turn.is_some());
        waits_for_its_turn.filter(|_| is_left_idle).map_or(Ok(()), |starved| Err(Box::new(starved)))
    }

    /// Whether a request of the volume should have been issued. It must be due, or be background and have its
    /// turn, and no limit of the volume may hold it back.
    fn is_starved(&self, now: Instant, volume: VolumeId) -> bool {
        let volume = &self.volumes[volume.0 as usize];
        match volume.due_after.filter(|_| !volume.waits_beyond(now)) {
            Some(due_after) => !self.promised_are_full() && volume.could_go(now, due_after),
            None if self.is_shut(now) => self.background.may_pass(now) && volume.could_go(now, Span::ZERO),
            None => volume.could_go(now, Span::ZERO),
        }
    }

    /// Whether the volume is background, and no gate holds it back, but another one's turn may.
    fn may_wait_for_its_turn(&self, now: Instant, volume: VolumeId) -> bool {
        let volume = &self.volumes[volume.0 as usize];
        let is_background = volume.due_after.is_none() || volume.waits_beyond(now);
        is_background && self.background.takes_turns && !self.is_shut(now)
    }

    /// Whether the depth or their bound holds background requests back.
    fn is_shut(&self, now: Instant) -> bool {
        self.is_full() || self.background.is_full(now)
    }

    /// Whether as many requests of promised volumes are at the array as may be.
    fn promised_are_full(&self) -> bool {
        let at_array = self.in_flight - self.background.in_flight();
        self.promised.is_some_and(|most| at_array >= most.get())
    }

    fn is_full(&self) -> bool {
        self.depth.is_some_and(|depth| self.in_flight >= depth.get())
    }

    /// Checks that a promised request keeps to the bound of all of them, and passes the depth only if its
    /// volume is due.
    fn check_promised(&self, now: Instant, io: &Io) -> Verified {
        if let Some(most) = self.promised.filter(|_| self.promised_are_full()) {
            return Err(Box::new(Breach::PromisedExceeded { volume: io.volume, most }));
        }
        let due = self.due[io.volume.0 as usize];
        match self.depth.filter(|_| self.is_full() && due > now) {
            Some(depth) => {
                let in_flight = self.in_flight;
                Err(Box::new(Breach::DepthExceeded { volume: io.volume, in_flight, depth, due }))
            }
            None => Ok(()),
        }
    }

    /// Checks that a background request passes the depth and the background's bound only within the
    /// background share, and never overtakes a promised request that could go.
    fn check_background(&mut self, now: Instant, io: &Io) -> Verified {
        if self.is_shut(now) {
            if !self.background.may_pass(now) {
                let in_flight = self.in_flight;
                return Err(Box::new(Breach::ShareExceeded { volume: io.volume, in_flight }));
            }
            self.background.on_passed(now, io.id);
            return Ok(());
        }
        let could_go = |volume: &Volume| {
            volume.due_after.is_some() && !volume.waits_beyond(now) && volume.could_go(now, Span::ZERO)
        };
        let is_open = !self.promised_are_full();
        match (0..).zip(&self.volumes).find(|(_, volume)| is_open && could_go(volume)) {
            Some((promised, _)) => {
                Err(Box::new(Breach::PromisePassed { volume: io.volume, promised: VolumeId(promised) }))
            }
            None => Ok(()),
        }
    }

    /// Checks that the bounds that the law has given are within its total, or one request for each volume.
    fn check_total(&self) -> Verified {
        let bounds =
            self.volumes.iter().filter_map(|volume| volume.grant).map(|grant| grant.concurrency.get());
        // A grant that only lowers a rate has the largest bound that there is.
        let add = |(sum, count): (u32, u32), bound| (sum.saturating_add(bound), count + 1);
        let (sum, count) = bounds.fold((0, 0), add);
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

    /// How many of its requests at the array are background requests.
    fn background(&self) -> u32 {
        if self.due_after.is_none() { self.in_flight } else { count(&self.beyond) }
    }

    /// Whether a request of this kind is beyond what the volume's promise covers.
    fn is_beyond(&self, now: Instant, kind: IoKind) -> bool {
        self.due_after.is_some() && self.covered.opens_at(kind) > now
    }

    /// Whether a request that may go next is.
    fn waits_beyond(&self, now: Instant) -> bool {
        let firsts = [&self.flushes, &self.data].into_iter().filter_map(|lane| lane.0.front());
        firsts.into_iter().any(|first| self.is_beyond(now, first.kind))
    }

    fn refresh_rates(&mut self, now: Instant) {
        let granted = self.grant.and_then(|grant| grant.max_iops).map(weir_model::Iops::from);
        let iops = self.config.max_iops.into_iter().chain(granted).map(weir_model::Iops::get);
        self.requests.set_rate(now, iops.reduce(f64::min));
        let granted = self.grant.and_then(|grant| grant.max_bandwidth);
        let bandwidth = self.config.max_bandwidth.into_iter().chain(granted).min();
        self.bytes.set_rate(now, bandwidth.map(bytes_a_second));
    }

    fn charge(&mut self, now: Instant, io: &Io) {
        self.requests.charge(now, 1);
        let counts_by_length = [IoKind::Read, IoKind::Write, IoKind::WriteZeroes, IoKind::Cache];
        if counts_by_length.contains(&io.kind) {
            self.bytes.charge(now, io.length);
        }
    }

    fn forget_gone(&mut self, ledger: &Ledger) {
        self.flushes.forget_gone(ledger);
        self.data.forget_gone(ledger);
    }

    /// When its oldest waiting request is due, or for a background volume, when it arrived.
    fn due(&self) -> Instant {
        let oldest = [&self.flushes, &self.data].into_iter().filter_map(Lane::oldest).min();
        oldest.map_or(Instant::FAR_FUTURE, |arrived| arrived + self.due_after.unwrap_or(Span::ZERO))
    }

    /// Whether a request has waited for `at_least`, and no limit of the volume holds it back.
    fn could_go(&self, now: Instant, at_least: Span) -> bool {
        let has_waited = |lane: &Lane| lane.oldest().is_some_and(|arrived| arrived + at_least <= now);
        let is_held = self.bound().is_some_and(|bound| self.in_flight >= bound.get());
        let (requests, bytes) = (self.requests.is_paid(now), self.bytes.is_paid(now));
        !is_held && requests && (has_waited(&self.flushes) || has_waited(&self.data) && bytes)
    }
}

impl Lane {
    fn oldest(&self) -> Option<Instant> {
        self.0.front().map(|waiting| waiting.arrived)
    }

    fn forget_gone(&mut self, ledger: &Ledger) {
        while self.0.front().is_some_and(|waiting| !ledger.is_queued(waiting.id)) {
            self.0.pop_front();
        }
    }
}

fn count(requests: &BTreeSet<IoId>) -> u32 {
    u32::try_from(requests.len()).expect("fewer than are at the array")
}

#[allow(clippy::cast_precision_loss)] // a bound may be off by a part in 2^53
const fn bytes_a_second(limit: weir_model::Bandwidth) -> f64 {
    limit.get() as f64
}

#[cfg(test)]
mod tests;
