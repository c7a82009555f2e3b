//! What [`Edf`](super::Edf) knows of a volume: its waiting requests, and which of them would go first.

use weir_model::{Instant, Io, IoKind};

use super::order::Order;
use crate::device_time::Account;
use crate::waiting::VolumeClock;
use crate::{Chain, RateGate, SlotChains, VolumeKnobs};

/// A volume.
#[derive(Debug)]
pub(super) struct Volume {
    pub(super) knobs: VolumeKnobs,
    pub(super) rate: RateGate,
    /// Which of its requests its promise covers.
    pub(super) covered: RateGate,
    /// Whether its first request is beyond what its promise covers, and so waits as a background request.
    pub(super) is_beyond: bool,
    pub(super) in_flight: u32,
    /// Of a promised volume: how many of these went beyond what its promise covers.
    pub(super) beyond: u32,
    /// A number that those bear which went beyond. Another one, once they count no longer.
    pub(super) epoch: u32,
    pub(super) flushes: Chain,
    pub(super) data: Chain,
    /// Its last request was a flush that overtook waiting data: now it is the data's turn.
    pub(super) flush_overtook: bool,
    /// Whether it is counted among the volumes that have waiting requests and are at their concurrency bound.
    pub(super) held: bool,
    /// Its turn, if it is background: the volume with the lowest number goes first.
    pub(super) turn: u64,
    pub(super) account: Account,
    pub(super) order: Order,
    /// Whether its background requests share the device's time: it does not go in order.
    pub(super) is_other: bool,
    /// What its requests waited for.
    pub(super) clock: VolumeClock,
}

/// A request that waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub(super) io: Io,
    pub(super) number: u64,
}

/// What a volume could send, if its concurrency bound allowed it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Prospect {
    /// The arrival of the oldest request that its rate lets pass; `None` if there is none.
    pub(super) oldest: Option<Instant>,
    /// When its rate lets the next request pass that it holds back; `None` if it holds none back.
    pub(super) opens: Option<Instant>,
}

impl Volume {
    /// A volume without requests.
    pub(super) fn new(knobs: &VolumeKnobs) -> Self {
        Self {
            knobs: *knobs,
            rate: RateGate::default(),
            covered: RateGate::covering(),
            is_beyond: false,
            in_flight: 0,
            beyond: 0,
            epoch: 1,
            flushes: Chain::EMPTY,
            data: Chain::EMPTY,
            flush_overtook: false,
            held: false,
            turn: 0,
            account: Account::new(knobs.weight()),
            order: Order::unknown(),
            is_other: false,
            clock: VolumeClock::new(),
        }
    }

    /// The queue in which requests of this kind wait.
    pub(super) fn lane(&mut self, kind: IoKind) -> &mut Chain {
        if kind == IoKind::Flush { &mut self.flushes } else { &mut self.data }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.flushes.is_empty() && self.data.is_empty()
    }

    pub(super) const fn is_background(&self) -> bool {
        self.knobs.due_after.is_none()
    }

    /// Whether its promise covers some of its requests, and maybe not all.
    pub(super) const fn is_bounded(&self) -> bool {
        !self.is_background() && self.knobs.covered.is_bounded()
    }

    /// How many of its requests at the device are background requests.
    pub(super) const fn background(&self) -> u32 {
        if self.is_background() { self.in_flight } else { self.beyond }
    }

    /// From when on its promise covers the request that it would send first.
    pub(super) fn covered_from(&self, now: Instant, waiting: &SlotChains<Waiting>) -> Instant {
        let lane = if self.sends_flush(now, waiting) { &self.flushes } else { &self.data };
        waiting.front(lane).map_or(Instant::ORIGIN, |first| self.covered.opens_at(first.io.kind))
    }

    /// Whether a flush goes first: one waits, and none has just overtaken data that may pass.
    fn sends_flush(&self, now: Instant, waiting: &SlotChains<Waiting>) -> bool {
        let is_datas_turn = self.flush_overtook && self.data_may_pass(now, waiting);
        !self.flushes.is_empty() && !is_datas_turn
    }

    fn data_may_pass(&self, now: Instant, waiting: &SlotChains<Waiting>) -> bool {
        waiting.front(&self.data).is_some_and(|first| self.rate.opens_at(first.io.kind) <= now)
    }

    pub(super) fn is_at_bound(&self) -> bool {
        self.knobs.concurrency.is_some_and(|bound| self.in_flight >= bound.get())
    }

    /// What it could send now.
    pub(super) fn prospect(&self, now: Instant, waiting: &SlotChains<Waiting>) -> Prospect {
        let data = self.prospect_of(now, waiting.front(&self.data));
        if self.flushes.is_empty() {
            return data; // nearly always, and asked for each request
        }
        let flushes = self.prospect_of(now, waiting.front(&self.flushes));
        let earlier = |a: Option<Instant>, b: Option<Instant>| a.into_iter().chain(b).min();
        Prospect { oldest: earlier(data.oldest, flushes.oldest), opens: earlier(data.opens, flushes.opens) }
    }

    fn prospect_of(&self, now: Instant, first: Option<&Waiting>) -> Prospect {
        let Some(first) = first else { return Prospect { oldest: None, opens: None } };
        let opens = self.rate.opens_at(first.io.kind);
        if opens > now {
            Prospect { oldest: None, opens: Some(opens) }
        } else {
            Prospect { oldest: Some(first.io.arrived), opens: None }
        }
    }

    /// Takes out the request that goes first: a flush, unless a flush has just overtaken data that may pass.
    pub(super) fn pop(&mut self, now: Instant, waiting: &mut SlotChains<Waiting>) -> Option<Io> {
        if self.flushes.is_empty() {
            self.flush_overtook = false;
            return waiting.pop_front(&mut self.data).map(|first| first.io);
        }
        let sends_flush = self.sends_flush(now, waiting);
        self.flush_overtook = sends_flush && self.data_may_pass(now, waiting);
        let lane = if sends_flush { &mut self.flushes } else { &mut self.data };
        waiting.pop_front(lane).map(|first| first.io)
    }
}
