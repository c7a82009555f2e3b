//! Why a volume does not get what its operator wants, as a sentence for people.
//!
//! Programs have the figures and the words beside the sentence, so nothing matches on it.

use weir_control::{BoundBy, Case, Limits, Reasoning};
use weir_model::{Bandwidth, Objective, Target};

/// Why what is desired and what was got differ; `None`: they do not. `last` is what the law decided at the
/// end of the last control interval, with what was desired then.
pub(crate) fn reason(
    (objective, limits): (Objective, Limits),
    last: Option<(Objective, &Reasoning)>,
) -> Option<&'static str> {
    let Some((then, reasoning)) = last else {
        return Some("the law sees it first at the end of this control interval");
    };
    if then != objective {
        return Some("it was changed: the law sees that at the end of this control interval");
    }
    let Some(target) = objective.target else {
        return Some("it has no target: it gets what the others leave, by priority");
    };
    match reasoning.performance {
        None => Some("it asks for nothing"),
        Some(share) if share >= 1.0 => None,
        Some(share) => Some(own_limit(target, share, limits).unwrap_or(decision(reasoning))),
    }
}

/// The limit that its operator set below the volume's target, if the volume has reached it.
fn own_limit(target: Target, share: f64, limits: Limits) -> Option<&'static str> {
    let is_at = |limit: f64, target: f64| limit < target && share * target > 0.9 * limit;
    match target {
        Target::Rate(rate) if limits.max_iops.is_some_and(|limit| is_at(limit.get(), rate.get())) => {
            Some("its max_iops is below its target")
        }
        Target::Throughput(rate)
            if limits.max_bandwidth.is_some_and(|limit| is_at(bytes_per_s(limit), bytes_per_s(rate))) =>
        {
            Some("its max_bandwidth is below its target")
        }
        _ => None,
    }
}

/// What the law went by.
fn decision(reasoning: &Reasoning) -> &'static str {
    match (reasoning.bound_by, reasoning.case) {
        (BoundBy::Priority, _) => "overload: not all targets can be met, and this is its part by priority",
        (BoundBy::StepLimit, _) => "on its way: only so much is moved in one control interval",
        (BoundBy::Use, _) => "it does not use what it may",
        (BoundBy::Limit, _) => "the limits that its operator set",
        (BoundBy::Minimum, Case::Overload) => "overload: it has the least that everybody keeps",
        (BoundBy::Minimum, Case::Underload) => "it has the least that everybody keeps",
        (BoundBy::Requirement, _) => {
            "it has as much as it asked for, and the next control interval will tell"
        }
    }
}

#[allow(clippy::cast_precision_loss)] // rates far below 2^53
pub(crate) const fn bytes_per_s(rate: Bandwidth) -> f64 {
    rate.get() as f64
}

#[cfg(test)]
pub(crate) mod tests {
    use weir_control::Fit;
    use weir_model::{Iops, Priority, Span};

    use super::*;

    pub(crate) fn objective(target: Target) -> Objective {
        Objective { target: Some(target), priority: Priority::default() }
    }

    pub(crate) fn got(performance: Option<f64>) -> Reasoning {
        Reasoning {
            performance,
            slope: 1.0,
            fit: Fit::NoInformation,
            had: 4.0,
            required: 8.0,
            case: Case::Overload,
            allotted: 5.0,
            bound_by: BoundBy::Priority,
        }
    }

    #[test]
    fn a_reason_is_given_just_where_desired_and_achieved_differ() {
        let desired = objective(Target::Latency(Span::from_millis(10)));
        let why = |then: Objective, performance| {
            reason((desired, Limits::default()), Some((then, &got(performance))))
        };
        assert_eq!(why(desired, Some(1.0)), None);
        assert!(why(desired, Some(0.9)).unwrap().starts_with("overload: "));
        assert_eq!(why(desired, None).unwrap(), "it asks for nothing");
        assert!(why(Objective::default(), Some(1.0)).unwrap().starts_with("it was changed"));
        let unseen = reason((desired, Limits::default()), None);
        assert!(unseen.unwrap().starts_with("the law sees it first"));
    }

    #[test]
    fn a_limit_below_the_target_is_the_reason_where_it_is_reached() {
        let desired = objective(Target::Rate(Iops::new(900.0).unwrap()));
        let limits = Limits { max_iops: Iops::new(500.0), ..Limits::default() };
        let why = |share| reason((desired, limits), Some((desired, &got(Some(share))))).unwrap();
        assert_eq!(why(0.55), "its max_iops is below its target");
        assert!(why(0.2).starts_with("overload: "));
    }
}
