//! How much an application asks for: the requirement estimator of Maestro §3.2.1.
//!
//! ```text
//! Û(t+1) = U(t) + C (1 - y(t)) / β(t)             (3)
//! ```
//!
//! which is then cut to what it can use (see `usage.rs`), and after that to within 5 % of the total of what it had. Where the two
//! collide, the step limit wins: who suddenly uses nothing gives up its share over some intervals. Beyond the paper, a request is at
//! least one for each port and at most the operator's limit, which wins over the step limit: it is a promise, and the
//! step limit is only caution.
//!
//! **Without a performance**, because there is no target or nothing was asked for, (3) has no meaning. Such an application asks
//! for the minimum, again by a step at a time. To ask for what it uses would be wrong: who uses all that it gets and was
//! promised nothing would ask for more in each interval, and declare an overload that nobody suffers from. It gets what it can use
//! of what the others leave.

use crate::{BoundBy, arbiter::Claim};

/// `l`: how far an allocation may move in an interval, as a share of the total (§3.2.1).
pub(crate) const STEP: f64 = 0.05;

/// What an application asks for.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Request {
    /// `Û`, in requests.
    pub(crate) requests: f64,
    /// The same without the step limit.
    pub(crate) unhurried: f64,
    /// What cut it, if anything did.
    pub(crate) bound_by: BoundBy,
}

impl Request {
    /// Of an application, where `total` is `C`.
    pub(crate) fn of(claim: &Claim, total: f64) -> Self {
        let step = STEP * total;
        let wanted = claim
            .model
            .map_or(claim.minimum, |model| claim.had + total * (1.0 - model.performance) / model.slope);
        let mut request = Self { requests: wanted, unhurried: 0.0, bound_by: BoundBy::Request };
        request.at_most(claim.usable.unwrap_or(f64::MAX), BoundBy::Use);
        request.unhurried = request.requests.clamp(claim.minimum, claim.limit);
        request.at_most(claim.had + step, BoundBy::StepLimit);
        request.at_least(claim.had - step, BoundBy::StepLimit);
        request.at_least(claim.minimum, BoundBy::Minimum);
        request.at_most(claim.limit, BoundBy::Limit);
        request
    }

    fn at_most(&mut self, bound: f64, bound_by: BoundBy) {
        if self.requests > bound {
            *self = Self { requests: bound, bound_by, ..*self };
        }
    }

    fn at_least(&mut self, bound: f64, bound_by: BoundBy) {
        if self.requests <= bound {
            *self = Self { requests: bound, bound_by, ..*self };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arbiter::Model;

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

    fn requested(claim: &Claim) -> (f64, BoundBy) {
        let request = Request::of(claim, TOTAL);
        ((request.requests * 1e6).round() / 1e6, request.bound_by)
    }

    #[test]
    fn what_the_model_says_is_asked_for() {
        assert_eq!(requested(&claim(0.9, 5.0)), (22.0, BoundBy::Request));
        assert_eq!(requested(&claim(1.1, 5.0)), (18.0, BoundBy::Request));
    }

    #[test]
    fn no_more_than_a_step_is_asked_for_at_a_time() {
        assert_eq!(requested(&claim(0.1, 1.0)), (25.0, BoundBy::StepLimit));
        assert_eq!(requested(&claim(3.0, 1.0)), (15.0, BoundBy::StepLimit));
    }

    #[test]
    fn what_it_cannot_use_is_not_asked_for() {
        let claim = Claim { usable: Some(17.5), ..claim(0.5, 1.0) };
        assert_eq!(requested(&claim), (17.5, BoundBy::Use));
    }

    #[test]
    fn the_step_limit_wins_over_the_use() {
        let claim = Claim { usable: Some(3.0), ..claim(0.5, 1.0) };
        assert_eq!(requested(&claim), (15.0, BoundBy::StepLimit));
    }

    #[test]
    fn the_operators_limit_wins_over_the_step_limit() {
        assert_eq!(requested(&Claim { limit: 8.0, ..claim(0.5, 1.0) }), (8.0, BoundBy::Limit));
    }

    #[test]
    fn without_a_performance_the_minimum_is_asked_for_by_a_step_at_a_time() {
        let claim = Claim { model: None, ..claim(0.5, 1.0) };
        assert_eq!(requested(&claim), (15.0, BoundBy::StepLimit));
        assert_eq!(requested(&Claim { had: 4.0, ..claim }), (2.0, BoundBy::Minimum));
    }
}
