//! How much volumes of promised rates get while these hinder one another.
//!
//! **What is above a rate is a surplus.** A device serves each volume by how much that asks for. Example: it
//! does 2,000 requests a second. Volume a is promised 900 and has 16 threads; volume b is promised 300 and
//! has 64. So a gets 400, and b gets 1,600. While a volume falls short, all are held to so many times their
//! rates: to ever fewer until nobody falls short, then to ever more as far as no rate is missed. In the
//! example a gets some 1,080 in the end, and b what is left: 920.
//!
//! **Not all rates fit** if volumes fall short though nobody has a surplus. Then the rates are lowered until
//! all can be kept: each by `stretch / priority`. So the shortfalls of two volumes are as their priorities,
//! the other way round. Example: a stretch of 0.4 takes 40 % from a volume of priority 1, and 10 % from one
//! of priority 4. Without that, both would lose alike.
//!
//! If only one volume falls short while it always has a request waiting, no rate is lowered: nobody is there
//! to whom that would give anything. If promises lack more in this way than without, the law ends it
//! (`trial`).
//!
//! A latency is not stretched: a volume that is held to fewer requests than come only waits longer.

use weir_model::Priority;

use super::steps::{self, UNFELT};
use super::{PERIOD, SECOND};

/// A volume falls short if it lacks more than this part of its rate: less is chance.
const SHORT: f64 = 0.01;
/// Of a lowered rate, it may lack so much more for each part by which that is lowered. Otherwise requests
/// never wait for the device, and disks that choose among those that wait do less: two thirds, on RAID-5.
const SLACK: f64 = 0.05;
/// The least that a volume may have, in times of its rate, while no rate is lowered. A volume that is held to
/// exactly its rate misses every other window.
const SPARE: f64 = 1.03;
/// Rates that are lowered by this part have nothing to spare.
const SPENT: f64 = 0.02;
/// How fast the surplus falls, a second, for each part that is lacking.
const YIELDS: f64 = 4.0;
/// The surplus grows while one second in some hundred has a strain below this. It grows as fast as it may if
/// that is below the other one.
const ROOM: (f64, f64) = (0.99, 0.94);
/// How fast the surplus grows while the device has room: all get what they may, or only one always waits. A
/// second.
const FAST: f64 = 0.4;
/// A volume gets what it may if it gets at least this part of it. With 0.95, one of twenty volumes that had
/// one thread missed half of its windows.
const AT_THE_CAP: f64 = 0.98;
/// Volumes feel that they are held if they get at least this part of what they may.
const FELT: f64 = 0.95;
/// By how much the stretch grows in a second, for each part that is lacking.
const GROWS: f64 = 1.0;
/// By how much it falls in a second when nobody falls short. After each second of that, by so much more.
const FALLS: f64 = 0.05;
/// What remains of a rate in any case.
const LEAST: f64 = 0.05;

/// What a volume of a promised rate got.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Got {
    /// In the last second, in times of its rate.
    pub(super) times: f64,
    /// Whether it always had a request waiting in that second.
    pub(super) waits: bool,
    /// Where one second in some hundred is, judged by the recent ones: promised / got.
    pub(super) likely: f64,
}

/// How far promised rates are held.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub(super) struct Rates {
    /// How many times its rate each volume may have; `None`: any number of times.
    surplus: Option<f64>,
    /// Periods since somebody fell short, and since somebody felt that it is held.
    settled: f64,
    unfelt: f64,
    /// By how much rates are lowered, at priority 1. Above zero, nobody has a surplus.
    stretch: f64,
    /// Periods for which nobody may have a surplus. Until these are a second, what volumes got in the last
    /// second is of a time in which others still had one.
    without: usize,
    /// The stretch in each period of the last second, and which of these is the oldest. What volumes got in
    /// that second says what they lack of the rates of that second, and not of those of now.
    lately: [f64; SECOND],
    oldest: usize,
    /// Periods since somebody lacked something of its lowered rate.
    calm: f64,
    /// The largest stretch that lowers some rate.
    most: f64,
}

/// What all volumes of promised rates got.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
struct Together {
    /// How many always had a request waiting.
    waiting: u32,
    /// The part that one of these lacks of its rate: the most.
    short: f64,
    /// The same of its lowered rate, beyond what it may.
    lacking: f64,
    /// The likely strain of one of these: the worst.
    likely: f64,
    /// The most that a volume got, in times of its rate, and the least that one of those got that always had
    /// a request waiting.
    most: f64,
    least: f64,
}

