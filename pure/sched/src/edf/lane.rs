//! The lane: background requests pass a shut depth gate and their bound by it, one at a time and seldom.
//!
//! Promised work can keep a device full for ever, and background volumes would then get nothing. The lane
//! gives them a stated share of the device's time. After a request that was at the device for `d`, the lane
//! opens again `d / share` after that request's dispatch. Example: at a share of 1 %, a request of 4 ms is
//! followed by the next one 400 ms after it was dispatched. So the times at the device of all requests that
//! took the lane, except the last, never add up to more than the share of the time that has passed.
//!
//! A law may change the share. The new share counts from the last request that took the lane. A request
//! counts as [`BackgroundKnobs::least`] at least.
//!
//! Why a share of time: if requests were counted, one request of 32 MiB would take as much as thousands of 4
//! KiB. If bytes were counted, seeks would cost nothing.

use weir_model::{Instant, IoId, Span, TimeShare};

use crate::BackgroundKnobs;

/// The lane.
#[derive(Debug)]
pub(super) struct Lane {
    share: TimeShare,
    /// What a request counts as at least.
    least: Span,
    /// The request at the device that took it, and when.
    taken: Option<(IoId, Instant)>,
    /// The last request that took it and is finished: when it took it, and for how long it was at the device.
    last: Option<(Instant, Span)>,
    opens: Instant,
}

impl Lane {
    /// A lane that is open, unless its share is zero.
    pub(super) const fn new(share: TimeShare) -> Self {
        Self { share, least: Span::ZERO, taken: None, last: None, opens: Instant::ORIGIN }
    }

    /// Another share and another least time, from the last request on that took the lane.
    pub(super) fn set(&mut self, knobs: BackgroundKnobs) {
        (self.share, self.least) = (knobs.share, knobs.least);
        self.reckon();
    }

    /// From when on a request may take the lane; `None` while one has it, and for a share of zero.
    pub(super) fn opens_at(&self) -> Option<Instant> {
        (self.taken.is_none() && self.share > TimeShare::ZERO).then_some(self.opens)
    }

    /// The request `id` goes to the device by the lane.
    pub(super) const fn take(&mut self, now: Instant, id: IoId) {
        self.taken = Some((id, now));
    }

    /// The device has finished a request, whether or not that took the lane.
    pub(super) fn on_complete(&mut self, now: Instant, id: IoId) {
        if let Some((_, since)) = self.taken.take_if(|(taken, _)| *taken == id) {
            self.last = Some((since, now.since(since)));
            self.reckon();
        }
    }

    /// Reckons when it opens.
    fn reckon(&mut self) {
        if let Some((since, used)) = self.last {
            let closed = self.share.pays_for(used.max(self.least));
            self.opens = closed.map_or(Instant::FAR_FUTURE, |closed| since + closed);
        }
    }
}
