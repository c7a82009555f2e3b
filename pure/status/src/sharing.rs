//! How a law shares out an array: what each volume is to get, what it may do, what it got, and why.
//!
//! The types are made from the law's results alone, and from nothing that only a gateway has. So a gateway
//! that runs the law and a controller of several gateways report in the same form.

use serde::{Deserialize, Serialize};
use weir_control::{Grant, Limits, Reasoning};
use weir_model::{Bandwidth, Iops, Objective, Span, Target};

use crate::reason::{bytes_per_s, reason};
use crate::words::{Case, Metric, Unit};

/// How a pool shares out the requests that its array takes at a time.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PoolSharing {
    /// How many requests all volumes may have at the device together; `None`: the pool is leased, so only its
    /// controller knows.
    pub total_concurrency: Option<u32>,
    /// Whether the law finds that number by probing.
    pub is_probed: bool,
    /// What the law found at the end of the last control interval; `None`: none has ended yet.
    pub case: Option<Case>,
}

/// A volume's part of the array.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct VolumeSharing {
    /// What its operator wants.
    pub desired: DesiredStatus,
    /// What it may do now, at each port.
    pub effective: Vec<GrantStatus>,
    /// What it got in the last control interval; `None`: no interval has ended yet, or the volume has no
    /// target, or it asked for nothing.
    pub achieved: Option<AchievedStatus>,
    /// Why it does not get what is desired, or not more than that, as a sentence; `None`: it gets that.
    pub reason: Option<String>,
}

/// What an operator wants for a volume.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct DesiredStatus {
    /// The performance that it is to get.
    pub target: Option<TargetStatus>,
    /// How much its shortfall counts when not all targets can be met.
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
    /// What it measures.
    pub metric: Metric,
    /// Its value.
    pub value: f64,
    /// The unit of the value.
    pub unit: Unit,
}

/// What a volume may do at a port.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct GrantStatus {
    /// The port's name; `None`: there is only one port.
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
    /// The value of the target's metric, in the target's unit.
    pub value: f64,
    /// How much of the target that is: 100 or more if it was met, whatever the metric.
    pub percent: f64,
}

impl VolumeSharing {
    /// A volume's part; `last` is what the law decided at the end of the last control interval, with what was
    /// desired then.
    pub fn new(
        desired: (Objective, Limits),
        effective: Vec<GrantStatus>,
        last: Option<(Objective, &Reasoning)>,
    ) -> Self {
        Self {
            desired: DesiredStatus::new(desired.0, desired.1),
            effective,
            achieved: last.and_then(|(then, reasoning)| AchievedStatus::new(then, reasoning)),
            reason: reason(desired, last).map(str::to_owned),
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
        let metric = Metric::from(target);
        let value = match target {
            Target::Latency(span) | Target::Percentile(_, span) => micros(span),
            Target::Throughput(rate) => bytes_per_s(rate),
            Target::Rate(rate) => rate.get(),
        };
        Self { metric, value, unit: metric.unit() }
    }
}

impl GrantStatus {
    /// A grant of the law at this port.
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
    /// What was measured: the law knows it as a share of the target.
    pub(crate) fn new(objective: Objective, reasoning: &Reasoning) -> Option<Self> {
        let (target, share) = (objective.target?, reasoning.performance?);
        let wanted = TargetStatus::from(target).value;
        let value = match target {
            Target::Latency(_) | Target::Percentile(..) => wanted / share.max(f64::MIN_POSITIVE),
            Target::Throughput(_) | Target::Rate(_) => wanted * share,
        };
        Some(Self { value, percent: share * 100.0 })
    }
}

fn micros(span: Span) -> f64 {
    span.as_secs_f64() * 1e6
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reason::tests::{got, objective};

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
}
