//! How much of each promised rate is covered while not all of them fit.
//!
//! **What is covered goes first.** A volume of a promised rate sends as many requests as that covers before
//! all background requests. What it asks for beyond that is background, as requests of volumes that are
//! promised nothing: it has turns with them, and the guard holds it back while a promise needs it. Example: a
//! device does 2,000 requests a second. Volume a is promised 900 and has 16 threads; volume b is promised 300
//! and has 64. Without a law, a gets 400, and b gets 1,600. Under this law, both get what they are promised,
//! and share the other 800.
//!
//! **Why no caps.** In the first form of this law, each volume was held to so many times its rate while one
//! fell short. Background volumes got nothing then, since promised requests went first, also those beyond
//! their rates. And one volume with a target that nothing can keep never had a surplus to give away.
//!
//! **A little more than the rate** is covered: a volume that is held to exactly its rate misses every other
//! window, and says nothing about the room that there is.
//!
//! **Not all rates fit** if volumes fall short though nothing goes beyond what is covered. Then less is
//! covered: each rate is lowered by `stretch / priority`. So the shortfalls of two volumes are as their
//! priorities, the other way round. Example: a stretch of 0.4 takes 40 % from a volume of priority 1, and
//! 10 % from one of priority 4. The stretch follows from the `level`: the part of all rates together that is
//! covered. The level is what moves, because priorities may be a million or a millionth.
//!
//! **A rate that is far beyond the device** counts as one and a half times what the device could give to that
//! volume alone. Example: 1,000,000 requests a second are promised beside 900, and the device does 2,000. It
//! is 3,000 beside 900 that are lowered.
//!
//! **In vain.** Lowering helps only if the device is what those lack that fall short. One thread may be
//! promised more than a thread can get. Then what others lose is no gain for anybody. The law sees that and
//! lets go: for five seconds, then for ten, and so on.
//!
//! A latency is not stretched: a volume of which fewer requests are covered than come only waits longer.

use weir_model::Priority;

use super::{PERIOD, SECOND};

/// A volume falls short if it lacks more than this part of what is covered: less is chance.
const SHORT: f64 = 0.01;
/// Of a lowered rate, it may lack so much more for each part by which that is lowered. Otherwise requests
/// never wait for the device, and disks that choose among those that wait do less: two thirds, on RAID-5.
const SLACK: f64 = 0.05;
/// What is covered at most, in times of the rates.
const ALL: f64 = 1.1;
/// What is covered of a rate that is not lowered while others are.
const SPARE: f64 = 1.03;
/// A rate that is lowered by this part has nothing to spare.
const SPENT: f64 = 0.02;
/// By how much the level falls in a second, for each part that is lacking.
const FALLS: f64 = 1.0;
/// The same below what the volumes get in sum: what was lowered shows only after a second.
const FALLS_BELOW: f64 = 0.1;
/// By how much it grows in a second when nobody falls short. After each second of that, by so much more.
const GROWS: f64 = 0.03;
/// What remains of a rate in any case.
const LEAST: f64 = 0.05;
/// A rate counts as so many times what the device could give to the volume alone, at most. With 1.1, a volume
/// whose rate was a third beyond the device fell short farther than another one of its priority.
const REACH: f64 = 1.5;
/// Lowering may be in vain once volumes lose this part of what all get of their rates, and a standard
/// deviation of a count. With a twentieth at each moment, a thread that lacked 8 % of its rate cost others
/// 6 % of theirs for good.
const LOST: f64 = 0.02;
/// It is, if others gain less than this part of what is lost. Disks do less while fewer requests wait for
/// them, so a good part of what is lost is no gain for anybody.
const GAINED: f64 = 0.2;
/// After so many periods it shows: a second and a half.
const SHOWS: u32 = 30;
/// After so many periods it has helped for long enough to be trusted again: twenty seconds.
const TRUSTED: u32 = 400;
/// Periods for which nothing is lowered at first, and at most: five seconds, and five minutes.
const PAUSE: (u32, u32) = (100, 6_000);

/// What a volume of a promised rate got in the last second.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Got {
    /// In times of its rate.
    pub(super) times: f64,
    /// Whether it always had a request waiting, and enough of them for its rate.
    pub(super) waits: bool,
    /// Its rate, in requests a second.
    pub(super) rate: f64,
    /// Its part of the requests at the device: above 0, up to 1.
    pub(super) part: f64,
}

