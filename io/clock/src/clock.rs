//! The monotonic clock, in the project's own [`Instant`].

use std::time::Instant as SystemInstant;

use weir_model::{Instant, Span};

/// A monotonic clock whose origin is the moment at which it was made.
///
/// A process makes one and hands out copies: instants of clocks with different origins say nothing about each
/// other.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: SystemInstant,
}

impl Clock {
    /// A clock that starts now, at [`Instant::ORIGIN`].
    #[allow(clippy::new_without_default)] // two default clocks would differ, which nobody expects of a default
    pub fn new() -> Self {
        Self { origin: SystemInstant::now() }
    }

    /// The time since the clock was made, to the nanosecond. Never goes back; costs no system call.
    pub fn now(self) -> Instant {
        Instant::ORIGIN + Span::from(self.origin.elapsed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_never_goes_back_and_copies_agree() {
        let clock = Clock::new();
        let copy = clock;
        let first = clock.now();
        let second = copy.now();
        assert!(first <= second && second <= clock.now());
    }
}
