//! What `weir explain` shows: what the law measured and decided about a volume, interval by interval.

use serde::{Deserialize, Serialize};
use weir_control::Reasoning;
use weir_model::Objective;

use crate::background::BackgroundStatus;
use crate::sharing::{AchievedStatus, GrantStatus, TargetStatus};
use crate::words::{BoundBy, Case, ControlKind, Fit};

/// The last control intervals of a volume.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Explanation {
    /// The volume.
    pub volume: String,
    /// Its pool.
    pub pool: String,
    /// What decides about the pool.
    pub control: ControlKind,
    /// The last intervals, the newest last. Empty if the pool is not under Maestro's law, or if the law has
    /// not seen the volume yet.
    pub intervals: Vec<IntervalStatus>,
    /// Under the law of promises: what background volumes may have of the device.
    pub background: Option<BackgroundStatus>,
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
    /// What was measured; `None`: the volume had no target, or it asked for nothing.
    pub achieved: Option<AchievedStatus>,
    /// The slope of the model: by how much the share of the target would grow with all of the total.
    pub slope: f64,
    /// Where the slope comes from.
    pub fit: Fit,
    /// The figure that belongs to `fit`.
    pub fit_value: Option<f64>,
    /// How many requests at a time the volume had.
    pub had: f64,
    /// How many it asked for.
    pub requested: f64,
    /// Whether what all volumes asked for fits.
    pub case: Case,
    /// How many requests at a time it gets from now on, before they are dealt to the ports as whole numbers.
    pub allotted: f64,
    /// What decided that number.
    pub bound_by: BoundBy,
    /// What it may do at each port from now on.
    pub grants: Vec<GrantStatus>,
}

impl IntervalStatus {
    /// An interval that ended so long ago, with what was desired then.
    pub fn new(age_s: f64, objective: Objective, reasoning: &Reasoning, grants: Vec<GrantStatus>) -> Self {
        let (fit, fit_value) = Fit::of(reasoning.fit);
        Self {
            age_s,
            target: objective.target.map(TargetStatus::from),
            priority: objective.priority.get(),
            achieved: AchievedStatus::new(objective, reasoning),
            slope: reasoning.slope,
            fit,
            fit_value,
            had: reasoning.had,
            requested: reasoning.required,
            case: reasoning.case.into(),
            allotted: reasoning.allotted,
            bound_by: reasoning.bound_by.into(),
            grants,
        }
    }
}

#[cfg(test)]
mod tests {
    use weir_model::{Iops, Target};

    use super::*;
    use crate::reason::tests::{got, objective};

    #[test]
    fn an_interval_is_written_in_the_words_and_the_order_that_scripts_know() {
        let then = objective(Target::Rate(Iops::new(900.0).unwrap()));
        let grant = GrantStatus { port: None, concurrency: 5, max_iops: None, max_bytes_per_s: Some(1) };
        let intervals = vec![IntervalStatus::new(2.5, then, &got(Some(0.5)), vec![grant])];
        let (volume, pool) = ("v".to_owned(), "p".to_owned());
        let explanation =
            Explanation { volume, pool, control: ControlKind::Maestro, intervals, background: None };
        let json = r#"{"volume":"v","pool":"p","control":"maestro","intervals":[{"age_s":2.5,
            "target":{"metric":"iops","value":900.0,"unit":"iops"},"priority":1.0,
            "achieved":{"value":450.0,"percent":50.0},"slope":1.0,"fit":"no_information","fit_value":null,
            "had":4.0,"requested":8.0,"case":"overload","allotted":5.0,"bound_by":"priority",
            "grants":[{"port":null,"concurrency":5,"max_iops":null,"max_bytes_per_s":1}]}],"background":null}"#;
        let json = json.split_whitespace().collect::<String>();
        assert_eq!(serde_json::to_string(&explanation).unwrap(), json);
        assert_eq!(serde_json::from_str::<Explanation>(&json).unwrap(), explanation);
    }
}
