//! The loop of the one-sided PID. It gives the law how long reads wait, and holds the replies to heavy
//! writers for as long as the law decides.
//!
//! **A reply is held after its request is complete.** The place at the device is free by then, so nobody else
//! waits for a reply that is held. Only a client that waits for its replies is slowed down: it sends its next
//! write later.
//!
//! **Only writes and zeroes are held**, the kinds whose bytes count towards the limit. A heavy writer that
//! also reads is a reader like any other. Errors are never held.
//!
//! **The wait of a read** is its time at the device. This loop closes no gate, so a read waits before the
//! device only for its own volume's caps, and no delay of others would shorten that.
//!
//! **In order.** A reply that is held is released after those that were held before it, as in a queue of
//! packets. So a list does where a heap would cost more, and no reply is held for longer than the longest
//! delay that the law may set.
//!
//! **A heavy writer** is a volume that wrote more than the limit in the last second. While there is a delay,
//! it stays one for as long as it writes at all, or waits for a reply that is held. Otherwise the delay would
//! bring its rate below the limit, the delay would end, and its rate would be above the limit again a second
//! later.

use std::collections::{BTreeSet, VecDeque};

use weir_control::{Latency, Law, OneSidedPid, ReadWait, WaitObservation};
use weir_model::{Instant, IoId, IoKind, Span, VolumeId};

use super::Pool;
use crate::config::PidConfig;
use crate::event::Event;
use crate::requests::{RequestTable, Stage, Stamped};
use crate::sensors::LatencySensor;
use crate::tick::Tick;
use crate::volume::Volume;

/// How often the loop decides which volumes are heavy writers. As in the paper (§2.3.1).
const CENSUS_PERIOD: Span = Span::from_secs(1);

/// What the loop of a pool measures and decides.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Throttle {
    /// The wait that reads must not exceed.
    pub threshold: Span,
    /// How long reads wait at the device, smoothed.
    pub wait: Span,
    /// For how long replies to heavy writers are held.
    pub delay: Span,
    /// Whether that is as long as it may be.
    pub is_at_ceiling: bool,
}

/// The loop.
#[derive(Debug)]
pub(crate) struct DelayLoop {
    config: PidConfig,
    law: OneSidedPid,
    tick: Tick,
    census: Tick,
    counted_since: Instant,
    /// How long reads took.
    waits: LatencySensor,
    /// The replies that are held, in the order in which they are released, and until when.
    held: VecDeque<(Instant, IoId)>,
}

impl DelayLoop {
    /// # Panics
    /// If the law cannot work with that configuration.
    pub(super) fn new(now: Instant, config: PidConfig) -> Self {
        Self {
            config,
            law: OneSidedPid::new(config.law).expect("the law can work with its configuration"),
            tick: Tick::new(now, config.law.period),
            census: Tick::new(now, CENSUS_PERIOD),
            counted_since: now,
            waits: LatencySensor::default(),
            held: VecDeque::new(),
        }
    }

    /// Takes another threshold and limit, and keeps the delay. False: the law itself would change.
    pub(crate) fn adjust(&mut self, config: PidConfig) -> bool {
        let is_the_same_law = config.law == self.config.law;
        if is_the_same_law {
            self.config = config;
        }
        is_the_same_law
    }

    pub(super) fn due(&self) -> Instant {
        let released = self.held.front().map_or(Instant::FAR_FUTURE, |(until, _)| *until);
        self.tick.due().min(self.census.due()).min(released)
    }

    pub(crate) fn at_a_glance(&self) -> Throttle {
        Throttle {
            threshold: self.config.threshold,
            wait: self.law.smoothed_wait(),
            delay: self.law.delay().span(),
            is_at_ceiling: self.law.is_at_ceiling(),
        }
    }

    /// A request of `volume` is complete, with success. Until when its reply is held; `None`: it is not.
    pub(crate) fn on_complete(
        &mut self,
        now: Instant,
        id: IoId,
        request: &Stamped,
        issued: Instant,
        volume: &mut Volume,
    ) -> Option<Instant> {
        match request.kind {
            IoKind::Read => {
                let (total, at_device) = (now.since(request.arrived), now.since(issued));
                self.waits.record(Latency { total, at_device });
                None
            }
            IoKind::Write | IoKind::WriteZeroes => {
                volume.writing.on_answer(request.length);
                let delay = self.law.delay();
                if !volume.writing.is_heavy() || delay.is_zero() {
                    return None;
                }
                let last = self.held.back().map_or(now, |(until, _)| *until);
                let until = last.max(now + delay.span());
                self.held.push_back((until, id));
                Some(until)
            }
            _ => None,
        }
    }

    /// Every reply that is held: another law takes over.
    pub(crate) fn release_all(&mut self) -> impl Iterator<Item = IoId> {
        self.held.drain(..).map(|(_, id)| id)
    }

    /// Releases the replies whose time is over. Ends a period that is over: reads the sensors, and turns the
    /// knob.
    pub(super) fn handle_timeout(&mut self, now: Instant, pool: &mut Pool<'_>) {
        while let Some((until, id)) = self.held.front().copied()
            && until <= now
        {
            self.held.pop_front();
            pool.released.push_back(id);
        }
        if self.census.serve(now) {
            let over = now.since(std::mem::replace(&mut self.counted_since, now));
            let most = u128::from(self.config.write_limit.get()) * u128::from(over.as_nanos());
            let is_delayed = !self.law.delay().is_zero();
            let waiting = self.waiting(pool.requests);
            for (id, volume) in pool.volumes.iter_mut() {
                volume.writing.judge(most, is_delayed, waiting.contains(&id));
            }
        }
        if self.tick.serve(now) {
            let wait = match self.waits.take_mean() {
                Some(mean) => ReadWait::Finished(mean.at_device),
                None => oldest_read(pool.requests)
                    .map_or(ReadWait::NoReads, |issued| ReadWait::Outstanding(now.since(issued))),
            };
            let reaches = pool.volumes.iter().any(|(_, volume)| volume.writing.is_heavy());
            let seen = WaitObservation { wait, threshold: self.config.threshold, reaches };
            let delay = self.law.step(now, &seen);
            let wait = self.law.smoothed_wait();
            pool.events.push_back(Event::Throttled { delay: delay.span(), wait });
        }
    }

    /// The volumes with replies that are held. Forgets those that were handed over early: clients that come
    /// and go could make the list as long as they like.
    fn waiting(&mut self, requests: &RequestTable) -> BTreeSet<VolumeId> {
        self.held.retain(|(_, id)| requests.get(*id).is_some());
        self.held.iter().filter_map(|(_, id)| Some(requests.get(*id)?.volume)).collect()
    }
}

/// When the device got the oldest read that it has. Where reads hang, none completes, just when they wait
/// longest: their age stands in.
fn oldest_read(requests: &RequestTable) -> Option<Instant> {
    let reads = requests.iter().filter(|request| request.kind == IoKind::Read);
    let issued = reads.filter_map(|request| match request.stage {
        Stage::AtDevice { issued, .. } => Some(issued),
        Stage::Queued { .. } | Stage::Done { .. } => None,
    });
    issued.min()
}
