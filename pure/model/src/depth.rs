//! The bound on the number of requests that a pool may have at its device.

use std::fmt;
use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};

/// How many requests a pool may have at its device at a time. At least one, or nothing would ever move.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct QueueDepth(NonZeroU32);

impl QueueDepth {
    /// No bound that could be felt.
    pub const MAX: Self = Self(NonZeroU32::MAX);

    /// A depth of `depth`; zero becomes one.
    pub const fn new(depth: u32) -> Self {
        match NonZeroU32::new(depth) {
            Some(depth) => Self(depth),
            None => Self(NonZeroU32::MIN),
        }
    }

    /// The number of requests.
    pub const fn get(self) -> u32 {
        self.0.get()
    }
}

impl fmt::Display for QueueDepth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
