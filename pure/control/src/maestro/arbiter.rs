//! The arbiter of Maestro §3.2.2: it decides how many requests each application may have at the array.
//!
//! **Underload**: all requirements fit. Each is met, and the excess goes to all by priority, on top of what
//! (3) says that each needs.
//!
//! **Overload**: they do not. A linear program (`program.rs`) finds the allocations in which the weighted
//! errors `p_i (1 - f_i(u_i))` are as close together as possible. Each allocation is within a step of the one
//! before, and their sum is what there is.
//!
//! # Where the paper is silent, or a real array differs
//!
//! - **The least of a range** is one request at each port, because every port gets at least one. The **most**
//!   of it is what the application can use, and at most its operator's limit; but the step limit bounds how
//!   far the most falls in an interval. This is the paper's rule of utilisation, which the paper applies to
//!   requirements only. Without it, an application that cannot use more, but misses its target, would get
//!   more and more, because its error does not fall. It would starve others.
//! - **A hindered application** has all that it can use and falls short (`hindered.rs`). That is an overload
//!   too, and its range does not end at what it can use. The part of its allotment that it cannot use stays
//!   empty, so that the array is quieter. While an application is hindered, no excess is dealt.
//! - **An application without a performance** has no error, so it is not in the program. In an overload, it
//!   goes down to its minimum by a step at a time. The requests that it gives up are added to the program's
//!   sum.
//! - **A volume with a target** keeps its part of the excess even if it cannot use it. The array then carries
//!   fewer requests, as in the paper. If others got that part, they would push a load that was content, such
//!   as a recorded one, below its target. The two would then go up and down around that for ever. Cost:
//!   throughput that a volume without a target could have had. If that is too high, the operator can give
//!   that volume a higher priority.
//! - **The excess comes on top of the need**, and not on top of what the step limit let a requirement fall
//!   to. Taken literally, the paper's rule drifts. A volume above its target requires a step less in each
//!   interval, and what all volumes leave is dealt by priority. After some intervals the volume of the
//!   highest priority holds nearly everything, without needing it. The others then start their next burst
//!   with one request. The step limit holds for the result: no allocation falls by more, and allocations that
//!   rise go without what that takes. But requests that are not used at all go at once to an application that
//!   falls short and fills what it has, up to its need by (3).
//! - **The sum is less than all the lower ends** after the total fell or an application came. Then the total
//!   wins over the step limit: each application is cut to the same part of what it has above its minimum.
//! - **Priorities** count relative to the highest, and at least as a millionth of it.

use super::claim::{Claim, Model, Requirement, STEP};
use super::program::{self, Range};
use super::setting::{BoundBy, Case};
use super::shares::{cut_to, deal};
use crate::completions::{Completion, Completions};

/// The arbiter's decision.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Decision {
    /// How the arbiter found the array.
    pub(crate) case: Case,
    /// One for each application.
    pub(crate) allotments: Vec<Allotment>,
}

/// The allotment of an application, in requests.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Allotment {
    /// `U(t+1)`.
    pub(crate) own: f64,
    /// What decided `own`.
    pub(crate) bound_by: BoundBy,
}

/// Amounts that differ by less are the same, in requests.
const SAME: f64 = 1e-6;
/// The least priority, relative to the highest.
const LEAST_PRIORITY: f64 = 1e-6;

impl Claim {
    /// How many requests it can use; no bound, if that is more than it had.
    fn can_use(&self) -> f64 {
        self.usable.unwrap_or(f64::MAX)
    }

    /// Whether it falls short and uses all that it has.
    fn is_in_need(&self) -> bool {
        self.usable.is_none() && self.model.is_some_and(|model| model.performance < 1.0)
    }

    /// The most that it may have when the excess is dealt.
    fn most_of_excess(&self) -> f64 {
        if self.model.is_some() { self.limit } else { self.can_use().min(self.limit) }
    }
}

/// Decides what each application gets. `required` has one entry for each of `claims`, and `total` is `C`. The
/// sum of the allotments is at most the total, if the sum of the minima is.
pub(crate) fn arbitrate(
    claims: &[Claim],
    required: &[Requirement],
    total: f64,
    completions: Completions,
) -> Decision {
    let has = |one| completions.has(one);
    let priorities = relative(claims);
    let amounts: Vec<f64> = required.iter().map(|required| required.amount).collect();
    let anybody_is_hindered = claims.iter().any(|claim| claim.is_hindered);
    let all_fit = amounts.iter().sum::<f64>() <= total && !anybody_is_hindered;
    let case = if all_fit { Case::Underload } else { Case::Overload };
    let base = match case {
        Case::Underload if has(Completion::ExcessOnNeed) => {
            required.iter().map(|required| required.amount.min(required.unhurried)).collect()
        }
        Case::Underload => amounts,
        Case::Overload => overload(claims, amounts, &priorities, total, completions),
    };
    let deal_left = |to: &[f64], most: fn(&Claim) -> f64| {
        let rooms: Vec<f64> = claims.iter().zip(to).map(|(claim, has)| most(claim) - has).collect();
        let left = if anybody_is_hindered { 0.0 } else { total - to.iter().sum::<f64>() };
        deal(left, &rooms, &priorities)
    };
    let excess = match case {
        Case::Underload if has(Completion::ExcessToUsers) => deal_left(&base, Claim::most_of_excess),
        Case::Overload if has(Completion::UseInOverload) => {
            deal_left(&base, |claim| claim.can_use().min(claim.limit))
        }
        Case::Underload | Case::Overload => deal_left(&base, |claim| claim.limit),
    };
    let mut given: Vec<f64> = base.iter().zip(&excess).map(|(base, excess)| base + excess).collect();
    if case == Case::Underload && has(Completion::StepOnExcess) {
        step_down(claims, required, &mut given, total, completions);
    }
    let own = given;
    let allotments = (0..claims.len()).map(|i| Allotment {
        own: own[i],
        bound_by: match case {
            Case::Underload if own[i] <= required[i].amount + SAME => required[i].bound_by,
            Case::Underload => reason(&claims[i], own[i], BoundBy::Requirement),
            Case::Overload if (own[i] - claims[i].had).abs() >= STEP * total - SAME => {
                reason(&claims[i], own[i], BoundBy::StepLimit)
            }
            Case::Overload => reason(&claims[i], own[i], BoundBy::Priority),
        },
    });
    Decision { case, allotments: allotments.collect() }
}

