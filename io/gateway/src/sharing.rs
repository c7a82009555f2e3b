//! What a law that shares out an array tells of each volume: what it is to get, what it may do, what it got,
//! and why.
//!
//! Plain data for status, metrics and `weir explain`. It is made from the law's own words and from nothing
//! that only a gateway has, so that whoever runs the law, a gateway or a controller of many, tells the same
//! in the same form.

use serde::{Deserialize, Serialize};
use weir_control::{BoundBy, Case, Fit, Grant, Limits, Reasoning};
use weir_model::{Bandwidth, Iops, Objective, Target};

/// How the requests that an array takes at a time are shared out.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PoolSharing {
    /// How many all volumes may have at the device together; `None`: the pool is leased, so its controller
    /// knows.
    pub total_concurrency: Option<u32>,
    /// Whether that number was found by probing.
    pub is_probed: bool,
    /// `underload` or `overload`, as the law found it at the end of the last control interval.
    pub case: Option<String>,
}

/// How a volume stands.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct VolumeSharing {
    /// What its operator wants.
    pub desired: DesiredStatus,
    /// What it may do now, at each port.
    pub effective: Vec<GrantStatus>,
    /// What it got in the last control interval; `None`: there was none yet, or it has no target, or asked
    /// for nothing.
    pub achieved: Option<AchievedStatus>,
    /// Why it does not get what is desired, or not more than that; `None`: it does.
    pub reason: Option<String>,
}

/// What an operator wants for a volume.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct DesiredStatus {
    /// What it is to get.
    pub target: Option<TargetStatus>,
    /// How much it counts that it does.
    pub priority: f64,
    /// Requests at the device at a time that it never exceeds.
    pub max_concurrency: Option<u32>,
    /// Requests a second that it never exceeds.
    pub max_iops: Option<f64>,
    /// Bytes a second that it never exceeds.
    pub max_bytes_per_s: Option<u64>,
}

/// A target.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TargetStatus {
    /// `latency`, a percentile such as `p95`, `throughput` or `iops`.
    pub metric: String,
    /// Its value.
    pub value: f64,
    /// What that is: `us`, `bytes_per_s` or `iops`.
    pub unit: String,
}

/// What a volume may do at a port.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct GrantStatus {
    /// The port's name; `None`: there is only one.
    pub port: Option<String>,
    /// Requests at the device at a time.
    pub concurrency: u32,
    /// Requests a second, if that is limited.
    pub max_iops: Option<f64>,
    /// Bytes a second, if that is limited.
    pub max_bytes_per_s: Option<u64>,
}

/// What a volume got.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct AchievedStatus {
    /// The value of the target's metric, in its unit.
    pub value: f64,
    /// Of the target: 100 or more if it was met, whatever the metric.
    pub percent: f64,
}

/// What a law saw of a volume in one control interval, and what it decided for the next.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct IntervalStatus {
    /// How long ago the interval ended.
    pub age_s: f64,
    /// The target then.
    pub target: Option<TargetStatus>,
    /// The priority then.
    pub priority: f64,
    /// What was measured; `None` without a target, and if nothing was asked for.
    pub achieved: Option<AchievedStatus>,
    /// The slope of the model: by how much the share of the target would grow with all of the total.
    pub slope: f64,
    /// Whether the slope was found in the data: `regression`, or why it is the default: `no_information`,
    /// `poor`, `out_of_bounds`.
    pub fit: String,
    /// R² of a `regression` and of a `poor` fit; the slope found if it was `out_of_bounds`.
    pub fit_value: Option<f64>,
    /// The requests at a time that it had.
    pub had: f64,
    /// Those that it asked for.
    pub requested: f64,
    /// `underload`: all that is asked for fits. `overload`: it does not.
    pub case: String,
    /// What it gets from now on, before it is dealt to the ports as whole numbers.
    pub allotted: f64,
    /// What decided that: `request`, `priority`, `step_limit`, `use`, `limit` or `minimum`.
    pub bound_by: String,
    /// What it may do at each port from now on.
    pub grants: Vec<GrantStatus>,
}

