//! How many background requests a device may have while nobody is in danger.
//!
//! A promised request that comes after a silence waits for all that is at the device. So there should be no
//! more of it than the device answers in a part of the promised latency. But there must be as much as lets
//! the device work at its best, which is known of no device. A fifth of a second is enough for every array
//! that was tried, from one disk to flash.

use super::PERIOD;

/// The time in which the device answers what may be there, at least.
const SECONDS: f64 = 0.2;
/// The part of the promised latency for which background requests may keep the device.
const OF_LATENCY: f64 = 0.1;
/// So many requests may be there in any case: a device that has been idle has shown no rate.
const LEAST: f64 = 64.0;
/// Periods over which a rate is taken: a second.
const PERIODS: f64 = 20.0;
/// What remains of the highest rate from period to period. It halves in 14 s.
const KEEPS: f64 = 0.9975;

/// What the device can do.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub(super) struct Room {
    /// Requests answered in a second.
    rate: f64,
    /// The highest of these of late.
    highest: f64,
}

impl Room {
    /// So many requests were answered in a period.
    pub(super) fn note(&mut self, answered: f64) {
        self.rate += (answered / PERIOD.as_secs_f64() - self.rate) / PERIODS;
        self.highest = self.rate.max(self.highest * KEEPS);
    }

    /// How many requests may be there while a promised latency, in seconds, has to be kept.
    pub(super) fn beside(&self, latency: f64) -> f64 {
        (self.highest * SECONDS.max(latency * OF_LATENCY)).max(LEAST)
    }

    /// The same while no promised volume is there.
    pub(super) fn alone(&self) -> f64 {
        self.beside(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(answered: f64, periods: u32, idle: u32) -> Room {
        let mut room = Room::default();
        (0..periods).for_each(|_| room.note(answered));
        (0..idle).for_each(|_| room.note(0.0));
        room
    }

    #[test]
    fn a_fifth_of_a_second_of_what_the_device_does_is_free() {
        let room = after(500.0, 200, 0); // 10,000 a second
        assert!((room.alone() / 2_000.0 - 1.0).abs() < 0.01, "{}", room.alone());
        assert!((room.beside(60.0) / 60_000.0 - 1.0).abs() < 0.01, "or a tenth of the promised latency");
    }

    #[test]
    fn a_device_that_has_been_idle_may_have_64() {
        assert!((Room::default().alone() - 64.0).abs() < 1e-9);
        assert!((after(500.0, 200, 4_000).alone() - 64.0).abs() < 1e-9, "the rate is forgotten");
    }
}
