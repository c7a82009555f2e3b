//! What is known of an application when an interval has ended: what it had, what it made of that, and what
//! was learnt before.
//!
//! **What an application had** in an interval is normally what the law gave it. There are two exceptions:
//!
//! 1. Its ports report other bounds than those that were granted, because a lease ran out, a raise waited for
//!    a cut elsewhere, or the law was restarted. Then the reported bounds count.
//! 2. It is new, and its ports report no bounds. Then it begins with its priority's share of the total, and
//!    the others are cut to make room. If it has asked for nothing, it begins with its minimum.
//!
//! **When the total falls**, each application is cut to the same part of what it had above its minimum.

use weir_model::Target;

use super::claim::{Claim, Model};
use super::hindered::Hindered;
use super::observation::{ApplicationObservation, amount};
use super::shares::cut_to;
use super::slope::{Point, SlopeModel};
use super::usage::Usage;
use crate::completions::{Completion, Completions};

/// The facts that are kept of an application from one interval to the next.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Known {
    /// The target by which performance was measured. When the target changes, the law drops what it has
    /// learnt.
    pub(crate) target: Option<Target>,
    pub(crate) model: SlopeModel,
    pub(crate) hindered: Hindered,
    /// What the law gave it, in requests, before that was made whole.
    pub(crate) own: f64,
    /// What it was granted, in requests, by port.
    pub(crate) granted: Vec<u32>,
}

/// The interval that ended, for an application.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Interval {
    pub(crate) model: SlopeModel,
    /// `y`, as it was measured.
    pub(crate) measured: Option<f64>,
    pub(crate) hindered: Hindered,
    /// `y`, from zero to [`HIGHEST`].
    pub(crate) performance: Option<f64>,
    /// `U`, in requests. Zero for a new application until [`make_room`] has found room for it.
    pub(crate) had: f64,
    /// `d`, by port.
    pub(crate) demand: Vec<f64>,
    /// How many requests it had at the array, as the mean.
    pub(crate) used: f64,
    is_new: bool,
    usable: Option<f64>,
    priority: f64,
    pub(crate) minimum: f64,
    limit: f64,
}

/// The highest performance that counts. Some figures come from another process, and may be anything; the
/// squares of these must be numbers.
const HIGHEST: f64 = 1e9;

impl Interval {
    /// The interval as `seen`, of an application of which `known` was known before.
    pub(crate) fn of(seen: &ApplicationObservation, known: Option<Known>, completions: Completions) -> Self {
        let reported = seen.ports.iter().map(|port| Some(port.bound?.get())).collect::<Option<Vec<u32>>>();
        let granted = known.as_ref().map(|known| known.granted.as_slice());
        let bounds = reported.as_deref().or(granted).filter(|bounds| bounds.len() == seen.ports.len());
        let usage = bounds.map(|bounds| Usage::of(&seen.ports, bounds, completions));
        let counts_ages = completions.has(Completion::AgeForPerformance);
        let measured = seen.performance(counts_ages).filter(|y| !y.is_nan());
        let performance = measured.map(|y| y.clamp(0.0, HIGHEST));
        let minimum = f64::from(ports_of(seen));
        let usable = usage.and_then(|usage| usage.usable);
        let had = match &known {
            Some(known) if reported.as_ref().is_none_or(|reported| *reported == known.granted) => {
                Some(known.own)
            }
            _ => reported_sum(seen),
        };
        let is_evidence =
            usage.is_some_and(|usage| usage.is_evidence || !completions.has(Completion::Evidence));
        let point = Point { had: bounds.map_or(minimum, sum), performance: performance.unwrap_or_default() };
        let learnt = known.filter(|known| known.target == seen.objective.target);
        let (mut model, hindered) = learnt.map(|known| (known.model, known.hindered)).unwrap_or_default();
        model.observe((is_evidence && performance.is_some()).then_some(point));
        Self {
            model,
            measured: measured.filter(|y| y.is_finite()),
            hindered,
            performance,
            had: had.map_or(0.0, |had| had.max(minimum)),
            demand: seen.ports.iter().map(|port| amount(port.outstanding)).collect(),
            used: seen.ports.iter().map(|port| amount(port.at_device)).sum(),
            is_new: had.is_none(),
            usable,
            priority: seen.objective.priority.get(),
            minimum,
            limit: seen.limits.concurrency.map_or(f64::MAX, |limit| f64::from(limit.get())).max(minimum),
        }
    }

    /// The application's claim, where `total` is `C`. All applications together had `used` requests at the
    /// array, and keep at least `least`.
    pub(crate) fn claim(&mut self, used: f64, least: f64, total: f64, completions: Completions) -> Claim {
        let (others, least) = (used - self.used, least - self.minimum);
        let slope = self.model.slope(total, completions).0;
        let is_hindered = completions.has(Completion::Hindered)
            && self.hindered.observe(others, least, self.usable, self.performance, total, completions);
        Claim {
            priority: self.priority,
            model: self.performance.map(|performance| Model { performance, slope }),
            had: self.had,
            usable: self.usable,
            is_hindered,
            minimum: self.minimum,
            limit: self.limit.min(total).max(self.minimum),
        }
    }
}

/// Gives new applications what they begin with, and cuts what all had to the total.
pub(crate) fn make_room(intervals: &mut [Interval], total: f64) {
    let highest = intervals.iter().map(|interval| interval.priority).fold(f64::MIN_POSITIVE, f64::max);
    let priorities: f64 = intervals.iter().map(|interval| interval.priority / highest).sum();
    for new in intervals.iter_mut().filter(|interval| interval.is_new) {
        let share = total * (new.priority / highest) / priorities;
        new.had = if new.performance.is_some() { share.max(new.minimum) } else { new.minimum };
    }
    let of = |is_new: bool, of: fn(&Interval) -> f64| {
        intervals.iter().filter(move |interval| interval.is_new == is_new).map(of).collect::<Vec<f64>>()
    };
    let (mut new, mut old) = (of(true, |new| new.had), of(false, |old| old.had));
    let (least_of_new, least_of_old) = (of(true, |new| new.minimum), of(false, |old| old.minimum));
    cut_to(total - least_of_old.iter().sum::<f64>(), &mut new, &least_of_new);
    cut_to(total - new.iter().sum::<f64>(), &mut old, &least_of_old);
    let (mut new, mut old) = (new.into_iter(), old.into_iter());
    for interval in intervals {
        interval.had = if interval.is_new { new.next() } else { old.next() }.unwrap_or(interval.had);
    }
}

/// The least that an application keeps: a request at each port.
pub(crate) fn ports_of(seen: &ApplicationObservation) -> u32 {
    u32::try_from(seen.ports.len()).unwrap_or(u32::MAX)
}

/// The sum of the bounds that the ports report. A port without a bound counts as one request; `None` if no
/// port has one.
fn reported_sum(seen: &ApplicationObservation) -> Option<f64> {
    seen.ports
        .iter()
        .any(|port| port.bound.is_some())
        .then(|| seen.ports.iter().map(|port| port.bound.map_or(1.0, |bound| f64::from(bound.get()))).sum())
}

fn sum(bounds: &[u32]) -> f64 {
    bounds.iter().copied().map(f64::from).sum()
}
