//! Hindered applications: they fall short though they have all the requests that they can use. A larger
//! allocation would not help them; fewer requests of others would.
//!
//! Example: a workload of 25 threads has 25 requests outstanding, whatever it is granted. How fast they are
//! served depends on how many requests of others are at the array with them. The 80 % rule finds rightly that
//! such an application cannot use more, so that all requirements fit. But then the excess goes to the others,
//! and keeps the application below its target. In the paper's figure 3, a workload like that meets its target
//! beside one of 100 threads. It could not, if all of these were let in.
//!
//! So a **hindered** application puts the array in overload, and its upper end in the program is not what it
//! can use. The part of its allotment that it cannot use stays empty, and the array is quieter. The paper's
//! program has no such upper end, so it does the same; its slope "incorporates implicitly" what the others
//! do. The others are held back no further than priorities say: as soon as their weighted errors are as
//! large, the program gives them no less.
//!
//! **A margin.** An application counts as hindered until it is a little above its target. If the target
//! itself were the limit, the noise of every second interval would end the state. The excess that is then let
//! in takes some steps to be taken out again.
//!
//! **When it does not help.** Something other than the other applications may hold it back: its own threads,
//! or a network. Then its performance does not grow while the others have fewer and fewer requests at the
//! array. After a trial without success, the law gives it up for [`REST`] intervals, and then tries again.
//!
//! **When a trial is judged.** The measure is how far the others' requests at the array have fallen. The
//! application's own allocation would be the wrong measure, because at first it grows by requests that were
//! not used. Others that have few requests at the array cannot have much fewer. There the trial is judged
//! when they have half of what they had, or only the least that everybody keeps. If only a large fall
//! counted, one thread with a target that no array can meet would hold them back for good.

use crate::completions::{Completions, Constant};

/// Up to which performance an application counts as hindered.
const CONTENT: f64 = 1.05;
/// By how much the others' use has to fall before a trial is judged: this share of the total, or
/// [`TRIED_OF_FEW`] of what they had, whichever is less.
const TRIED: f64 = 0.15;
const TRIED_OF_FEW: f64 = 0.5;
/// The least slope that is a help; see `slope.rs`.
const HELPS: f64 = 0.1;
/// For how many intervals the others are not held back again for an application that this did not help.
const REST: u32 = 60;
/// The weight of a new interval in the mean of performance.
const NEW: f64 = 0.25;

/// Whether an application is hindered, and whether holding back the others helps it.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub(crate) struct Hindered {
    trial: Option<Trial>,
    /// For how many more intervals the others are not held back for it.
    rest: u32,
}

/// What was seen since the application is hindered.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Trial {
    /// How many requests of others were at the array when the trial began.
    others: f64,
    /// Its performance then.
    performance: f64,
    /// Its performance now, as a mean.
    now: f64,
}

impl Hindered {
    /// Takes in the interval that ended, and returns whether the others are to be held back for the
    /// application.
    ///
    /// `others` requests of others were at the array, and the others keep `least` in any case. The
    /// application can use `usable` requests (`None`: more than it had), and had `performance`, if any.
    pub(crate) fn observe(
        &mut self,
        others: f64,
        least: f64,
        usable: Option<f64>,
        performance: Option<f64>,
        total: f64,
        completions: Completions,
    ) -> bool {
        let value = |constant, value| completions.value(constant, value);
        let content = value(Constant::Content, CONTENT);
        self.rest = self.rest.saturating_sub(1);
        let short = performance.filter(|y| *y < content && usable.is_some() && self.rest == 0);
        let Some(performance) = short else {
            self.trial = None;
            return false;
        };
        let trial = self.trial.get_or_insert(Trial { others, performance, now: performance });
        trial.now += value(Constant::New, NEW) * (performance - trial.now);
        let quieter = trial.others - others;
        let (tried, of_few) = (value(Constant::Tried, TRIED), value(Constant::TriedOfFew, TRIED_OF_FEW));
        let is_tried = quieter >= (tried * total).min(of_few * trial.others) || others <= least;
        let helps = value(Constant::Helps, HELPS);
        if is_tried && trial.now - trial.performance <= helps * quieter / total {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // of a small number
            let rest = value(Constant::Rest, f64::from(REST)) as u32;
            *self = Self { trial: None, rest };
        }
        self.rest == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOTAL: f64 = 100.0;

    #[test]
    fn who_falls_short_and_cannot_use_more_is_hindered_until_it_is_a_little_above_its_target() {
        let mut hindered = Hindered::default();
        let mut observe =
            |usable, performance| hindered.observe(40.0, 2.0, usable, performance, TOTAL, Completions::ALL);
        assert!(observe(Some(30.0), Some(0.9)));
        assert!(observe(Some(30.0), Some(1.01)));
        assert!(!observe(Some(30.0), Some(1.06)));
        assert!(!observe(None, Some(0.5)));
        assert!(!observe(Some(30.0), None));
    }

    #[test]
    fn who_is_not_helped_is_left_alone_for_a_while() {
        let mut hindered = Hindered::default();
        let mut observe = |others, performance| {
            hindered.observe(others, 2.0, Some(10.0), Some(performance), TOTAL, Completions::ALL)
        };
        assert!(observe(80.0, 0.5));
        assert!(observe(70.0, 0.51));
        assert!(!observe(64.0, 0.5));
        let left_alone = (1..REST).filter(|_| !observe(80.0, 0.5)).count();
        assert_eq!(left_alone, REST as usize - 1);
        assert!(observe(80.0, 0.5));
    }

    #[test]
    fn others_that_have_little_are_tried_with_half_of_it_or_the_least_that_they_keep() {
        let mut hindered = Hindered::default();
        let mut observe =
            |others| hindered.observe(others, 2.0, Some(1.0), Some(0.5), TOTAL, Completions::ALL);
        assert!(observe(12.0));
        assert!(observe(7.0));
        assert!(!observe(6.0));
        assert!(!Hindered::default().observe(2.0, 2.0, Some(1.0), Some(0.5), TOTAL, Completions::ALL));
    }

    #[test]
    fn who_is_helped_goes_on() {
        let mut hindered = Hindered::default();
        let grows = |others: f64| 0.5 + 0.005 * (80.0 - others);
        assert!((10..80).rev().all(|others| {
            let others = f64::from(others);
            hindered.observe(others, 2.0, Some(10.0), Some(grows(others)), TOTAL, Completions::ALL)
        }));
    }
}
