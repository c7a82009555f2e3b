//! What the law of promises has to know of the last period.

use weir_model::{Priority, Span, Target};

/// What was seen of a pool in the last period.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct PromiseObservation {
    /// Its volumes, in an order that is the observer's.
    pub volumes: Vec<PromisedObservation>,
    /// The most background requests that were at the device at a time: those of background volumes, and
    /// those that go beyond what a promise covers.
    pub background_peak: u32,
    /// How many are there now.
    pub background_at_device: u32,
}

/// What was seen of a volume in the last period.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct PromisedObservation {
    /// A number that no other volume has.
    pub serial: u64,
    /// What it is promised now; `None`: nothing, so it is a background volume.
    pub target: Option<Target>,
    /// How much its shortfall counts.
    pub priority: Priority,
    /// Whether it has caps of its own, which keep its requests from the device.
    pub is_capped: bool,
    /// How long its requests were outstanding in the period, in sum.
    pub spent: Span,
    /// For how long at least one of them was.
    pub busy: Span,
    /// How long its requests were at the device in the period, in sum.
    pub at_device_for: Span,
    /// Requests that the device has finished, with success or not.
    pub finished: u32,
    /// Requests that came.
    pub arrived: u32,
    /// Requests that were answered with success.
    pub answered: u32,
    /// Their bytes.
    pub answered_bytes: u64,
    /// Requests that are above the limit of a percentile and were not known to be when the period began.
    /// Below zero if more of those that were known have failed or were taken back.
    pub late: i32,
    /// Requests without an answer at the end of the period.
    pub outstanding: u32,
    /// Of these, how many are at the device.
    pub at_device: u32,
    /// The window that is open.
    pub current: WindowSeen,
    /// The window before.
    pub previous: WindowSeen,
    /// A window whose requests have all ended since the last period.
    pub ended: Option<WindowSeen>,
}

/// The requests that came in a window, as far as they are known.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct WindowSeen {
    /// How many.
    pub arrived: u32,
    /// Of these, how many have no answer.
    pub outstanding: u32,
    /// How long they have taken until now, in sum.
    pub spent: Span,
}
