//! The lane: background requests pass a shut depth gate by it, one at a time and seldom.
//!
//! Promised work can keep a device full for ever, and background volumes would then get nothing. The lane
//! gives them a stated share of the device's time. After a request that was at the device for `d`, the lane
//! opens again `d / share` after that request's dispatch. Example: at a share of 1 %, a request of 4 ms is
//! followed by the next one 400 ms after it was dispatched. So the times at the device of all requests that
//! took the lane, except the last, never add up to more than the share of the time that has passed.
//!
//! Why a share of time: if requests were counted, one request of 32 MiB would take as much as thousands of 4
//! KiB. If bytes were counted, seeks would cost nothing.

use weir_model::{Instant, IoId, TimeShare};

/// The lane.
#[derive(Debug)]
pub(super) struct Lane {
    share: TimeShare,
    /// The request at the device that took it, and when.
    taken: Option<(IoId, Instant)>,
    opens: Instant,
}

impl Lane {
    /// A lane that is open, unless its share is zero.
    pub(super) const fn new(share: TimeShare) -> Self {
        Self { share, taken: None, opens: Instant::ORIGIN }
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
            let closed = self.share.pays_for(now.since(since));
            self.opens = closed.map_or(Instant::FAR_FUTURE, |closed| since + closed);
        }
    }
}