/// The allocations in overload, before any excess.
fn overload(
    claims: &[Claim],
    mut allotted: Vec<f64>,
    priorities: &[f64],
    total: f64,
    completions: Completions,
) -> Vec<f64> {
    let members: Vec<(usize, Model)> =
        claims.iter().enumerate().filter_map(|(i, claim)| Some((i, claim.model?))).collect();
    let ranges: Vec<Range> = members
        .iter()
        .map(|(i, model)| range(&claims[*i], *model, priorities[*i], total, completions))
        .collect();
    let others: f64 = (0..claims.len()).filter(|i| claims[*i].model.is_none()).map(|i| allotted[i]).sum();
    for ((i, _), amount) in members.iter().zip(program::solve(&ranges, total - others)) {
        allotted[*i] = amount;
    }
    let minima: Vec<f64> = claims.iter().map(|claim| claim.minimum).collect();
    cut_to(total, &mut allotted, &minima);
    allotted
}

/// Bounds the falls: no allocation falls by more than a step, and those that rise go without what that takes.
/// But what an application does not use goes at once to those that fall short and use all that they have, up
/// to what (3) says that they need.
fn step_down(
    claims: &[Claim],
    required: &[Requirement],
    given: &mut [f64],
    total: f64,
    completions: Completions,
) {
    let aims = given.to_vec();
    for (claim, given) in claims.iter().zip(&mut *given) {
        *given = given.max((claim.had - STEP * total).min(claim.limit));
    }
    let above = |given: &[f64]| (given.iter().sum::<f64>() - total).max(0.0);
    let rise = |i: usize, given: f64| (given - claims[i].had).max(0.0);
    let need = |i: usize| if claims[i].is_in_need() { required[i].unhurried } else { 0.0 };
    if completions.has(Completion::UnusedAtOnce) {
        take(above(given), given, |i, given| rise(i, given).min((given - need(i)).max(0.0)));
        take(above(given), given, |i, given| (given - aims[i].max(claims[i].can_use())).max(0.0));
    }
    take(above(given), given, rise);
}

/// Takes `amount` from all in proportion to what each can give, and from none more than it can give.
fn take(amount: f64, from: &mut [f64], can_give: impl Fn(usize, f64) -> f64) {
    let all: f64 = from.iter().enumerate().map(|(i, has)| can_give(i, *has)).sum();
    if all > 0.0 {
        let part = (amount / all).min(1.0);
        from.iter_mut().enumerate().for_each(|(i, has)| *has -= part * can_give(i, *has));
    }
}

/// The range of what an application in the program may get.
fn range(claim: &Claim, model: Model, priority: f64, total: f64, completions: Completions) -> Range {
    let step = STEP * total;
    let lower = (claim.had - step).max(claim.minimum).min(claim.limit);
    let most = if claim.is_hindered || !completions.has(Completion::UseInOverload) {
        claim.had + step
    } else {
        (claim.had + step).min(claim.can_use())
    };
    let upper = most.min(claim.limit).max(lower);
    let error =
        |amount: f64| priority * (1.0 - model.performance - model.slope * (amount - claim.had) / total);
    Range { lower, upper, error_at_lower: error(lower), error_at_upper: error(upper) }
}

/// The bound that an allocation is at; `otherwise`, if it is at none.
fn reason(claim: &Claim, amount: f64, otherwise: BoundBy) -> BoundBy {
    if amount >= claim.limit - SAME {
        BoundBy::Limit
    } else if amount <= claim.minimum + SAME {
        BoundBy::Minimum
    } else if claim.usable.is_some_and(|usable| (amount - usable).abs() <= SAME) {
        BoundBy::Use
    } else {
        otherwise
    }
}

fn relative(claims: &[Claim]) -> Vec<f64> {
    let highest = claims.iter().map(|claim| claim.priority).fold(f64::MIN_POSITIVE, f64::max);
    claims.iter().map(|claim| (claim.priority / highest).max(LEAST_PRIORITY)).collect()
}

#[cfg(test)]
mod tests;
