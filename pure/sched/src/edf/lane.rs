//! The lane by which background requests pass the depth gate, one at a time and seldom.
//!
//! Promised work can keep a device full for ever, and background volumes would then get nothing. The lane
//! gives them a stated share of the device's time: a request that took it and was at the device for `d` opens
//! it again `d / share` after it was dispatched. The times at the device of all requests that took the lane
//! so never add up to more than the share of the time that has passed, and the last of them.
//!
//! A share counted in requests would let one request of 32 MiB take as much as thousands of 4 KiB; one
//! counted in bytes would say nothing about a seek.

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

    /// From when on it may be taken; `None` while it is, and for a share of zero.
    pub(super) fn opens_at(&self) -> Option<Instant> {
        (self.taken.is_none() && self.share > TimeShare::ZERO).then_some(self.opens)
    }

    /// A request goes to the device by it.
    pub(super) const fn take(&mut self, now: Instant, id: IoId) {
        self.taken = Some((id, now));
    }

    /// The device has finished a request, whatever way it went.
    pub(super) fn on_complete(&mut self, now: Instant, id: IoId) {
        if let Some((_, since)) = self.taken.take_if(|(taken, _)| *taken == id) {
            let closed = self.share.pays_for(now.since(since));
            self.opens = closed.map_or(Instant::FAR_FUTURE, |closed| since + closed);
        }
    }
}
