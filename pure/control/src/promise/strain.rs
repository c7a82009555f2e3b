//! How close a volume is to missing its promise.

/// How close a volume is to missing its promise: 1 is at the limit, 2 is twice the latency, or half the rate.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Strain {
    /// Of the window that is open, as it will probably end, or of the one before: the worse one.
    pub(super) window: f64,
    /// Of the last 200 ms.
    pub(super) lately: f64,
    /// Where one window in some hundred is, judged by the recent ones.
    pub(super) likely: f64,
    /// How long requests took in the last second, in seconds.
    pub(super) latency: f64,
    /// How long a request takes at a device that has little else to do, in seconds; zero if unknown.
    pub(super) service: f64,
}

impl Strain {
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