/// The last control intervals of a volume.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Explanation {
    /// The volume.
    pub volume: String,
    /// Its pool.
    pub pool: String,
    /// The law of the pool, as in the configuration.
    pub control: String,
    /// The last intervals, the newest last; none if the law is another, or has not seen the volume yet.
    pub intervals: Vec<IntervalStatus>,
}

impl VolumeSharing {
    /// How a volume stands; `last` is its last control interval, with what was desired then.
    pub fn new(
        desired: (Objective, Limits),
        effective: Vec<GrantStatus>,
        last: Option<(Objective, &Reasoning)>,
    ) -> Self {
        Self {
            desired: DesiredStatus::new(desired.0, desired.1),
            effective,
            achieved: last.and_then(|(then, reasoning)| AchievedStatus::new(then, reasoning)),
            reason: reason(desired, last),
        }
    }
}

impl DesiredStatus {
    fn new(objective: Objective, limits: Limits) -> Self {
        Self {
            target: objective.target.map(TargetStatus::from),
            priority: objective.priority.get(),
            max_concurrency: limits.concurrency.map(u32::from),
            max_iops: limits.max_iops.map(Iops::get),
            max_bytes_per_s: limits.max_bandwidth.map(Bandwidth::get),
        }
    }
}

impl From<Target> for TargetStatus {
    fn from(target: Target) -> Self {
        let (metric, value, unit) = match target {
            Target::Latency(span) => ("latency".to_owned(), micros(span), "us"),
            Target::Percentile(percentile, span) => (percentile.to_string(), micros(span), "us"),
            Target::Throughput(rate) => ("throughput".to_owned(), to_f64(rate.get()), "bytes_per_s"),
            Target::Rate(rate) => ("iops".to_owned(), rate.get(), "iops"),
        };
        Self { metric, value, unit: unit.to_owned() }
    }
}

impl GrantStatus {
    /// The grant at this port.
    pub fn new(port: Option<String>, grant: Grant) -> Self {
        Self {
            port,
            concurrency: grant.concurrency.get(),
            max_iops: grant.max_iops.map(|limit| Iops::from(limit).get()),
            max_bytes_per_s: grant.max_bandwidth.map(Bandwidth::get),
        }
    }
}

impl AchievedStatus {
    /// What was measured, from the share of the target that it was.
    fn new(objective: Objective, reasoning: &Reasoning) -> Option<Self> {
        let (target, share) = (objective.target?, reasoning.performance?);
        let wanted = TargetStatus::from(target).value;
        let value = match target {
            Target::Latency(_) | Target::Percentile(..) => wanted / share.max(f64::MIN_POSITIVE),
            Target::Throughput(_) | Target::Rate(_) => wanted * share,
        };
        Some(Self { value, percent: share * 100.0 })
    }
}

impl IntervalStatus {
    /// An interval that ended so long ago, with what was desired then.
    pub fn new(age_s: f64, objective: Objective, reasoning: &Reasoning, grants: Vec<GrantStatus>) -> Self {
        let (fit, fit_value) = match reasoning.fit {
            Fit::Regression(r2) => ("regression", Some(r2)),
            Fit::NoInformation => ("no_information", None),
            Fit::Poor(r2) => ("poor", Some(r2)),
            Fit::OutOfBounds(slope) => ("out_of_bounds", Some(slope)),
        };
        Self {
            age_s,
            target: objective.target.map(TargetStatus::from),
            priority: objective.priority.get(),
            achieved: AchievedStatus::new(objective, reasoning),
            slope: reasoning.slope,
            fit: fit.to_owned(),
            fit_value,
            had: reasoning.had,
            requested: reasoning.required,
            case: case_name(reasoning.case).to_owned(),
            allotted: reasoning.allotted,
            bound_by: bound_name(reasoning.bound_by).to_owned(),
            grants,
        }
    }
}