/// How much of promised rates is covered.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Rates {
    /// In times of all of them together. Below 1 they are lowered.
    level: f64,
    /// By how much rates are lowered, at priority 1.
    stretch: f64,
    /// The stretch in each period of the last second, and which of these is the oldest. What volumes got in
    /// that second says what they lack of what was covered then, and not of what is now.
    lately: [f64; SECOND],
    oldest: usize,
    /// Periods in which nothing else could give way. Until these are a second, what volumes got in the last
    /// second is of a time in which something could.
    last_resort: usize,
    /// Periods since somebody lacked something.
    calm: f64,
    vain: Vain,
    /// Kept from period to period, so that no period allocates.
    demands: Vec<Demand>,
}

/// What a volume asks of the device.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Demand {
    priority: f64,
    /// Its rate, or what the device could give it, in requests a second; and in times of its rate.
    rate: f64,
    reach: f64,
    /// What it got, in times of `rate`.
    times: f64,
    waits: bool,
}

/// Whether lowered rates help anybody.
#[derive(Clone, PartialEq, Debug)]
struct Vain {
    /// Of each volume: what it got of its rate when rates were lowered first, in requests a second, and the
    /// sum of that over the periods since it shows.
    seen: Vec<(f64, f64)>,
    /// Periods for which rates are lowered.
    periods: u32,
    pause: u32,
    next_pause: u32,
}

impl Default for Rates {
    fn default() -> Self {
        Self {
            level: ALL,
            stretch: 0.0,
            lately: [0.0; SECOND],
            oldest: 0,
            last_resort: 0,
            calm: 0.0,
            vain: Vain::NONE,
            demands: Vec::new(),
        }
    }
}

impl Rates {
    /// Ends a period in which volumes got this. `is_last_resort`: nobody else could give way.
    pub(super) fn step(&mut self, is_last_resort: bool, volumes: impl Iterator<Item = (Priority, Got)>) {
        self.demands.clear();
        self.demands.extend(volumes.map(|(priority, got)| Demand::of(priority, got)));
        self.last_resort = if is_last_resort { self.last_resort + 1 } else { 0 };
        let waiting = self.demands.iter().filter(|demand| demand.waits).count();
        let lacking = if waiting < 2 { 0.0 } else { self.lacking() };
        self.calm = if lacking > 0.0 { 0.0 } else { self.calm + 1.0 };
        let seconds = PERIOD.as_secs_f64();
        if lacking <= 0.0 {
            self.level += GROWS * (1.0 + self.calm * seconds) * seconds;
        } else if self.last_resort > SECOND && self.vain.pause == 0 {
            let fits = self.fits();
            let fast = (self.level - FALLS * lacking * seconds).max(fits.min(self.level));
            self.level = fast.min(self.level - FALLS_BELOW * lacking * seconds);
        }
        self.level = self.level.clamp(LEAST, ALL);
        if self.vain.step(self.are_lowered(), &self.demands) {
            self.level = ALL;
        }
        self.stretch = self.stretched();
        if let Some(oldest) = self.lately.get_mut(self.oldest) {
            *oldest = self.stretch;
        }
        self.oldest = (self.oldest + 1) % SECOND;
    }

    /// Lowers nothing any more.
    pub(super) fn let_go(&mut self) {
        (self.level, self.stretch) = (ALL, 0.0);
    }

    /// Whether rates are lowered.
    pub(super) fn are_lowered(&self) -> bool {
        self.level < SPARE
    }

    /// How many times its rate is covered of a volume of this priority that got this, above 0.
    pub(super) fn covered(&self, priority: Priority, got: Option<Got>) -> f64 {
        if !self.are_lowered() {
            return self.level;
        }
        let reach = got.map_or(1.0, |got| Demand::of(priority, got).reach);
        reach * lowered(self.stretch, priority.get())
    }

    /// The most that a volume lacks that always had a request waiting, in times of its rate.
    fn lacking(&self) -> f64 {
        let stretch = self.lately.iter().copied().fold(self.stretch, f64::max);
        let lacks = |demand: &Demand| {
            let lowered = lowered(stretch, demand.priority);
            lowered - SHORT - SLACK * (1.0 - lowered).max(0.0) - demand.times
        };
        self.demands.iter().filter(|demand| demand.waits).map(lacks).fold(0.0, f64::max)
    }

