//! Who falls short though it has all the requests that it can use: what it lacks is not a larger allocation,
//! but less beside it.
//!
//! A workload of 25 threads has 25 requests outstanding, whatever it is granted. How fast they are served
//! depends on how many of others are at the array with them. The 80 % rule finds rightly that such an
//! application cannot use more, so that all requirements fit; and then the excess, given to the others, is
//! what keeps it below its target. In the paper's figure 3 a workload like that meets its target beside one
//! of 100 threads, which it could not if these were all let in.
//!
//! So an application that is **hindered** puts the array in overload, and its upper end in the program is not
//! what it can use. What it is allotted beyond that stays empty, and the array is quieter by so much: the
//! paper's program, which has no such end, does the same, and its slope "incorporates implicitly" what the
//! others do. Nobody is quieted further than priorities say: as soon as the others' weighted errors are as
//! large, the program gives them no less.
//!
//! **A margin.** It is hindered until it is a little above its target. At the target itself it would be let
//! go by every second interval's noise, and the excess that is then let in takes some steps to be taken out
//! again.
//!
//! **What does not help.** Something else than the others may hold it back: its own threads, a network. Then
//! its performance does not grow while the others have fewer and fewer requests at the array, and it is given
//! up for a while: [`REST`] intervals, after which it is tried again. Its allocation would be the wrong
//! measure: at first it grows by what nobody used. Others that have little at the array cannot have much
//! less: there it is judged when they have half of that, or the least that everybody keeps. If only a large
//! fall counted, they would be held back for good by one thread with a target that no array can meet.

/// Up to which performance an application counts as hindered.
const CONTENT: f64 = 1.05;
/// By how much the others' use has to have fallen before it is judged whether that helps, as a share of the
/// total; or, if that is less, as a share of what they had.
const TRIED: f64 = 0.15;
const TRIED_OF_FEW: f64 = 0.5;
/// The least slope that is a help; see `slope.rs`.
const HELPS: f64 = 0.1;
/// How many intervals one that is not helped is left alone.
const REST: u32 = 60;
/// What a new interval counts in the mean of performance.
const NEW: f64 = 0.25;

/// What is known of an application's being hindered.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub(crate) struct Hindered {
    trial: Option<Trial>,
    /// How many intervals it is still left alone.
    rest: u32,
}

/// Since it is hindered.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Trial {
    /// How many requests of others were at the array when it began.
    others: f64,
    /// Its performance then.
    performance: f64,
    /// Its performance now, as a mean.
    now: f64,
}

impl Hindered {
    /// Takes in the interval that ended, in which so many requests of others were at the array, who keep
    /// `least` in any case, and an application could use so many and performed so, if it did; whether the
    /// others are to be held back for it.
    pub(crate) fn observe(
        &mut self,
        others: f64,
        least: f64,
        usable: Option<f64>,
        performance: Option<f64>,
        total: f64,
    ) -> bool {
        self.rest = self.rest.saturating_sub(1);
        let short = performance.filter(|y| *y < CONTENT && usable.is_some() && self.rest == 0);
        let Some(performance) = short else {
            self.trial = None;
            return false;
        };
        let trial = self.trial.get_or_insert(Trial { others, performance, now: performance });
        trial.now += NEW * (performance - trial.now);
        let quieter = trial.others - others;
        let is_tried = quieter >= (TRIED * total).min(TRIED_OF_FEW * trial.others) || others <= least;
        if is_tried && trial.now - trial.performance <= HELPS * quieter / total {
            *self = Self { trial: None, rest: REST };
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
        let mut observe = |usable, performance| hindered.observe(40.0, 2.0, usable, performance, TOTAL);
        assert!(observe(Some(30.0), Some(0.9)));
        assert!(observe(Some(30.0), Some(1.01)));
        assert!(!observe(Some(30.0), Some(1.06)));
        assert!(!observe(None, Some(0.5)));
        assert!(!observe(Some(30.0), None));
    }

    #[test]
    fn who_is_not_helped_is_left_alone_for_a_while() {
        let mut hindered = Hindered::default();
        let mut observe =
            |others, performance| hindered.observe(others, 2.0, Some(10.0), Some(performance), TOTAL);
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
        let mut observe = |others| hindered.observe(others, 2.0, Some(1.0), Some(0.5), TOTAL);
        assert!(observe(12.0));
        assert!(observe(7.0));
        assert!(!observe(6.0));
        assert!(!Hindered::default().observe(2.0, 2.0, Some(1.0), Some(0.5), TOTAL));
    }

    #[test]
    fn who_is_helped_goes_on() {
        let mut hindered = Hindered::default();
        let grows = |others: f64| 0.5 + 0.005 * (80.0 - others);
        assert!((10..80).rev().all(|others| {
            let others = f64::from(others);
            hindered.observe(others, 2.0, Some(10.0), Some(grows(others)), TOTAL)
        }));
    }
}
