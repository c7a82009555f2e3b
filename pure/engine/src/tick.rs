//! A timer that is due once each period.

use weir_model::{Instant, Span};

/// Due once each period, counted from the instant at which it was due and not from when it was served. So a
/// driver that is always a little late does not stretch the period. A driver that is late by several periods
/// is served once.
#[derive(Clone, Debug)]
pub(crate) struct Tick {
    due: Instant,
    period: Span,
}

impl Tick {
    /// A timer that is due first a period from now.
    ///
    /// # Panics
    /// If the period has no length.
    pub(crate) fn new(now: Instant, period: Span) -> Self {
        assert!(!period.is_zero(), "a period of no length");
        Self { due: now + period, period }
    }

    pub(crate) const fn due(&self) -> Instant {
        self.due
    }

    /// Whether the timer is due. If so, it is set to the first of its instants that lies ahead.
    pub(crate) fn serve(&mut self, now: Instant) -> bool {
        if now < self.due {
            return false;
        }
        let missed = now.since(self.due).as_nanos() / self.period.as_nanos();
        self.due = self.due + self.period.saturating_mul(missed + 1);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn a_late_driver_does_not_stretch_the_period() {
        let mut tick = Tick::new(at(0), Span::from_millis(50));
        assert!(!tick.serve(at(49)));
        assert!(tick.serve(at(53)));
        assert_eq!(tick.due(), at(100));
    }

    #[test]
    fn what_was_missed_is_served_once() {
        let mut tick = Tick::new(at(0), Span::from_millis(50));
        assert!(tick.serve(at(210)));
        assert!(!tick.serve(at(249)));
        assert_eq!(tick.due(), at(250));
        assert!(tick.serve(at(250)));
        assert_eq!(tick.due(), at(300));
    }
}
