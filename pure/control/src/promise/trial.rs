//! Whether it pays that promised volumes are held back for one another.
//!
//! An order (`order`) and rates that are held (`rates`) take from one promise what another one lacks. That
//! helps only if the device is what they lack. Example: eight servers take 4 ms each, and a thread is
//! promised 260 requests a second. It gets 250 and never waits. Whatever the others give up, it gets no more.
//!
//! The law cannot know that beforehand, so it compares. It knows what promises lack while nobody is held
//! back, and what they lack meanwhile:
//!
//! ```text
//! lacks = sum of priority x max(0, 1 - what it gets / what it is promised), over the sum of priorities
//! ```
//!
//! - Nobody is held back while nothing is lacking. A promise that is kept, if only just, needs no help: a bad
//!   moment in ten seconds does not count.
//! - If a quarter more is lacking while volumes are held back than before, they are let go: for five seconds,
//!   then for ten, and so on up to five minutes.
//! - Loads come and go, so the most that was lacking before counts. It is forgotten, half of it in ten
//!   minutes. So the law lets go now and then to see what is lacking now.
//! - Those that are let go have a backlog. What they lack for the next three seconds says nothing of a time
//!   in which nobody is held back.

use super::line::Line;

/// By which part of the difference what is lacking follows in a period: within a second.
const FOLLOWS: f64 = 0.05;
/// The same for what is lacking all the time: within ten seconds.
const FOLLOWS_SLOWLY: f64 = 0.005;
/// If so much is lacking in a second, that is not by chance.
const MUCH: f64 = 0.03;
/// What is lacking by chance.
const CHANCE: f64 = 0.005;
/// So many times what was lacking before may be chance, too.
const WORSE: f64 = 1.25;
/// After so many periods it shows whether holding back helps: a second and a half.
const SHOWS: u32 = 30;
/// After so many periods it has helped for long enough to be trusted again: twenty seconds.
const TRUSTED: u32 = 400;
/// Periods for which volumes are let go at first, and at most: five seconds, and five minutes.
const AT_FIRST: u32 = 100;
const AT_MOST: u32 = 6_000;
/// What is lacking is known once it was seen for so much of that second: half a second.
const KNOWN: f64 = 0.4;
/// The most that was lacking counts once so much was seen: a load that has just begun has bad moments.
const SURE: f64 = 0.9;
/// Periods after which a backlog is gone: three seconds.
const BACKLOG: u32 = 60;
/// What remains in a period of the most that was lacking before: a half in ten minutes.
const REMAINS: f64 = 0.999_942;

/// A comparison of what promises lack with and without holding volumes back.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Trial {
    /// What is lacking while nobody is held back, in a second and all the time.
    free: Mean,
    slow: Mean,
    /// The most of it, and what is lacking while somebody is held back.
    most: f64,
    held: f64,
    /// Periods since volumes are held back.
    periods: u32,
    /// Periods for which none may be, and for how many it will be the next time.
    pause: u32,
    next_pause: u32,
    /// Periods for which there is a backlog.
    backlog: u32,
}

/// A mean that follows, and how much is known of it: 0 to 1.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
struct Mean {
    sum: f64,
    weight: f64,
}

impl Mean {
    fn note(&mut self, value: f64, follows: f64) {
        self.sum += (value - self.sum) * follows;
        self.weight += (1.0 - self.weight) * follows;
    }

    /// `None`: too little was seen.
    fn get(self) -> Option<f64> {
        (self.weight >= KNOWN).then(|| self.sum / self.weight)
    }
}

impl Default for Trial {
    fn default() -> Self {
        Self {
            free: Mean::default(),
            slow: Mean::default(),
            most: 0.0,
            held: 0.0,
            periods: 0,
            pause: 0,
            next_pause: AT_FIRST,
            backlog: 0,
        }
    }
}

impl Trial {
    /// Whether volumes may be held back, if they are not.
    pub(super) fn may_begin(&self) -> bool {
        self.pause == 0
            && (self.free.get().is_some_and(|free| free > MUCH)
                || self.slow.get().is_some_and(|slow| slow > CHANCE))
    }

    /// Ends a period with these promised volumes. True: they are held back in vain, and must be let go.
    pub(super) fn step(&mut self, lines: &[Line], is_held: bool) -> bool {
        self.pause = self.pause.saturating_sub(1);
        self.backlog = self.backlog.saturating_sub(1);
        self.most *= REMAINS;
        if lines.len() < 2 {
            return false; // a volume that is alone says nothing of two
        }
        let lacking = lacking(lines);
        if !is_held {
            self.periods = 0;
            if self.backlog == 0 {
                self.free.note(lacking, FOLLOWS);
                self.slow.note(lacking, FOLLOWS_SLOWLY);
                if self.free.weight >= SURE {
                    self.most = self.most.max(self.free.sum);
                }
            }
            return false;
        }
        if self.periods == 0 {
            self.held = self.free.get().unwrap_or_default();
            self.most = self.most.max(self.held);
        }
        self.periods = self.periods.saturating_add(1);
        self.held += (lacking - self.held) * FOLLOWS;
        if self.periods >= SHOWS && self.held > WORSE * self.most + CHANCE {
            (self.free, self.backlog) = (Mean::default(), BACKLOG);
            self.pause = self.next_pause;
            self.next_pause = (2 * self.next_pause).min(AT_MOST);
            self.periods = 0;
            return true;
        }
        if self.periods >= TRUSTED {
            self.next_pause = AT_FIRST;
        }
        false
    }
}

