//! Time only goes forward, and does go forward.

use weir_model::Instant;

use super::{Breach, Verified};

/// How many turns a driver may take at one instant. A turn does everything that is due. So even thousands of
/// threads that begin together need only a few turns.
const MOST_STEPS: u64 = 100_000;

#[derive(Debug)]
pub(super) struct Clock {
    now: Instant,
    steps: u64,
}

impl Clock {
    pub(super) const fn new(now: Instant) -> Self {
        Self { now, steps: 0 }
    }

    pub(super) fn on_time(&mut self, now: Instant) -> Verified {
        if now < self.now {
            return Err(Box::new(Breach::TimeWentBack { to: now }));
        }
        self.steps = if now == self.now { self.steps + 1 } else { 0 };
        self.now = now;
        if self.steps > MOST_STEPS {
            return Err(Box::new(Breach::TimeStoodStill { steps: self.steps }));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_that_goes_back_is_caught() {
        let mut clock = Clock::new(Instant::ORIGIN);
        assert_eq!(clock.on_time(Instant::from_nanos(5)), Ok(()));
        assert_eq!(clock.on_time(Instant::from_nanos(5)), Ok(()));
        let back = Instant::from_nanos(4);
        assert_eq!(clock.on_time(back), Err(Box::new(Breach::TimeWentBack { to: back })));
    }

    #[test]
    fn time_that_stands_still_is_caught() {
        let mut clock = Clock::new(Instant::ORIGIN);
        let caught = (0..=MOST_STEPS).find_map(|_| clock.on_time(Instant::ORIGIN).err());
        assert!(matches!(caught.as_deref(), Some(Breach::TimeStoodStill { .. })));
    }
}
