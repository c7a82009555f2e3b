//! The knobs of one volume.

use std::num::NonZeroU32;

use weir_model::{Bandwidth, Iops, Span};

/// What the scheduler knows of a volume: its place in the order, and its own two gates.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct VolumeKnobs {
    /// How long after its arrival a request is due at the device; `None`: nothing is promised, and its
    /// requests are *background*.
    pub due_after: Option<Span>,
    /// The highest number of its requests at the device; `None`: no bound of its own.
    pub concurrency: Option<NonZeroU32>,
    /// The highest rate of its requests; `None`: no bound.
    pub max_iops: Option<Iops>,
    /// The highest rate of the bytes that its device may have to read and write; `None`: no bound.
    pub max_bandwidth: Option<Bandwidth>,
}

impl VolumeKnobs {
    /// No gates, and no promise.
    pub const BACKGROUND: Self =
        Self { due_after: None, concurrency: None, max_iops: None, max_bandwidth: None };

    /// No gates; requests are due `due_after` after they arrived.
    pub const fn with_target(due_after: Span) -> Self {
        Self { due_after: Some(due_after), ..Self::BACKGROUND }
    }
}
