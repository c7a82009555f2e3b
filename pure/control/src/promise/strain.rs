//! How close a volume is to missing its promise.

use serde::{Deserialize, Serialize};

/// Where the law wants strain to be. It must be below the limit, because estimates are not exact.
pub(super) const AIM: f64 = 0.95;
/// A window is about to be missed from here on.
const HARD: f64 = 0.95;

/// How close a volume is to missing its promise: 1 is at the limit, 2 is twice the latency, or half the rate.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Strain {
    /// Of the window that is open, as it will probably end, or of the one before: the worse one.
    pub window: f64,
    /// Of the last 200 ms.
    pub lately: f64,
    /// Where one window in some hundred is, judged by the recent ones.
    pub likely: f64,
    /// How long requests took in the last second, in seconds.
    pub latency: f64,
    /// How long a request takes at a device that has little else to do, in seconds; zero if unknown.
    pub service: f64,
}

impl Strain {
    /// Whether a window is about to be missed, and is missed more from moment to moment.
    pub(super) const fn is_hard(self) -> bool {
        self.window > HARD && self.lately > HARD
    }

    /// No more than this.
    pub(super) const fn at_most(self, most: f64) -> Self {
        let (window, lately) = (self.window.min(most), self.lately.min(most));
        Self { window, lately, likely: self.likely.min(most), ..self }
    }

    /// The worse of both in each respect.
    pub(super) const fn worse(self, other: Self) -> Self {
        Self {
            window: self.window.max(other.window),
            lately: self.lately.max(other.lately),
            likely: self.likely.max(other.likely),
            latency: self.latency.max(other.latency),
            service: self.service.max(other.service),
        }
    }
}
