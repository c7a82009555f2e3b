//! The bound of background volumes: how many of their requests may be at the device at a time, and how soon
//! one may follow another.
//!
//! A bound on the requests at the device bounds their rate too, if the device takes its time for each. A
//! cache does not: it answers a write at once, and the device works it off later, while promised requests
//! wait. So the bound comes with a **pace**: each request counts as [`BackgroundKnobs::least`] of the
//! device's time, whatever it took. Example: with 4 requests at a time and a least time of 8 ms, one request
//! may go every 2 ms. After a pause, 4 may go at once.

use weir_model::{Instant, Span, TimeShare};

use crate::BackgroundKnobs;

/// The bound, and what it counts.
#[derive(Debug)]
pub(super) struct Bound {
    knobs: BackgroundKnobs,
    /// How many requests of background volumes are at the device.
    pub(super) in_flight: u32,
    /// When every request issued so far has had its least time, if the device works on as many at a time as
    /// the bound allows.
    paid: Instant,
}

impl Bound {
    /// No bound; the lane gives this share of the device's time.
    pub(super) const fn none(share: TimeShare) -> Self {
        Self { knobs: BackgroundKnobs::open(share), in_flight: 0, paid: Instant::ORIGIN }
    }

    /// Other knobs, from now on. A request waits for no longer than the new pace.
    pub(super) fn set(&mut self, now: Instant, knobs: BackgroundKnobs) {
        self.knobs = knobs;
        self.paid = self.paid.min(now + knobs.least);
    }

    /// Whether there is one.
    pub(super) const fn is_set(&self) -> bool {
        self.knobs.most < u32::MAX
    }

    /// From when on one more request may go to a device that has room. `None` while as many are there as may
    /// be.
    pub(super) fn opens_at(&self) -> Option<Instant> {
        let ahead = self.knobs.least.as_nanos() - self.knobs.pace().as_nanos();
        (self.in_flight < self.knobs.most).then(|| self.paid - Span::from_nanos(ahead))
    }

    /// A background request goes to the device, within the bound or by the lane.
    pub(super) fn on_issue(&mut self, now: Instant) {
        self.in_flight += 1;
        self.paid = self.paid.max(now) + self.knobs.pace();
    }
}