impl Rates {
    /// Ends a period in which volumes got this. `is_last_resort`: nobody else could give way. True: volumes
    /// are held to less, so what was seen before tells nothing of what comes.
    pub(super) fn step(
        &mut self,
        is_last_resort: bool,
        volumes: impl Iterator<Item = (Priority, Got)>,
    ) -> bool {
        let lately = self.lately.iter().sum::<f64>() / SECOND as f64;
        let add = |all: Together, (priority, got)| all.and(got, lowered(lately, priority));
        let all = volumes.fold(Together::default(), add);
        self.settled = if all.short > SHORT { 0.0 } else { self.settled + 1.0 };
        self.surplus = match self.surplus {
            Some(times) => self.moved(times, is_last_resort, all),
            None => self.first(is_last_resort, all),
        };
        self.without = if self.surplus == Some(SPARE) { self.without + 1 } else { 0 };
        let may_lower = is_last_resort && all.waiting > 1 && self.without > SECOND;
        let seconds = PERIOD.as_secs_f64();
        let is_calm = all.lacking <= 0.0 || all.waiting < 2;
        self.calm = if is_calm { self.calm + 1.0 } else { 0.0 };
        let change = if is_calm {
            -FALLS * (1.0 + self.calm * seconds)
        } else if may_lower {
            GROWS * all.lacking
        } else {
            0.0
        };
        self.stretch = (self.stretch + change * seconds).clamp(0.0, self.most);
        if let Some(oldest) = self.lately.get_mut(self.oldest) {
            *oldest = self.stretch;
        }
        self.oldest = (self.oldest + 1) % SECOND;
        self.surplus.is_some() && self.settled == 0.0
    }

    /// Holds nobody any more.
    pub(super) fn let_go(&mut self) {
        (self.surplus, self.stretch) = (None, 0.0);
    }

    /// Volumes of these priorities are promised something.
    pub(super) fn set_priorities(&mut self, priorities: impl Iterator<Item = Priority>) {
        self.most = priorities.map(Priority::get).fold(0.0, f64::max);
    }

    /// Whether volumes are held to so many times their rates.
    pub(super) const fn are_held(&self) -> bool {
        self.surplus.is_some()
    }

    /// How many times its rate a volume of this priority may have, above 0; `None`: any number of times.
    pub(super) fn of(&self, priority: Priority) -> Option<f64> {
        let surplus = self.surplus?;
        let lowered = lowered(self.stretch, priority);
        let spare = (1.0 - (1.0 - lowered) / SPENT).max(0.0);
        Some(lowered + (surplus - 1.0) * spare)
    }

    /// The first surplus, if one volume falls short and another one could give something.
    fn first(&mut self, is_last_resort: bool, all: Together) -> Option<f64> {
        self.unfelt = 0.0;
        let may_help = is_last_resort && all.short > SHORT && (all.waiting > 1 || all.most > SPARE);
        may_help.then(|| all.most.max(SPARE))
    }

    /// The next surplus.
    fn moved(&mut self, times: f64, is_last_resort: bool, all: Together) -> Option<f64> {
        let seconds = PERIOD.as_secs_f64();
        let is_felt = self.stretch > 0.0 || all.most > FELT * times;
        self.unfelt = if is_felt { 0.0 } else { self.unfelt + 1.0 };
        if self.unfelt * seconds > UNFELT {
            return None;
        }
        let has_room = all.waiting < 2 || all.least > AT_THE_CAP * times;
        let growth = if all.short > 0.0 {
            if is_last_resort { -YIELDS * all.short } else { 0.0 }
        } else if has_room && self.stretch == 0.0 {
            FAST
        } else if all.likely > 1.0 {
            -steps::back(all.likely)
        } else if self.stretch > 0.0 || all.likely == 0.0 {
            0.0 // rates first; and of what comes after a change, nothing is known yet
        } else {
            steps::slow(((ROOM.0 - all.likely) / (ROOM.0 - ROOM.1)).clamp(0.0, 1.0), self.settled)
        };
        Some((times * (1.0 + growth * seconds)).max(SPARE))
    }
}

/// What a rate of this priority is lowered to by this stretch, in times of the rate.
fn lowered(stretch: f64, priority: Priority) -> f64 {
    (1.0 - stretch / priority.get()).max(LEAST)
}

