//! How far promised rates are stretched when not all of them fit.
//!
//! If background volumes are out of the way and a volume still does not get its rate, the rates are lowered
//! until all can be kept: each by `stretch / priority`. So the shortfalls of two volumes are as their
//! priorities, the other way round. Example: a stretch of 0.4 takes 40 % from a volume of priority 1, and 10
//! % from one of priority 4. Without that, both would lose alike, because a device serves whoever asks.
//!
//! If only one volume falls short while it always has a request waiting, nothing is lowered: nobody is there
//! to whom that would give anything. If promises lack more with lower rates than without, the law gives them
//! back (`trial`).
//!
//! A latency is not stretched: a volume that is held to fewer requests than come only waits longer.

use weir_model::Priority;

use super::PERIOD;

/// A volume falls short if it lacks more than this part of its lowered rate: less is chance.
const SHORT: f64 = 0.02;
/// By how much the stretch grows in a second, for each part that is lacking.
const GROWS: f64 = 1.0;
/// By how much it falls in a second when nobody falls short.
const FALLS: f64 = 0.05;
/// What remains of a rate in any case.
const LEAST: f64 = 0.05;

/// How far rates are stretched.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub(super) struct Stretch {
    amount: f64,
    /// The largest amount that lowers some rate.
    most: f64,
}

impl Stretch {
    /// Ends a period. Each volume of a promised rate that always had a request waiting got this part of it.
    /// `is_last_resort`: nobody else could give way.
    pub(super) fn step(&mut self, is_last_resort: bool, achieved: impl Iterator<Item = (Priority, f64)>) {
        let add = |(count, most): (u32, f64), (priority, part): (Priority, f64)| {
            (count + 1, f64::max(most, 1.0 - part / self.of(priority)))
        };
        let (count, lacking) = achieved.fold((0, 0.0), add);
        let change = if lacking <= SHORT || count < 2 {
            -FALLS
        } else if is_last_resort {
            GROWS * lacking
        } else {
            0.0
        };
        self.amount = (self.amount + change * PERIOD.as_secs_f64()).clamp(0.0, self.most);
    }

    /// Lowers no rate any more.
    pub(super) fn let_go(&mut self) {
        self.amount = 0.0;
    }

    /// Volumes of these priorities are promised something.
    pub(super) fn set_priorities(&mut self, priorities: impl Iterator<Item = Priority>) {
        self.most = priorities.map(Priority::get).fold(0.0, f64::max);
    }

    /// Whether a rate is lowered.
    pub(super) fn lowers(&self) -> bool {
        self.amount > 0.0
    }

    /// Which part of its rate a volume of this priority is still promised, above 0 and up to 1.
    pub(super) fn of(&self, priority: Priority) -> f64 {
        (1.0 - self.amount / priority.get()).max(LEAST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn priority(value: f64) -> Priority {
        Priority::new(value).unwrap()
    }

    /// Two volumes want 70 % of a device each, which serves both alike up to what they may ask for.
    fn after_a_minute(priorities: [f64; 2], is_last_resort: bool) -> [f64; 2] {
        let mut stretch = Stretch::default();
        let priorities = priorities.map(priority);
        let mut got = [0.5 / 0.7; 2];
        for _ in 0..1_200 {
            stretch.set_priorities(priorities.into_iter());
            stretch.step(is_last_resort, priorities.into_iter().zip(got));
            let asked = priorities.map(|priority| 0.7 * stretch.of(priority));
            let fits = (1.0 / asked.iter().sum::<f64>()).min(1.0);
            got = asked.map(|asked| asked * fits / 0.7);
        }
        got
    }

    #[test]
    fn shortfalls_are_as_priorities_the_other_way_round() {
        let [high, low] = after_a_minute([4.0, 1.0], true).map(|got| 1.0 - got);
        assert!((3.5..4.5).contains(&(low / high)), "{low} of {high}");
        assert!((high + low - 0.4 / 0.7).abs() < 0.03, "the device stays busy: {high} and {low}");
    }

    #[test]
    fn no_rate_is_lowered_while_background_volumes_could_give_way() {
        let [high, low] = after_a_minute([4.0, 1.0], false);
        assert!((high - low).abs() < 1e-9);
    }

    #[test]
    fn the_rate_of_a_volume_that_is_alone_is_not_lowered() {
        let mut stretch = Stretch::default();
        let of = priority(1.0);
        for _ in 0..100 {
            stretch.set_priorities([of].into_iter());
            stretch.step(true, [(of, 0.5)].into_iter());
        }
        assert!((stretch.of(of) - 1.0).abs() < 1e-9);
    }
}
