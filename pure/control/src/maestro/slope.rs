//! By how much an application's performance grows with its allocation: the model estimator of Maestro §3.2.1.
//!
//! ```text
//! y(t)     = y(t-1) + β (U(t) - U(t-1)) / C       (1)
//! y(t + 1) = y(t)   + β (U(t+1) - U(t)) / C       (2)
//! ```
//!
//! `β` is found by least squares over the changes of the past intervals. The line goes through the origin,
//! because (1) has no constant: if `y` moves while the allocation does not, the cause is noise or other
//! applications.
//!
//! **What is no evidence.** An interval in which the application asked for nothing has no `y`. In an interval
//! in which it did not use what it had, `y` would have been the same with less. Neither is a point, and no
//! change is taken across them.
//!
//! **When the default holds.** The default is a slope of 1, as in the paper. It is steeper than no slope, and
//! flatter than nearly every other. An application with a flat slope requires much, and the step limit cuts
//! that. The default holds in three cases:
//!
//! - *No information*: fewer than [`FEWEST`] changes, or the allocation moved by less than a hundredth of the
//!   total over the whole window. The quotient of two noises is any number.
//! - *A poor fit*: the line explains less than half of the changes (R² below 0.5). If [`WINDOW`] changes have
//!   nothing to do with the allocation, a line explains an eighth of them on average. In one case of twenty
//!   it explains more than half, and half of these have the wrong sign.
//! - *Out of bounds*: the slope is not above zero. Closer bounds were left out: no row of a paper and no
//!   test could tell (`docs/papers/ablation.md`).
//!
//! **The window.** Eight changes take 16 s at the paper's interval. They are few enough that the load is
//! still the same, and enough that the noise of one does not decide.

use std::collections::VecDeque;

use super::setting::Fit;
use crate::completions::{Completion, Completions, Constant};

/// How many of the latest changes count.
const WINDOW: usize = 8;
/// With fewer changes than this, a line fits too easily.
const FEWEST: usize = 3;
/// How far the allocation has to have moved in the window, as the root of the sum of squares: a share of the
/// total.
const MOVED: f64 = 0.01;
/// R² below which a fit is poor.
const GOOD: f64 = 0.5;
/// The slope where nothing is known.
const DEFAULT: f64 = 1.0;

/// The model of an application's slope.
#[derive(Clone, PartialEq, Default, Debug)]
pub(crate) struct SlopeModel {
    /// The last interval, if it is evidence.
    last: Option<Point>,
    /// The changes of the past intervals, the oldest first.
    changes: VecDeque<Point>,
}

/// An interval, or the change from one to the next.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Point {
    /// `U`, in requests, above zero.
    pub(crate) had: f64,
    /// `y`.
    pub(crate) performance: f64,
}

impl SlopeModel {
    /// Takes in the interval that ended; `None` if it is no evidence.
    pub(crate) fn observe(&mut self, seen: Option<Point>) {
        if let (Some(before), Some(now)) = (self.last, seen) {
            self.changes.push_back(Point {
                had: now.had - before.had,
                performance: now.performance - before.performance,
            });
            if self.changes.len() > WINDOW {
                self.changes.pop_front();
            }
        }
        self.last = seen;
    }