pub(crate) fn case_name(case: Case) -> &'static str {
    match case {
        Case::Underload => "underload",
        Case::Overload => "overload",
    }
}

fn bound_name(bound_by: BoundBy) -> &'static str {
    match bound_by {
        BoundBy::Requirement => "request",
        BoundBy::Priority => "priority",
        BoundBy::StepLimit => "step_limit",
        BoundBy::Use => "use",
        BoundBy::Limit => "limit",
        BoundBy::Minimum => "minimum",
    }
}

/// Why what is desired, what is in force and what was got are not the same.
fn reason(desired: (Objective, Limits), last: Option<(Objective, &Reasoning)>) -> Option<String> {
    let (objective, limits) = desired;
    let Some((then, reasoning)) = last else {
        return Some("the law sees it first at the end of this control interval".to_owned());
    };
    if then != objective {
        return Some("it was changed: the law sees that at the end of this control interval".to_owned());
    }
    let Some(target) = objective.target else {
        return Some("it has no target: it gets what the others leave, by priority".to_owned());
    };
    let why = match reasoning.performance {
        None => "it asks for nothing",
        Some(share) if share >= 1.0 => return None,
        Some(share) => {
            own_limit(target, share, limits).unwrap_or(match (reasoning.bound_by, reasoning.case) {
                (BoundBy::Priority, _) => {
                    "overload: not all targets can be met, and this is its part by priority"
                }
                (BoundBy::StepLimit, _) => "on its way: only so much is moved in one control interval",
                (BoundBy::Use, _) => "it does not use what it may",
                (BoundBy::Limit, _) => "the limits that its operator set",
                (BoundBy::Minimum, Case::Overload) => "overload: it has the least that everybody keeps",
                (BoundBy::Minimum, Case::Underload) => "it has the least that everybody keeps",
                (BoundBy::Requirement, _) => {
                    "it has as much as it asked for, and the next control interval will tell"
                }
            })
        }
    };
    Some(why.to_owned())
}

/// The limit of its own, below its target, that a volume is at.
fn own_limit(target: Target, share: f64, limits: Limits) -> Option<&'static str> {
    let is_at = |limit: f64, target: f64| limit < target && share * target > 0.9 * limit;
    match target {
        Target::Rate(rate) if limits.max_iops.is_some_and(|limit| is_at(limit.get(), rate.get())) => {
            Some("its max_iops is below its target")
        }
        Target::Throughput(rate)
            if limits.max_bandwidth.is_some_and(|limit| is_at(to_f64(limit.get()), to_f64(rate.get()))) =>
        {
            Some("its max_bandwidth is below its target")
        }
        _ => None,
    }
}

fn micros(span: weir_model::Span) -> f64 {
    span.as_secs_f64() * 1e6
}

#[allow(clippy::cast_precision_loss)] // rates far below 2^53
const fn to_f64(value: u64) -> f64 {
    value as f64
}

#[cfg(test)]
mod tests {
    use weir_model::{Priority, Span};

    use super::*;

    fn objective(target: Target) -> Objective {
        Objective { target: Some(target), priority: Priority::default() }
    }

    fn got(performance: Option<f64>) -> Reasoning {
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
    fn half_of_a_target_is_twice_the_latency_and_half_the_rate() {
        let latency = objective(Target::Latency(Span::from_millis(10)));
        let achieved = AchievedStatus::new(latency, &got(Some(0.5))).unwrap();
        assert_eq!(achieved, AchievedStatus { value: 20_000.0, percent: 50.0 });
        let rate = objective(Target::Rate(Iops::new(900.0).unwrap()));
        let achieved = AchievedStatus::new(rate, &got(Some(0.5))).unwrap();
        assert_eq!(achieved, AchievedStatus { value: 450.0, percent: 50.0 });
        assert_eq!(AchievedStatus::new(rate, &got(None)), None);
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
