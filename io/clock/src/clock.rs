//! The monotonic clock, in the project's own [`Instant`].

use rustix::time::{ClockId, clock_gettime};
use weir_model::{Instant, Span};

/// The kernel's monotonic clock, whose origin is the start of the machine.
///
/// The processes of a machine can compare their instants: what several gateways decided and when, each in a recording of
/// its own, can be put in order. A clock with an origin of its own for each process, as that of the standard library has, would
/// need the time of day for it, which is set back now and then.
#[derive(Clone, Copy, Default, Debug)]
pub struct Clock;

impl Clock {
    /// The clock.
    pub const fn new() -> Self {
        Self
    }

    /// The time since the machine was started, to the nanosecond. Never goes back; costs no system call.
    #[allow(clippy::unused_self)] // whoever reads a clock was given one
    pub fn now(self) -> Instant {
        let now = clock_gettime(ClockId::Monotonic);
        let part = |part: i64| u64::try_from(part).expect("a monotonic clock begins at zero");
        Instant::ORIGIN + Span::from_secs(part(now.tv_sec)) + Span::from_nanos(part(now.tv_nsec))
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
