//! How much an application requires: the requirement estimator of Maestro §3.2.1.
//!
//! ```text
//! Û(t+1) = U(t) + C (1 - y(t)) / β(t)             (3)
//! ```
//!
//! The requirement is then cut to what the application can use (`usage.rs`), and after that to within 5 % of
//! the total around what it had. If the two collide, the step limit wins: an application that suddenly uses
//! nothing gives up its share over some intervals.
//!
//! Beyond the paper, a requirement is at least one request for each port, and at most the operator's limit.
//! The operator's limit wins over the step limit, because it is a promise, and the step limit is only
//! caution.
//!
//! **Without a performance**, because there is no target or nothing was asked for, (3) has no meaning. Such
//! an application requires its minimum, again by a step at a time. To require what it uses would be wrong. An
//! application that uses all that it gets, and has no target, would require more in each interval. It would
//! declare an overload from which no application suffers. It gets what it can use of what the others leave.

use super::claim::{Claim, Requirement, STEP};
use super::setting::BoundBy;

/// What an application requires, where `total` is `C`.
pub(crate) fn estimate(claim: &Claim, total: f64) -> Requirement {
    let step = STEP * total;
    let amount = claim
        .model
        .map_or(claim.minimum, |model| claim.had + total * (1.0 - model.performance) / model.slope);
    let mut required = Requirement { amount, unhurried: 0.0, bound_by: BoundBy::Requirement };
    required.at_most(claim.usable.unwrap_or(f64::MAX), BoundBy::Use);
    required.unhurried = required.amount.clamp(claim.minimum, claim.limit);
    required.at_most(claim.had + step, BoundBy::StepLimit);
    required.at_least(claim.had - step, BoundBy::StepLimit);
    required.at_least(claim.minimum, BoundBy::Minimum);
    required.at_most(claim.limit, BoundBy::Limit);
    required
}

impl Requirement {
    fn at_most(&mut self, bound: f64, bound_by: BoundBy) {
        if self.amount > bound {
            *self = Self { amount: bound, bound_by, ..*self };
        }
    }

    fn at_least(&mut self, bound: f64, bound_by: BoundBy) {
        if self.amount <= bound {
            *self = Self { amount: bound, bound_by, ..*self };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::maestro::claim::Model;

    const TOTAL: f64 = 100.0;

    fn claim(performance: f64, slope: f64) -> Claim {
        Claim {
            priority: 1.0,
            model: Some(Model { performance, slope }),
            had: 20.0,
            usable: None,
            is_hindered: false,
            minimum: 2.0,
            limit: TOTAL,
        }
    }

    fn required(claim: &Claim) -> (f64, BoundBy) {
        let required = estimate(claim, TOTAL);
        ((required.amount * 1e6).round() / 1e6, required.bound_by)
    }

    #[test]
    fn what_the_model_says_is_required() {
        assert_eq!(required(&claim(0.9, 5.0)), (22.0, BoundBy::Requirement));
        assert_eq!(required(&claim(1.1, 5.0)), (18.0, BoundBy::Requirement));
    }

    #[test]
    fn no_more_than_a_step_is_required_at_a_time() {
        assert_eq!(required(&claim(0.1, 1.0)), (25.0, BoundBy::StepLimit));
        assert_eq!(required(&claim(3.0, 1.0)), (15.0, BoundBy::StepLimit));
    }

    #[test]
    fn what_it_cannot_use_is_not_required() {
        let claim = Claim { usable: Some(17.5), ..claim(0.5, 1.0) };
        assert_eq!(required(&claim), (17.5, BoundBy::Use));
    }

    #[test]
    fn the_step_limit_wins_over_the_use() {
        let claim = Claim { usable: Some(3.0), ..claim(0.5, 1.0) };
        assert_eq!(required(&claim), (15.0, BoundBy::StepLimit));
    }

    #[test]
    fn the_operators_limit_wins_over_the_step_limit() {
        assert_eq!(required(&Claim { limit: 8.0, ..claim(0.5, 1.0) }), (8.0, BoundBy::Limit));
    }

    #[test]
    fn without_a_performance_the_minimum_is_required_by_a_step_at_a_time() {
        let claim = Claim { model: None, ..claim(0.5, 1.0) };
        assert_eq!(required(&claim), (15.0, BoundBy::StepLimit));
        assert_eq!(required(&Claim { had: 4.0, ..claim }), (2.0, BoundBy::Minimum));
    }
}
