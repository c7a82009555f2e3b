//! Absolute targets and priorities across the ports of an array: Maestro §3.2.
//!
//! **Problem.** Applications share an array. Each names its own metric and target; when not all targets can be met, each is to fall short
//! in inverse proportion to its priority; and its requests come through several ports, each with a scheduler of its own. What is
//! shared out is how many requests each may have at the array at a time.
//!
//! **The law** is a chain, once in each control interval: what each application got of its target, `y`; by how much
//! that grows with its allocation (`slope.rs`, equations 1 and 2) and how much it used (`usage.rs`); how much it asks for
//! (`requirement.rs`, equation 3); who cannot use more and falls
//! short all the same (`hindered.rs`); what it gets beside the others (`arbiter.rs`, and the linear program in `program.rs`); at which
//! ports (`port_allocator.rs`, equation 4). Where each differs from the paper stands there; what is known of an application from one
//! interval to the next, and how one begins, in `interval.rs`.
//!
//! **Whole and not.** Allocations are held as fractions, and granted as whole numbers that are at most one request away: as a whole number, that of
//! a small array could not leave its place by 5 %. What an application did is held against what it was granted.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};
use weir_model::{Bandwidth, Instant, MilliIops};

use crate::arbiter::{Claim, arbitrate};
use crate::interval::{Interval, Known, make_room, ports_of};
use crate::port_allocator::{to_ports, to_whole};
use crate::requirement::Request;
use crate::{ApplicationObservation, ArrayObservation, Controller, rate_split};

/// What the law decides for the next control interval, in the order of the observation's applications.
#[derive(Clone, PartialEq, Debug)]
pub struct ArraySetting {
    /// One for each application.
    pub applications: Vec<ApplicationSetting>,
}

/// What an application gets.
#[derive(Clone, PartialEq, Debug)]
pub struct ApplicationSetting {
    /// By port, in the order of the observation.
    pub ports: Vec<Grant>,
    /// How it came to that.
    pub reasoning: Reasoning,
}

/// What a volume may do at one port. Whole numbers, which a ledger can add up and compare without rounding.
/// The law calculates with fractions, which `rate_split.rs` and `port_allocator.rs` make whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Grant {
    /// Requests at the device at a time.
    pub concurrency: NonZeroU32,
    /// Thousandths of a request a second, if the volume has a limit: this port's part of it.
    pub max_iops: Option<MilliIops>,
    /// Bytes a second, if the volume has a limit: this port's part of it.
    pub max_bandwidth: Option<Bandwidth>,
}

/// How the law came to what an application gets.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Reasoning {
    /// `y`: what it got of its target in the interval that ended; `None`: no target, or it asked for nothing.
    pub performance: Option<f64>,
    /// The slope of its model: by how much `y` would grow with all of the total.
    pub slope: f64,
    /// Whether the slope was found in the data.
    pub fit: Fit,
    /// `U`: what it had, in requests; what it was only lent, if it used that.
    pub had: f64,
    /// `Û`: what it asks the arbiter for, in requests.
    pub requested: f64,
    /// How the arbiter found the array.
    pub case: Case,
    /// `U(t+1)`: what it gets, in requests, before it is dealt to the ports as whole numbers.
    pub allotted: f64,
    /// What kept it from more, or from less.
    pub bound_by: BoundBy,
}

/// Where a slope comes from.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub enum Fit {
    /// The data: R², the share of the changes in performance that it explains, 0 to 1.
    Regression(f64),
    /// The default: the allocation did not change enough to learn from.
    NoInformation,
    /// The default: the data do not lie on a line; its R².
    Poor(f64),
    /// The default: the slope found, which no device has.
    OutOfBounds(f64),
}

/// How an arbiter finds an array.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Case {
    /// All requests fit.
    Underload,
    /// They do not.
    Overload,
}

/// What decided an allocation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum BoundBy {
    /// Its own request was met, and what was left was shared out by priority.
    Request,
    /// The overload: its priority against those of the others.
    Priority,
    /// The step limit: no more than 5 % of the total is moved at a time.
    StepLimit,
    /// It does not use what it has.
    Use,
    /// The limit that its operator set.
    Limit,
    /// The least that every application keeps: one request at each port.
    Minimum,
}

/// The law.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Maestro {
    /// What is known of the applications, by their identity. Of those that were not seen, nothing is.
    known: BTreeMap<u64, Known>,
}

impl Maestro {
    /// The law before it has seen anything.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Controller for Maestro {
    type Observation = ArrayObservation;
    type Setting = ArraySetting;

    fn step(&mut self, _now: Instant, seen: &ArrayObservation) -> ArraySetting {
        let total = f64::from(seen.total.get());
        let mut known = std::mem::take(&mut self.known);
        let mut intervals: Vec<Interval> =
            seen.applications.iter().map(|seen| Interval::of(seen, known.remove(&seen.id))).collect();
        make_room(&mut intervals, total);
        let sum = |of: fn(&Interval) -> f64| intervals.iter().map(of).sum::<f64>();
        let (used, least) = (sum(|interval| interval.used), sum(|interval| interval.minimum));
        let claims: Vec<Claim> =
            intervals.iter_mut().map(|interval| interval.claim(used, least, total)).collect();
        let requests: Vec<Request> = claims.iter().map(|claim| Request::of(claim, total)).collect();
        let decision = arbitrate(&claims, &requests, total);

        let amounts: Vec<f64> = decision.allotments.iter().map(|given| given.own + given.lent).collect();
        let minima: Vec<u32> = seen.applications.iter().map(ports_of).collect();
        let whole = to_whole(&amounts, &minima, seen.total.get());
        let mut applications = Vec::with_capacity(seen.applications.len());
        for (i, interval) in intervals.into_iter().enumerate() {
            let (seen, given) = (&seen.applications[i], decision.allotments[i]);
            let granted = to_ports(whole[i], &interval.demand);
            let (slope, fit) = interval.model.slope(total);
            let reasoning = Reasoning {
                performance: interval.measured,
                slope,
                fit,
                had: interval.had,
                requested: requests[i].requests,
                case: decision.case,
                allotted: amounts[i],
                bound_by: given.bound_by,
            };
            applications.push(ApplicationSetting { ports: grants(seen, &granted), reasoning });
            let (target, model, hindered) = (seen.objective.target, interval.model, interval.hindered);
            self.known.insert(
                seen.id,
                Known { target, model, hindered, own: given.own, lent: given.lent, granted },
            );
        }
        ArraySetting { applications }
    }
}

fn grants(seen: &ApplicationObservation, granted: &[u32]) -> Vec<Grant> {
    let grant = |(requests, (max_iops, max_bandwidth)): (&u32, _)| {
        let concurrency = NonZeroU32::new(*requests).unwrap_or(NonZeroU32::MIN);
        Grant { concurrency, max_iops, max_bandwidth }
    };
    granted.iter().zip(rate_split::split(seen)).map(grant).collect()
}

#[cfg(test)]
mod plant;
#[cfg(test)]
mod props;
#[cfg(test)]
mod tests;
