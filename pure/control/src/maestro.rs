//! Absolute targets and priorities across the ports of an array: Maestro §3.2.
//!
//! **Problem.** Applications share an array. Each names its own metric and target. If not all targets can be
//! met, each application is to fall short in inverse proportion to its priority. Its requests come through
//! several ports, each with a scheduler of its own. The law shares out how many requests each application may
//! have at the array at a time.
//!
//! **The law** is a chain of steps, once in each control interval. For each application, it finds:
//!
//! - `y`, how much of its target the application got (`observation.rs`);
//! - by how much `y` grows with its allocation (`slope.rs`, equations 1 and 2);
//! - how much of its allocation the application used (`usage.rs`);
//! - whether the application falls short though it cannot use more (`hindered.rs`);
//! - how much it requires (`requirement.rs`, equation 3);
//! - what it gets beside the others (`arbiter.rs`, and the linear program in `program.rs`);
//! - at which ports (`port_allocator.rs`, equation 4; `rate_split.rs` does the same for an operator's
//!   limits).
//!
//! Each of these files says where it differs from the paper. `interval.rs` says what is known of an
//! application from one interval to the next, and how a new one begins.
//!
//! **Whole and not.** Allocations are held as fractions, and granted as whole numbers that are at most one
//! request away. A step is at most 5 % of the total, which in a small array is less than one request: a
//! whole number could not move. How an application used its allocation is judged by the whole number that it
//! was granted.

mod arbiter;
mod claim;
mod hindered;
mod interval;
mod observation;
mod port_allocator;
pub mod program;
mod rate_split;
mod requirement;
mod setting;
mod shares;
mod slope;
mod usage;

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use weir_model::Instant;

use self::arbiter::arbitrate;
use self::claim::{Claim, Requirement};
use self::interval::{Interval, Known, make_room, ports_of};
use self::port_allocator::{rounded_up, to_ports, to_whole};
use crate::completions::{Completion, Completions};
use crate::law::Law;

pub(crate) use observation::amount;
pub use observation::{ApplicationObservation, ArrayObservation, Limits, PortObservation};
pub use setting::{ApplicationSetting, ArraySetting, BoundBy, Case, Fit, Grant, Reasoning};

/// The law.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Maestro {
    completions: Completions,
    /// What is known of each application, by its `id`. An application that is missing in an observation is
    /// forgotten.
    known: BTreeMap<u64, Known>,
}

impl Maestro {
    /// The law before it has seen anything.
    pub fn new() -> Self {
        Self::default()
    }

    /// The law with some of its completions.
    pub fn with(completions: Completions) -> Self {
        Self { completions, ..Self::default() }
    }
}

impl Law for Maestro {
    type Observation = ArrayObservation;
    type Setting = ArraySetting;

    fn step(&mut self, _now: Instant, seen: &ArrayObservation) -> ArraySetting {
        let total = f64::from(seen.total.get());
        let mut known = std::mem::take(&mut self.known);
        let completions = self.completions;
        let mut intervals: Vec<Interval> = seen
            .applications
            .iter()
            .map(|seen| Interval::of(seen, known.remove(&seen.id), completions))
            .collect();
        make_room(&mut intervals, total);
        let sum = |of: fn(&Interval) -> f64| intervals.iter().map(of).sum::<f64>();
        let (used, least) = (sum(|interval| interval.used), sum(|interval| interval.minimum));
        let claims: Vec<Claim> =
            intervals.iter_mut().map(|interval| interval.claim(used, least, total, completions)).collect();
        let required: Vec<Requirement> =
            claims.iter().map(|claim| requirement::estimate(claim, total)).collect();
        let decision = arbitrate(&claims, &required, total, completions);

        let amounts: Vec<f64> = decision.allotments.iter().map(|given| given.own).collect();
        let minima: Vec<u32> = seen.applications.iter().map(ports_of).collect();
        let whole = to_whole(&amounts, &minima, seen.total.get());
        let mut applications = Vec::with_capacity(seen.applications.len());
        for (i, interval) in intervals.into_iter().enumerate() {
            let (seen, given) = (&seen.applications[i], decision.allotments[i]);
            let amount = amounts[i];
            let granted = if completions.has(Completion::WithinTotal) {
                to_ports(whole[i], &interval.demand)
            } else {
                rounded_up(amount, &interval.demand)
            };
            let (slope, fit) = interval.model.slope(total, completions);
            let reasoning = Reasoning {
                performance: interval.measured,
                slope,
                fit,
                had: interval.had,
                required: required[i].amount,
                case: decision.case,
                allotted: amount,
                bound_by: given.bound_by,
            };
            applications.push(ApplicationSetting { ports: grants(seen, &granted), reasoning });
            let (target, model, hindered) = (seen.objective.target, interval.model, interval.hindered);
            self.known.insert(seen.id, Known { target, model, hindered, own: given.own, granted });
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
