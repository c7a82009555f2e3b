//! The checkers of a cluster: what must hold at every instant, in true time, over all gateways together.
//!
//! 1. **The bounds in force at all gateways are within the total**, and those of each volume within its
//!    limits.
//! 2. **The requests at the array are within the total**, except for those that were there when a bound last
//!    fell or a process died. A cut does not call back issued requests. The array needs a known time for
//!    these; after that, none is left.
//! 3. **No volume is starved**: a volume with outstanding requests gets an answer within [`PATIENCE`] control
//!    intervals, once there has been no fault for that long.
//! 4. **A cluster gets over its faults**: [`RECOVERY`] control intervals after the last fault, each gateway
//!    has grants.
//!
//! `promise.rs` holds each gateway to its lease and to its fallback, and [`crate::check`] each of its engines
//! to the rules of every engine.

use weir_control::Limits;
use weir_model::{Bandwidth, Instant, MilliIops, Span};

use super::gateway::Gateway;
use super::process::InForce;
use super::scenario::ClusterScenario;
use super::surroundings::Going;
use crate::check::Breach;

/// Within how many control intervals a volume with outstanding requests gets an answer.
const PATIENCE: u64 = 10;
/// Within how many control intervals all gateways have grants again. It takes two until a side notices that
/// the other is gone, one until the next attempt, and three until the grants of another run are over. It may
/// take as many again for trouble on the way.
const RECOVERY: u64 = 12;

/// The checkers.
#[derive(Debug)]
pub(super) struct ClusterCheckers {
    total: u32,
    /// By volume: its name and its limits.
    volumes: Vec<(String, [u64; 3])>,
    /// By gateway and its volume.
    cells: Vec<Vec<Cell>>,
    patience: Span,
    recovery: Span,
    /// When the array has done the requests that were there at the last cut.
    drained_at: Instant,
}

/// A volume at a gateway.
#[derive(Debug)]
struct Cell {
    /// The index of the volume.
    volume: usize,
    /// The concurrency bound that was in force at the last instant.
    bound: u32,
    answered: u64,
    /// Since when it has had outstanding requests and no answer.
    since: Instant,
}

impl ClusterCheckers {
    pub(super) fn new(scenario: &ClusterScenario, total: u32) -> Self {
        let volumes: Vec<_> = scenario
            .volumes
            .iter()
            .map(|(name, volume)| (name.clone(), amounts_of(&volume.limits)))
            .collect();
        let cell = |name: &String| {
            let volume = volumes.iter().position(|(of, _)| of == name).expect("a volume of the scenario");
            Cell { volume, bound: 0, answered: 0, since: Instant::ORIGIN }
        };
        let of_gateway = |gateway: &super::scenario::GatewayScenario| {
            gateway.volumes.iter().map(|(name, _)| cell(name)).collect()
        };
        let interval = scenario.controller.interval;
        Self {
            total,
            cells: scenario.gateways.iter().map(of_gateway).collect(),
            volumes,
            patience: interval.saturating_mul(PATIENCE),
            recovery: interval.saturating_mul(RECOVERY),
            drained_at: Instant::ORIGIN,
        }
    }

    /// All events of this instant have happened. `wrong_until`: when the last of the faults that have begun
    /// is over.
    pub(super) fn at_rest(
        &mut self,
        now: Instant,
        gateways: &[Gateway],
        (at_array, drains_in): (u32, Span),
        wrong_until: Instant,
    ) -> Going {
        let (mut sum, mut by_volume) = (0, vec![[0; 3]; self.volumes.len()]);
        let mut has_fallen = false;
        for (number, (gateway, cells)) in gateways.iter().zip(&mut self.cells).enumerate() {
            let is_awake = gateway.is_awake(now);
            for (cell, in_force) in cells.iter_mut().zip(gateway.in_force(now)) {
                let bound = in_force.map_or(0, |in_force| in_force.grant.concurrency.get());
                has_fallen |= bound < cell.bound;
                cell.bound = bound;
                sum += bound;
                if let Some(in_force) = in_force {
                    add(&mut by_volume[cell.volume], in_force);
                }
                let works = in_force.is_some_and(|seen| {
                    is_awake && seen.outstanding > 0 && seen.answered == cell.answered && now > wrong_until
                });
                cell.answered = in_force.map_or(0, |seen| seen.answered);
                if !works {
                    cell.since = now;
                } else if now > cell.since + self.patience {
                    let volume = self.volumes[cell.volume].0.clone();
                    let (outstanding, since) = (in_force.map_or(0, |seen| seen.outstanding), cell.since);
                    let gateway = number;
                    return Err(Box::new(Breach::GatewayStarved { gateway, volume, outstanding, since }));
                }
            }
            if now > wrong_until + self.recovery && !gateway.is_granted(now) {
                return Err(Box::new(Breach::LeftAlone { gateway: number, since: wrong_until }));
            }
        }
        if sum > self.total {
            return Err(Box::new(Breach::TotalExceeded { bounds: sum, total: self.total }));
        }
        for ((volume, limits), bounds) in self.volumes.iter().zip(by_volume) {
            if bounds.iter().zip(limits).any(|(bound, limit)| bound > limit) {
                let (volume, limits) = (volume.clone(), *limits);
                return Err(Box::new(Breach::LimitExceeded { volume, bounds, limits }));
            }
        }
        if has_fallen {
            self.drained_at = now + drains_in;
        }
        if at_array > self.total && now > self.drained_at {
            return Err(Box::new(Breach::ArrayOverfull { at_array, total: self.total }));
        }
        Ok(())
    }
}

/// The limits as requests at a time, thousandths of a request a second, and bytes a second. No limit is the
/// largest number.
fn amounts_of(limits: &Limits) -> [u64; 3] {
    [
        limits.concurrency.map_or(u64::MAX, |limit| limit.get().into()),
        limits.max_iops.map_or(u64::MAX, |limit| MilliIops::at_most(limit).get()),
        limits.max_bandwidth.map_or(u64::MAX, Bandwidth::get),
    ]
}

/// Adds what is in force to a sum. A new run of a gateway has few requests at a time, and these count at
/// once. Its rates count only when the others have made room for them.
fn add(sum: &mut [u64; 3], InForce { grant, has_rates, .. }: InForce) {
    sum[0] += u64::from(grant.concurrency.get());
    if has_rates {
        sum[1] += grant.max_iops.map_or(0, MilliIops::get);
        sum[2] += grant.max_bandwidth.map_or(0, Bandwidth::get);
    }
}
