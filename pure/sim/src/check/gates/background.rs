//! A second computation of what background requests may do: how many may be at the array, how soon one may
//! follow another, and when one may pass the depth and this bound.

use weir_engine::BackgroundKnobs;
use weir_model::{Instant, IoId, Span, TimeShare};

/// The background requests at the array, and the one that passed the depth.
#[derive(Debug)]
pub(super) struct Background {
    knobs: BackgroundKnobs,
    in_flight: u32,
    /// What the issued ones count as of the array's time, as far as that time has not passed, at this
    /// instant.
    unpaid: (Span, Instant),
    passed: Option<(IoId, Instant)>,
    /// When the last one that passed was issued, and for how long it was at the array. The next one may pass
    /// once that is the background share of the time since.
    last: Option<(Instant, Span)>,
    /// Whether one may wait for another one's turn.
    pub(super) takes_turns: bool,
    /// Since when one waits for its turn while none is at the array.
    idle_since: Option<Instant>,
}

/// For how long an array may be left idle for the volume whose turn it is.
const PATIENCE: Span = Span::from_millis(2);

impl Background {
    pub(super) const fn new(share: TimeShare) -> Self {
        let unpaid = (Span::ZERO, Instant::ORIGIN);
        Self {
            knobs: BackgroundKnobs::open(share),
            in_flight: 0,
            unpaid,
            passed: None,
            last: None,
            takes_turns: false,
            idle_since: None,
        }
    }

    /// Whether a background request may pass the depth and the bound now.
    pub(super) fn may_pass(&self, now: Instant) -> bool {
        let is_paid = |(since, used): (Instant, Span)| {
            self.knobs.share.pays_for(used.max(self.knobs.least)).is_some_and(|paid| since + paid <= now)
        };
        let is_open = self.knobs.share > TimeShare::ZERO && self.last.is_none_or(is_paid);
        is_open && self.in_flight == 0 && self.passed.is_none()
    }

    /// From now on, this may be at the array.
    pub(super) fn allow(&mut self, now: Instant, knobs: BackgroundKnobs) {
        self.unpaid = (self.unpaid_at(now).min(knobs.least), now);
        self.knobs = knobs;
    }

    /// One was issued.
    pub(super) fn on_issue(&mut self, now: Instant) {
        self.in_flight += 1;
        self.unpaid = (self.unpaid_at(now) + self.pace(), now);
    }

    /// How many are at the array.
    pub(super) const fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Whether as many are at the array as may be, or one more would be too soon after the others.
    pub(super) fn is_full(&self, now: Instant) -> bool {
        self.in_flight >= self.knobs.most || self.unpaid_at(now) + self.pace() > self.knobs.least
    }

    /// The engine is at rest, and a request waits that only turns may hold back, or none does. Returns
    /// whether the array is left idle for too long.
    pub(super) fn is_left_idle(&mut self, now: Instant, one_waits: bool) -> bool {
        let is_idle = one_waits && self.in_flight == 0;
        self.idle_since = is_idle.then(|| self.idle_since.unwrap_or(now));
        self.idle_since.is_some_and(|since| since + PATIENCE < now)
    }

    /// What each of them counts as, with as many at the array as may be.
    fn pace(&self) -> Span {
        Span::from_nanos(self.knobs.least.as_nanos() / u64::from(self.knobs.most.max(1)))
    }

    fn unpaid_at(&self, now: Instant) -> Span {
        let (unpaid, since) = self.unpaid;
        Span::from_nanos(unpaid.as_nanos().saturating_sub(now.since(since).as_nanos()))
    }

    pub(super) const fn on_passed(&mut self, now: Instant, id: IoId) {
        self.passed = Some((id, now));
    }

    /// `number` more requests at the array are background.
    pub(super) const fn add(&mut self, number: u32) {
        self.in_flight += number;
    }

    /// `number` fewer requests at the array are background.
    pub(super) const fn subtract(&mut self, number: u32) {
        self.in_flight -= number;
    }

    /// The array has answered this request, background or not.
    pub(super) fn on_answer(&mut self, now: Instant, id: IoId) {
        if let Some((_, since)) = self.passed.take_if(|(passed, _)| *passed == id) {
            self.last = Some((since, now.since(since)));
        }
    }
}