    /// `β` for a total of `total` requests, and where it comes from.
    pub(crate) fn slope(&self, total: f64, completions: Completions) -> (f64, Fit) {
        let sum = |of: fn(&Point) -> f64| self.changes.iter().map(of).sum::<f64>();
        let moved = sum(|change| change.had * change.had);
        let is_too_little = if completions.has(Completion::NoInformation) {
            self.changes.len() < FEWEST || moved.sqrt() < completions.value(Constant::Moved, MOVED) * total
        } else {
            moved <= 0.0
        };
        if is_too_little {
            return (DEFAULT, Fit::NoInformation);
        }
        let changed = sum(|change| change.performance * change.performance);
        let together = sum(|change| change.had * change.performance);
        // Nothing changed: explained in full by a slope of zero.
        let explained = if changed > 0.0 { (together * together / (moved * changed)).min(1.0) } else { 1.0 };
        let slope = total * together / moved;
        if explained < completions.value(Constant::Good, GOOD) {
            (DEFAULT, Fit::Poor(explained))
        } else if slope <= 0.0 {
            (DEFAULT, Fit::OutOfBounds(slope))
        } else {
            (slope, Fit::Regression(explained))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOTAL: f64 = 100.0;

    fn model_of(points: &[Option<(f64, f64)>]) -> SlopeModel {
        let mut model = SlopeModel::default();
        for point in points {
            model.observe(point.map(|(had, performance)| Point { had, performance }));
        }
        model
    }

    /// What is seen of an application whose performance is a function of its allocation.
    fn along(allocations: &[f64], performance: fn(f64) -> f64) -> SlopeModel {
        let points: Vec<_> = allocations.iter().map(|had| Some((*had, performance(*had)))).collect();
        model_of(&points)
    }

    #[test]
    fn the_slope_of_a_line_is_found() {
        let (slope, fit) =
            along(&[20.0, 22.0, 25.0, 23.0, 21.0], |had| had / 50.0).slope(TOTAL, Completions::ALL);
        assert!((slope - 2.0).abs() < 1e-9, "{slope}");
        assert!(matches!(fit, Fit::Regression(explained) if explained > 0.999), "{fit:?}");
    }

    #[test]
    fn the_slope_is_for_the_total_in_force() {
        let model = along(&[20.0, 22.0, 25.0, 23.0, 21.0], |had| had / 50.0);
        assert!((model.slope(2.0 * TOTAL, Completions::ALL).0 - 4.0).abs() < 1e-9);
    }

    #[test]
    fn an_allocation_that_hardly_moved_tells_nothing() {
        assert_eq!(along(&[20.0; 9], |_| 0.5).slope(TOTAL, Completions::ALL), (1.0, Fit::NoInformation));
        assert_eq!(
            along(&[20.0, 20.1, 20.0, 20.1], |had| had).slope(TOTAL, Completions::ALL),
            (1.0, Fit::NoInformation)
        );
        assert_eq!(
            along(&[20.0, 30.0, 20.0], |had| had).slope(TOTAL, Completions::ALL),
            (1.0, Fit::NoInformation)
        );
    }

    #[test]
    fn changes_that_are_on_no_line_are_a_poor_fit() {
        let scattered = [(20.0, 0.5), (25.0, 0.9), (20.0, 0.9), (25.0, 0.6), (20.0, 0.7)].map(Some);
        let (slope, fit) = model_of(&scattered).slope(TOTAL, Completions::ALL);
        assert!(matches!(fit, Fit::Poor(explained) if explained < 0.5), "{fit:?}");
        assert!((slope - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_slope_that_is_not_above_zero_is_not_believed() {
        for (performance, slope) in [((|had| 1.0 - had / 50.0) as fn(f64) -> f64, -2.0), (|_| 0.5, 0.0)] {
            let (believed, fit) =
                along(&[20.0, 22.0, 20.0, 22.0, 20.0], performance).slope(TOTAL, Completions::ALL);
            assert!(matches!(fit, Fit::OutOfBounds(found) if (found - slope).abs() < 1e-9), "{fit:?}");
            assert!((believed - 1.0).abs() < 1e-9);
        }
    }

    #[test]
    fn no_change_is_taken_across_an_interval_that_is_no_evidence() {
        let points = [Some((20.0, 0.4)), None, Some((40.0, 9.0)), None, Some((10.0, 0.1)), Some((11.0, 0.2))];
        assert_eq!(model_of(&points).changes.len(), 1);
    }

    #[test]
    fn changes_are_forgotten_after_the_window() {
        let mut model = along(&[20.0, 22.0, 20.0, 22.0, 20.0], |had| 5.0 * had);
        for had in [20.0, 22.0, 20.0, 22.0, 20.0, 22.0, 20.0, 22.0, 20.0] {
            model.observe(Some(Point { had, performance: had / 50.0 }));
        }
        assert!((model.slope(TOTAL, Completions::ALL).0 - 2.0).abs() < 1e-9);
    }
}
