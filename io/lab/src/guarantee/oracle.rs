//! The best static setting of a cell in hindsight, and the mildest ones.
//!
//! A setting is chosen with some draws and scored with another: what is fixed cannot have seen what comes.

use serde::{Deserialize, Serialize};

use super::bed::{Bed, told};
use super::draw::Cell;
use super::outcome::{Got, Kept};
use super::setting::{Setting, Told, statics, without};

/// How many settings are tried with all draws: those that were best with the first.
const FINALISTS: usize = 12;

/// Settings that keep one window in so many less than the best keep about as many: half a percent.
const ABOUT: u64 = 200;

/// What static settings do in a cell, with the draw that is scored.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Oracle {
    /// The best one.
    pub setting: String,
    /// How it kept the promise.
    pub kept: Kept,
    /// Of each burst, whether it kept the promise in the first second.
    pub bursts: Vec<bool>,
    /// Of all settings those that are the mildest for what they keep, from the one that keeps least on.
    pub mild: Vec<Mild>,
}

/// A setting with which the other volume waits less than with any that keeps as much.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Mild {
    /// Its name.
    pub setting: String,
    /// How many windows keep the promise.
    pub met: u64,
    /// What the other volume gets.
    pub other: Got,
}

impl Oracle {
    /// Tries all static settings.
    ///
    /// # Errors
    /// If a run breaks a rule that holds for every run.
    pub(super) fn find(cell: &Cell, scored: (&Bed<'_>, Told), chosen: &[Bed<'_>]) -> anyhow::Result<Self> {
        let best = choose(cell, chosen)?;
        let (bed, told) = scored;
        let mut found = None;
        let mut all = Vec::new();
        for (place, setting) in statics(told).into_iter().enumerate() {
            let [promised, other] = bed.both(&setting)?;
            let tally = told.promise.tally(&promised);
            let kept = Kept::of(&tally, &promised);
            all.push(Mild { setting: setting.name.clone(), met: kept.met, other: Got::of(&other) });
            if place == best {
                found = Some((setting.name, kept, tally.bursts));
            }
        }
        let (setting, kept, bursts) = found.expect("the best is one of them");
        Ok(Self { setting, kept, bursts, mild: mildest_of_each(all) })
    }

    /// The setting under which the other volume waits least, of those that keep at least so many windows; if
    /// none does, of those that keep most.
    ///
    /// # Panics
    /// Never: some setting keeps most.
    pub(super) fn mildest(&self, met: u64) -> &Mild {
        let last = self.mild.last().expect("there are settings");
        self.mild.iter().find(|mild| mild.met >= met).unwrap_or(last)
    }
}

/// The place of the setting that is best over all these draws.
fn choose(cell: &Cell, beds: &[Bed<'_>]) -> anyhow::Result<usize> {
    let mut sums: Vec<(usize, Goodness)> = Vec::new();
    for bed in beds {
        // Another part of a recording has another latency alone, and so another promise.
        let told = told(cell, &bed.alone(&without())?);
        let settings = statics(told);
        if sums.is_empty() {
            sums = (0..settings.len()).map(|place| (place, Goodness::default())).collect();
        }
        for (place, sum) in &mut sums {
            sum.add(goodness(bed, told, &settings[*place])?);
        }
        best_first(&mut sums);
        sums.truncate(FINALISTS);
    }
    Ok(sums.first().expect("there are draws and settings").0)
}

/// Settings that keep about as many windows as the one that keeps most come first, and of these those under
/// which the other volume gets most.
fn best_first(sums: &mut [(usize, Goodness)]) {
    let most = sums.iter().map(|(_, sum)| sum.met).max().unwrap_or(0);
    sums.sort_by_key(|(_, sum)| {
        let is_about_best = sum.met + sum.windows / ABOUT >= most;
        // Of the others, those that keep most.
        let (met, answered) = if is_about_best { (most, sum.answered) } else { (sum.met, 0) };
        std::cmp::Reverse((is_about_best, met, answered, sum.in_time))
    });
}

/// How good a setting is.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Goodness {
    /// Windows that keep the promise.
    met: u64,
    /// All windows.
    windows: u64,
    /// Requests in time.
    in_time: u64,
    /// What the other volume gets.
    answered: u64,
}

impl Goodness {
    const fn add(&mut self, other: Self) {
        self.met += other.met;
        self.windows += other.windows;
        self.in_time += other.in_time;
        self.answered += other.answered;
    }
}

fn goodness(bed: &Bed<'_>, told: Told, setting: &Setting) -> anyhow::Result<Goodness> {
    let [promised, other] = bed.both(setting)?;
    let Kept { met, windows, in_time, .. } = Kept::of(&told.promise.tally(&promised), &promised);
    Ok(Goodness { met, windows, in_time, answered: Got::of(&other).answered })
}

/// Leaves out each setting that keeps no more than a milder one.
fn mildest_of_each(mut all: Vec<Mild>) -> Vec<Mild> {
    all.sort_by_key(|mild| (mild.other.mean_us, std::cmp::Reverse(mild.met)));
    let mut kept: Vec<Mild> = Vec::new();
    for mild in all {
        if kept.last().is_none_or(|milder| milder.met < mild.met) {
            kept.push(mild);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_settings_that_keep_about_as_many_windows_the_one_that_lets_the_other_do_most_is_best() {
        let good = |met, answered| Goodness { met, windows: 300, in_time: met, answered };
        let all = [good(290, 10), good(289, 5_000), good(288, 9_000), good(290, 20), good(287, 1)];
        let mut sums: Vec<(usize, Goodness)> = all.into_iter().enumerate().collect();
        best_first(&mut sums);
        assert_eq!(sums.iter().map(|(place, _)| *place).collect::<Vec<_>>(), [1, 3, 0, 2, 4]);
    }

    #[test]
    fn the_mildest_setting_is_the_one_that_keeps_as_much_with_the_least_wait_of_the_other() {
        let mild = |met: u64, mean_us: u64| Mild {
            setting: format!("{met} windows, {mean_us} us"),
            met,
            other: Got { mean_us, p99_us: 0, answered: 0 },
        };
        let all = [mild(90, 5), mild(99, 50), mild(80, 7), mild(99, 20), mild(98, 20), mild(100, 900)];
        let oracle = Oracle {
            setting: String::new(),
            kept: Kept::default(),
            bursts: Vec::new(),
            mild: mildest_of_each(all.to_vec()),
        };
        let means = oracle.mild.iter().map(|mild| mild.other.mean_us).collect::<Vec<_>>();
        assert_eq!(means, [5, 20, 900]);
        let mean_of = |met| oracle.mildest(met).other.mean_us;
        assert_eq!(mean_of(95), 20);
        assert_eq!(mean_of(80), 5);
        assert_eq!(mean_of(101), 900, "none keeps as much, so the best");
    }
}