impl Together {
    /// With one more volume, whose rate is lowered to so many times of it.
    fn and(mut self, got: Got, lowered: f64) -> Self {
        self.most = self.most.max(got.times);
        if got.waits {
            self.least = if self.waiting == 0 { got.times } else { self.least.min(got.times) };
            self.waiting += 1;
            self.short = self.short.max(1.0 - got.times);
            self.lacking = self.lacking.max(lowered - SHORT - SLACK * (1.0 - lowered) - got.times);
            self.likely = self.likely.max(got.likely);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn priority(value: f64) -> Priority {
        Priority::new(value).unwrap()
    }

    fn got(times: f64) -> Got {
        Got { times, waits: true, likely: 1.0 / times }
    }

    /// Two volumes are promised so much of a device, which serves each by its weight and up to what it may
    /// have. What each gets of its rate after a minute.
    fn after_a_minute(
        priorities: [f64; 2],
        promised: [f64; 2],
        weights: [f64; 2],
        is_last_resort: bool,
    ) -> [f64; 2] {
        let mut rates = Rates::default();
        let priorities = priorities.map(priority);
        let mut times = [0.0; 2];
        for _ in 0..1_200 {
            let most = [0, 1].map(|at| rates.of(priorities[at]).map_or(1.0, |times| times * promised[at]));
            // Who may have less than its part of the device leaves the rest to the other one.
            let part = weights[0] / (weights[0] + weights[1]);
            let first = part.max(1.0 - most[1]).min(most[0]);
            let second = (1.0 - first).min(most[1]);
            times = [first / promised[0], second / promised[1]];
            rates.set_priorities(priorities.into_iter());
            rates.step(is_last_resort, priorities.into_iter().zip(times.map(got)));
        }
        times
    }

    #[test]
    fn rates_that_fit_are_all_kept_and_nothing_of_the_device_is_left_over() {
        let [a, b] = after_a_minute([1.0, 1.0], [0.45, 0.15], [16.0, 64.0], true);
        assert!((0.999..1.1).contains(&a) && b > 1.0, "{a} and {b}");
        let busy = a * 0.45 + b * 0.15;
        assert!(busy > 0.99, "{busy}");
    }

    #[test]
    fn shortfalls_are_as_priorities_the_other_way_round() {
        let got = after_a_minute([4.0, 1.0], [0.7, 0.7], [1.0, 1.0], true);
        let [high, low] = got.map(|times| 1.0 - times);
        assert!((3.5..4.5).contains(&(low / high)), "{low} of {high}");
        assert!((high + low - 0.4 / 0.7).abs() < 0.03, "the device stays busy: {high} and {low}");
    }

    #[test]
    fn a_lowered_rate_may_lack_a_twentieth_of_what_it_is_lowered_by() {
        let of = priority(1.0);
        let stretch_after = |times| {
            let lately = [0.4; SECOND];
            let mut rates =
                Rates { surplus: Some(SPARE), stretch: 0.4, lately, without: SECOND, ..Rates::default() };
            rates.set_priorities([of].into_iter());
            rates.step(true, [(of, got(times)), (of, got(times))].into_iter());
            rates.stretch
        };
        assert!(stretch_after(0.6 - SHORT - 0.019) < 0.4, "requests wait for the device, and that is well");
        assert!(stretch_after(0.6 - SHORT - 0.021) > 0.4, "the device cannot do that");
    }

    #[test]
    fn no_rate_is_lowered_before_a_second_without_a_surplus_was_seen() {
        let mut rates = Rates { surplus: Some(SPARE), ..Rates::default() };
        let of = priority(1.0);
        let mut lowered_after = |periods| {
            rates.set_priorities([of].into_iter());
            (0..periods).for_each(|_| {
                rates.step(true, [(of, got(0.5)), (of, got(1.0))].into_iter());
            });
            rates.of(of) < Some(1.0)
        };
        assert!(!lowered_after(SECOND));
        assert!(lowered_after(SECOND));
    }

    #[test]
    fn nobody_is_held_while_background_volumes_could_give_way() {
        let [high, low] = after_a_minute([4.0, 1.0], [0.7, 0.7], [1.0, 1.0], false);
        assert!((high - low).abs() < 1e-9);
    }

    #[test]
    fn the_rate_of_a_volume_that_is_alone_is_not_lowered() {
        let mut rates = Rates::default();
        let of = priority(1.0);
        for _ in 0..100 {
            rates.set_priorities([of].into_iter());
            rates.step(true, [(of, got(0.5))].into_iter());
        }
        assert_eq!(rates.of(of), None);
    }

    #[test]
    fn a_volume_that_does_not_always_wait_gives_its_surplus_too() {
        let mut rates = Rates::default();
        let of = priority(1.0);
        let open = Got { waits: false, ..got(4.0) };
        for _ in 0..40 {
            rates.step(true, [(of, got(0.5)), (of, open)].into_iter());
        }
        let times = rates.of(of);
        assert!(times.is_some_and(|times| times < 4.0), "{times:?}");
    }

    #[test]
    fn the_surplus_comes_back_within_seconds_when_all_get_what_they_may_or_only_one_waits() {
        let of = priority(1.0);
        let after = |seconds: usize, others: bool| {
            let mut rates = Rates { surplus: Some(SPARE), ..Rates::default() };
            for _ in 0..seconds * SECOND {
                let times = rates.of(of).unwrap_or(20.0).min(20.0);
                let other = Got { waits: others, ..got(if others { times } else { 0.5 }) };
                rates.step(true, [(of, got(times)), (of, other)].into_iter());
            }
            rates.of(of).unwrap_or(20.0)
        };
        assert!(after(5, true) > 5.0 && after(5, false) > 5.0, "{}, {}", after(5, true), after(5, false));
    }

    #[test]
    fn a_surplus_that_nobody_uses_is_not_held() {
        let mut rates = Rates { surplus: Some(3.0), ..Rates::default() };
        let of = priority(1.0);
        let after = |rates: &mut Rates, periods| {
            for _ in 0..periods {
                rates.step(true, [(of, got(1.2))].into_iter());
            }
            rates.are_held()
        };
        assert!(after(&mut rates, 90));
        assert!(!after(&mut rates, 20));
    }
}
