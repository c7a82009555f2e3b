//! The knobs of one volume, and those of all background volumes together.

use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};
use weir_model::{Bandwidth, Iops, Priority, Span, TimeShare};

/// What the scheduler knows of a volume: its place in the order, and its own two gates.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct VolumeKnobs {
    /// How long after its arrival a request is due at the device; `None`: nothing is promised, and its
    /// requests are *background*.
    pub due_after: Option<Span>,
    /// The rates up to which its requests are promised, if they have a `due_after`. Those beyond are
    /// background.
    pub covered: Covered,
    /// The highest number of its requests at the device; `None`: no bound of its own.
    pub concurrency: Option<NonZeroU32>,
    /// The highest rate of its requests; `None`: no bound.
    pub max_iops: Option<Iops>,
    /// The highest rate of the bytes that its device may have to read and write; `None`: no bound.
    pub max_bandwidth: Option<Bandwidth>,
    /// How much of the device's time it gets beside other background volumes, if they take turns by time
    /// ([`Scheduler::set_quantum`](crate::Scheduler::set_quantum)).
    pub priority: Priority,
}

impl VolumeKnobs {
    /// No gates, and no promise.
    pub const BACKGROUND: Self = Self {
        due_after: None,
        covered: Covered::ALL,
        concurrency: None,
        max_iops: None,
        max_bandwidth: None,
        priority: Priority::ONE,
    };

    /// Its priority beside other background volumes. The priority of a promised volume says how much its
    /// shortfall counts. It gives no claim to more of what no promise covers.
    pub(crate) const fn weight(&self) -> Priority {
        if self.due_after.is_some() { Priority::ONE } else { self.priority }
    }

    /// No gates; requests are due `due_after` after they arrived.
    pub const fn with_target(due_after: Span) -> Self {
        Self { due_after: Some(due_after), ..Self::BACKGROUND }
    }
}

/// The rates that a promise covers.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Covered {
    /// Of requests; `None`: any rate.
    pub iops: Option<Iops>,
    /// Of the bytes that the device may have to read and write; `None`: any rate.
    pub bandwidth: Option<Bandwidth>,
}

impl Covered {
    /// All requests.
    pub const ALL: Self = Self { iops: None, bandwidth: None };

    /// Whether a request can be beyond it.
    pub const fn is_bounded(&self) -> bool {
        self.iops.is_some() || self.bandwidth.is_some()
    }
}

/// What background volumes may have of the device, all of them together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct BackgroundKnobs {
    /// How many of their requests may be at the device. Promised requests do not count.
    pub most: u32,
    /// The share of the device's time for requests that pass this bound or the depth, one at a time. If both
    /// are zero, background volumes get nothing until the knobs are set anew.
    pub share: TimeShare,
    /// What each request counts as of the device's time at least. A write that a cache takes at once costs
    /// the device its time later.
    pub least: Span,
}

impl BackgroundKnobs {
    /// No bound; if promised requests leave nothing, this share of the device's time.
    pub const fn open(share: TimeShare) -> Self {
        Self { most: u32::MAX, share, least: Span::ZERO }
    }

    /// Whether these allow something else: what a request costs is measured, and changes a little each time.
    pub fn is_other_than(&self, other: &Self) -> bool {
        let (one, another) = (self.least.as_nanos(), other.least.as_nanos());
        (self.most, self.share) != (other.most, other.share) || one.abs_diff(another) > one / 10
    }

    /// The time from one request to the next, if [`Self::most`] requests at a time take [`Self::least`] each.
    /// After a pause, as many go at once.
    pub fn pace(&self) -> Span {
        Span::from_nanos(self.least.as_nanos() / u64::from(self.most.max(1)))
    }
}