/// What promises lack, by priority: 0 to 1. Priorities count relative to the highest: the sum of two that are
/// as high as can be written is not a number.
fn lacking(lines: &[Line]) -> f64 {
    let highest = lines.iter().map(|line| line.priority.get()).fold(0.0, f64::max);
    let add = |(lacks, all): (f64, f64), line: &Line| {
        let weight = line.priority.get() / highest;
        (lacks + weight * (1.0 - 1.0 / line.close.max(1.0)), all + weight)
    };
    let (lacks, all) = lines.iter().fold((0.0, 0.0), add);
    lacks / all
}

#[cfg(test)]
mod tests {
    use weir_model::Priority;

    use super::super::line::tests::line;
    use super::*;

    /// The first of so many periods in which volumes are let go.
    fn let_go(trial: &mut Trial, periods: u32, close: [f64; 2], is_held: bool) -> Option<u32> {
        let lines = [line(1, 50.0, close[0], 5.0), line(2, 50.0, close[1], 5.0)];
        (1..=periods).find(|_| trial.step(&lines, is_held))
    }

    #[test]
    fn while_all_promises_are_kept_nobody_may_be_held_back() {
        let mut trial = Trial::default();
        let_go(&mut trial, 1_000, [0.99, 0.99], false);
        assert!(!trial.may_begin());
        let_go(&mut trial, 20, [1.5, 0.5], false);
        assert!(trial.may_begin(), "one has been missed for a second");
    }

    #[test]
    fn a_bad_moment_holds_nobody_back_and_a_little_that_is_lacking_all_the_time_does() {
        let mut trial = Trial::default();
        let_go(&mut trial, 1_000, [0.9, 0.9], false);
        let_go(&mut trial, 5, [1.05, 0.9], false);
        assert!(!trial.may_begin(), "a quarter of a second");
        let_go(&mut trial, 200, [1.05, 0.9], false);
        assert!(trial.may_begin(), "ten seconds");
    }

    #[test]
    fn what_is_lacking_is_known_after_half_a_second() {
        let mut trial = Trial::default();
        let_go(&mut trial, 9, [4.0, 0.1], false);
        assert!(!trial.may_begin());
        let_go(&mut trial, 1, [4.0, 0.1], false);
        assert!(trial.may_begin());
        assert_eq!(let_go(&mut trial, 1_000, [1.5, 0.9], true), None, "less than was lacking before");
    }

    #[test]
    fn volumes_that_are_held_back_in_vain_are_let_go_soon_and_each_time_for_longer() {
        let mut trial = Trial::default();
        let pauses = [2, 4, 8, 16].map(|_| {
            let_go(&mut trial, 100, [4.0, 0.9], false);
            assert_eq!(let_go(&mut trial, 1_000, [4.0, 5.0], true), Some(SHOWS));
            (1..).find(|_| {
                let_go(&mut trial, 1, [4.0, 0.9], false);
                trial.may_begin()
            })
        });
        assert_eq!(pauses, [100, 200, 400, 800].map(Some));
    }

    #[test]
    fn volumes_that_are_held_back_with_success_stay_so() {
        let mut trial = Trial::default();
        let_go(&mut trial, 100, [4.0, 0.1], false);
        assert_eq!(let_go(&mut trial, 6_000, [0.95, 0.9], true), None);
        assert_eq!(let_go(&mut trial, 2_000, [1.2, 1.2], true), None, "both lack less than one did");
    }

    #[test]
    fn what_was_lacking_before_is_forgotten() {
        let mut trial = Trial::default();
        let_go(&mut trial, 100, [4.0, 0.1], false);
        let minutes = let_go(&mut trial, 100_000, [1.5, 1.0], true).unwrap() / 1_200;
        assert!((5..20).contains(&minutes), "{minutes}");
    }

    #[test]
    fn the_backlog_of_those_that_were_let_go_counts_for_nothing() {
        let mut trial = Trial::default();
        let_go(&mut trial, 100, [4.0, 0.9], false);
        assert!(let_go(&mut trial, 100, [4.0, 5.0], true).is_some());
        let before = trial.most;
        let_go(&mut trial, BACKLOG - 1, [4.0, 9.0], false);
        assert!(trial.most < before);
        let_go(&mut trial, 100, [4.0, 9.0], false);
        assert!(trial.most > before);
    }

    #[test]
    fn after_a_success_of_twenty_seconds_the_next_pause_is_a_short_one() {
        let mut trial = Trial::default();
        let pause_after = |trial: &mut Trial| {
            let_go(trial, 1_000, [4.0, 0.9], false);
            assert!(let_go(trial, 1_000, [4.0, 5.0], true).is_some());
            trial.pause
        };
        assert_eq!([pause_after(&mut trial), pause_after(&mut trial)], [AT_FIRST, 2 * AT_FIRST]);
        let_go(&mut trial, 1_000, [4.0, 0.9], false);
        assert_eq!(let_go(&mut trial, TRUSTED, [1.0, 1.0], true), None);
        assert_eq!(pause_after(&mut trial), AT_FIRST);
    }

    #[test]
    fn what_a_promise_lacks_counts_by_its_priority() {
        let of = |close, priority| Line {
            priority: Priority::new(priority).unwrap(),
            ..line(1, 50.0, close, 5.0)
        };
        let lacks = lacking(&[of(2.0, 4.0), of(0.5, 1.0)]);
        assert!((lacks - 0.4).abs() < 1e-9, "{lacks}");
        for extreme in [f64::MAX, f64::MIN_POSITIVE / 4.0] {
            let lacks = lacking(&[of(2.0, extreme), of(0.5, extreme)]);
            assert!((lacks - 0.25).abs() < 1e-9, "{lacks} at priority {extreme}");
        }
    }
}