    /// The level that would fit if the device did no more than now, and for rates only.
    fn fits(&self) -> f64 {
        let sum = |of: fn(&Demand) -> f64| self.demands.iter().map(of).sum::<f64>();
        sum(|demand| demand.rate * demand.times.min(SPARE)) / sum(|demand| demand.rate)
    }

    /// The stretch that covers as much in sum as the level says.
    fn stretched(&self) -> f64 {
        if !self.are_lowered() {
            return 0.0;
        }
        let sum = |stretch: f64| -> f64 {
            self.demands.iter().map(|demand| demand.rate * lowered(stretch, demand.priority)).sum()
        };
        let wanted = self.level / SPARE * sum(0.0);
        let priorities = || self.demands.iter().map(|demand| demand.priority);
        // Below the first, nothing is lowered that can be felt; above the second, everything is as far as
        // can be.
        let (mut low, mut high) =
            (priorities().fold(f64::MAX, f64::min) * 1e-3, priorities().fold(0.0, f64::max));
        for _ in 0..STEPS {
            let middle = low.sqrt() * high.sqrt();
            if sum(middle) > wanted { low = middle } else { high = middle }
        }
        if high.is_finite() { high } else { 0.0 }
    }
}

/// Halvings of the range of a stretch, each of its logarithm.
const STEPS: u32 = 32;

/// What is covered of a rate of this priority at this stretch, in times of the rate.
fn lowered(stretch: f64, priority: f64) -> f64 {
    let lowered = (1.0 - stretch / priority).max(LEAST);
    let spare = (1.0 - (1.0 - lowered) / SPENT).max(0.0);
    lowered + (SPARE - 1.0) * spare
}

impl Demand {
    fn of(priority: Priority, got: Got) -> Self {
        let alone = REACH * got.times / got.part;
        let reach = if alone > 0.0 { alone.min(1.0) } else { 1.0 };
        Self {
            priority: priority.get(),
            rate: got.rate * reach,
            reach,
            times: got.times / reach,
            waits: got.waits,
        }
    }

    /// What it got of its rate, in requests a second.
    fn kept(&self) -> f64 {
        self.rate * self.times.min(SPARE)
    }
}

impl Vain {
    const NONE: Self = Self { seen: Vec::new(), periods: 0, pause: 0, next_pause: PAUSE.0 };

    /// Ends a period. True: rates are lowered in vain.
    fn step(&mut self, are_lowered: bool, demands: &[Demand]) -> bool {
        self.pause = self.pause.saturating_sub(1);
        if !are_lowered {
            self.seen.clear();
            return false;
        }
        if self.seen.len() != demands.len() {
            self.seen.clear(); // of others than these
            self.seen.extend(demands.iter().map(|demand| (demand.kept(), 0.0)));
            self.periods = 0;
        }
        self.periods = self.periods.saturating_add(1);
        if self.periods < SHOWS {
            return false;
        }
        for ((_, sum), demand) in self.seen.iter_mut().zip(demands) {
            *sum += demand.kept();
        }
        if self.is_loss(demands) {
            self.pause = self.next_pause;
            self.next_pause = (2 * self.next_pause).min(PAUSE.1);
            return true;
        }
        if self.periods >= TRUSTED {
            self.next_pause = PAUSE.0;
        }
        false
    }

    /// Whether some have lost what is no gain for others, on average since it shows.
    fn is_loss(&self, demands: &[Demand]) -> bool {
        let periods = f64::from(self.periods - SHOWS + 1);
        let seconds = (periods * PERIOD.as_secs_f64()).max(1.0);
        let waiting = || self.seen.iter().zip(demands).filter(|(_, demand)| demand.waits);
        let change = || waiting().map(|((before, sum), _)| sum / periods - before);
        let before: f64 = waiting().map(|((before, _), _)| before).sum();
        let lost: f64 = change().map(|change| (-change).max(0.0)).sum();
        let gained: f64 = change().map(|change| change.max(0.0)).sum();
        lost > LOST * before + (before / seconds).sqrt() && gained < GAINED * lost
    }
}

#[cfg(test)]
mod tests;
