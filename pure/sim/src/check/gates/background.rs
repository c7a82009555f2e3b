//! A second computation of the background share: when a background request may go to a full device.

use weir_model::{Instant, IoId, TimeShare};

/// The background requests at the array, and the one that passed the depth.
#[derive(Debug)]
pub(super) struct Background {
    share: TimeShare,
    in_flight: u32,
    passed: Option<(IoId, Instant)>,
    /// From when on the next one may pass. By then, the last one's time at the array is the background share
    /// of the time since it was issued.
    opens: Instant,
}

impl Background {
    pub(super) const fn new(share: TimeShare) -> Self {
        Self { share, in_flight: 0, passed: None, opens: Instant::ORIGIN }
    }

    /// Whether a background request may pass the depth now.
    pub(super) fn may_pass(&self, now: Instant) -> bool {
        self.share > TimeShare::ZERO && self.in_flight == 0 && self.passed.is_none() && self.opens <= now
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
        if let Some((_, since)) = self.passed.take_if(|(passed, _)| *passed == id)
            && let Some(paid) = self.share.pays_for(now.since(since))
        {
            self.opens = since + paid;
        }
    }
}
