//! How few requests keep the device busy, while several background volumes want more than there is.
//!
//! Background volumes take turns, but only in the scheduler. If one of them has 256 requests at the device
//! and another has one, the device gives the first 256 times as much. So while at least two background
//! volumes always have requests, the law looks for the fewest requests at the device that bring as much as
//! many do: beyond that knee, depth only costs latency, and takes the turns away. A volume that is alone is
//! not bounded.
//!
//! The same condition decides how turns are taken. While it holds, turns go by the device's time, and a
//! volume whose requests go in order has the device for itself for a quantum (`edf/turns.rs` of the
//! scheduler). Turn by turn, a scan beside random reads would lose its order, and most of what it gets alone.
//! While it does not hold, nobody has to share, and a quantum would only make somebody wait.
//!
//! It halves the bound as long as the device answers no less, and goes one step back when it does. After a
//! minute it measures anew, from twice the bound, as loads and devices change.

use weir_model::Span;

/// For how long a volume whose requests go in order has the device for itself. Long beside a seek: the way
/// there and back costs some 5 % of it. On the disks of `weir lab guarantee`, 100 ms brought a scan 0.94 of
/// its share, and 300 ms 0.96, but with 300 ms all others wait for twice as long.
const QUANTUM: Span = Span::from_millis(150);
/// Periods for which two volumes must have had requests all the time: a second.
const CONTENDED: u32 = 20;
/// A volume has requests all the time if it had some for this part of a period.
pub(super) const ALWAYS: f64 = 0.9;
/// Periods over which the rate is taken with which all others are compared.
const REFERENCE: u32 = 40;
/// Periods over which a rate is taken, and over which it is taken if it seems to be less.
const SHORT: u32 = 20;
const LONG: u32 = 60;
/// What the device has to bring still.
const ENOUGH: f64 = 0.95;
/// With less than this in the first quarter of a second, the bound is too small for certain.
const FAR_LESS: (u32, f64) = (5, 0.75);
/// Periods for which a bound stays that was found: a minute. Each search costs a part of a second.
const STAYS: u32 = 1_200;

/// The search for the knee.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct Knee {
    /// Periods of contention in a row.
    contended: u32,
    search: Option<Search>,
}

#[derive(Clone, Copy, PartialEq, Debug)]
struct Search {
    /// The bound in force.
    bound: u32,
    /// Requests in a period with twice the bound or more; `None`: being measured.
    reference: Option<f64>,
    /// Periods at this bound, and the requests that were answered in them.
    periods: u32,
    answered: f64,
    /// Periods for which the bound stays still.
    stays: u32,
}

impl Knee {
    /// Ends a period in which the device answered so many requests. `always`: how many background volumes had
    /// requests all the time; `peak`: the most requests that all of these had at the device.
    pub(super) fn step(&mut self, always: usize, peak: u32, answered: f64) {
        self.contended = if always >= 2 { self.contended.saturating_add(1) } else { 0 };
        if self.contended < CONTENDED {
            self.search = None;
            return;
        }
        self.search.get_or_insert(Search::from(peak.max(2))).step(answered);
    }

    /// How long a volume whose requests go in order has the device for itself, while turns go by the device's
    /// time; `None`: nobody has to take turns.
    pub(super) fn quantum(&self) -> Option<Span> {
        self.search.map(|_| QUANTUM)
    }

    /// The most requests of background volumes at the device; `None`: no bound.
    pub(super) fn bound(&self) -> Option<u32> {
        self.search.map(|search| search.bound)
    }
}

impl Search {
    const fn from(bound: u32) -> Self {
        Self { bound, reference: None, periods: 0, answered: 0.0, stays: 0 }
    }

    fn step(&mut self, answered: f64) {
        if self.stays > 0 {
            self.stays -= 1;
            if self.stays == 0 {
                *self = Self::from(self.bound.saturating_mul(2));
            }
            return;
        }
        self.periods += 1;
        self.answered += answered;
        let rate = self.answered / f64::from(self.periods);
        match self.reference {
            None if self.periods < REFERENCE => {}
            None => self.go_to(self.bound / 2, rate),
            Some(reference) if self.periods == FAR_LESS.0 && rate < FAR_LESS.1 * reference => self.go_back(),
            Some(_) if self.periods < SHORT => {}
            Some(reference) if rate >= ENOUGH * reference => self.go_to(self.bound / 2, reference),
            Some(_) if self.periods < LONG => {}
            Some(_) => self.go_back(),
        }
    }

    /// The bound before was the knee.
    const fn go_back(&mut self) {
        *self = Self { stays: STAYS, ..Self::from(self.bound * 2) };
    }

    /// Takes another bound, or stays if that is none.
    const fn go_to(&mut self, bound: u32, reference: f64) {
        *self = if bound == 0 {
            Self { stays: STAYS, ..Self::from(1) }
        } else {
            Self { reference: Some(reference), ..Self::from(bound) }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A device that answers 50 requests in a period with `servers` or more of them, and fewer with fewer.
    fn bound_after(seconds: u32, servers: u32, peak: u32) -> Option<u32> {
        let mut knee = Knee::default();
        for _ in 0..seconds * 20 {
            let at_device = knee.bound().unwrap_or(peak);
            knee.step(2, peak, 50.0 * (f64::from(at_device) / f64::from(servers)).min(1.0));
        }
        knee.bound()
    }

    #[test]
    fn the_fewest_requests_that_bring_as_much_are_found_in_ten_seconds() {
        assert_eq!(bound_after(11, 1, 64), Some(1));
        assert_eq!(bound_after(11, 8, 64), Some(8));
    }

    #[test]
    fn a_volume_that_is_alone_is_not_bounded() {
        let mut knee = Knee::default();
        (0..1_000).for_each(|_| knee.step(1, 256, 50.0));
        assert_eq!(knee.bound(), None);
        assert_eq!(knee.quantum(), None);
    }

    #[test]
    fn turns_go_by_time_after_a_second_in_which_two_volumes_always_had_requests_and_until_one_has_none() {
        let mut knee = Knee::default();
        (1..CONTENDED).for_each(|_| knee.step(2, 256, 50.0));
        assert_eq!(knee.quantum(), None);
        knee.step(2, 256, 50.0);
        assert_eq!(knee.quantum(), Some(QUANTUM));
        knee.step(1, 256, 50.0);
        assert_eq!(knee.quantum(), None);
    }

    #[test]
    fn a_device_that_can_do_more_than_before_is_given_more() {
        let mut knee = Knee::default();
        let mut run = |servers: f64| {
            for _ in 0..20 * 200 {
                let at_device = f64::from(knee.bound().unwrap_or(64));
                knee.step(2, 64, 50.0 * at_device.min(servers));
            }
            knee.bound()
        };
        assert!(run(4.0).is_some_and(|bound| (4..=8).contains(&bound)));
        assert!(run(16.0).is_some_and(|bound| bound >= 16));
    }
}
