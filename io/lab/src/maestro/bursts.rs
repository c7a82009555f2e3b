//! §5.2, figure 7: a workload of high priority beside a workload that has 50 and 200 clients by turns.
//!
//! The allocation *follows* a burst if it goes most of its way within five intervals. The way leads from the
//! allocation before the burst to the allocation at the end of it, each as the mean over all bursts. The same
//! holds for the way back. If the two allocations are equal, there is no way, and no figure.

use super::{application, between};
use crate::study::application::{Interval, performance, share_at_least};
use crate::study::{Figure, Records, least, mean};

/// How long a burst lasts, and how long the pause between two bursts; in seconds.
const TURN: f64 = 20.0;
/// When the first turn begins that counts. In the turns before, the law is still finding its start.
const FROM: f64 = 80.0;
const END: f64 = 400.0;
/// The number of intervals within which the allocation must have followed.
const FOLLOWED: usize = 5;
/// The number of intervals at the end of a turn that define its level.
const LEVEL: usize = 3;

/// The figures of the claim.
pub(super) fn study(records: &Records) -> Vec<Figure> {
    let light = between(records, "maestro", "light", FROM, END);
    let turns = turns(records);
    let level =
        |quiet: bool| mean(turns.iter().skip(usize::from(!quiet)).step_by(2).filter_map(|turn| level(turn)));
    let (quiet, burst) = (level(true), level(false));
    let without = between(records, "none", "light", FROM, END);
    vec![
        Figure::new("light-met", share_at_least(&light, 0.9)),
        Figure::new("light", performance(&light)),
        Figure::new("bursty-quiet-allocation", quiet),
        Figure::new("bursty-burst-allocation", burst),
        Figure::new("burst-followed", quiet.zip(burst).and_then(|(from, to)| followed(&turns, 1, from, to))),
        Figure::new("end-followed", quiet.zip(burst).and_then(|(to, from)| followed(&turns, 2, from, to))),
        Figure::new("light-met-without", share_at_least(&without, 0.9)),
    ]
}

/// The intervals of each turn of the bursty workload. The first turn is one with few clients.
fn turns(records: &Records) -> Vec<Vec<Interval>> {
    let Some(bursty) = application(records, "maestro", "bursty") else { return Vec::new() };
    let begins = std::iter::successors(Some(FROM), |at| Some(at + TURN)).take_while(|at| *at < END);
    begins.map(|at| bursty.between(at, at + TURN)).collect()
}

/// The allocation at the end of a turn.
fn level(turn: &[Interval]) -> Option<f64> {
    mean(turn.iter().rev().take(LEVEL).map(|interval| interval.allocation))
}

/// The share of the way from the level `from` to the level `to` that the allocation has gone after
/// [`FOLLOWED`] intervals, in percent. It is the least over every second turn from the turn `first` on.
fn followed(turns: &[Vec<Interval>], first: usize, from: f64, to: f64) -> Option<f64> {
    let reached = |turn: &Vec<Interval>| Some(turn.get(FOLLOWED)?.allocation);
    least(turns.iter().skip(first).step_by(2).filter_map(reached).map(|at| 100.0 * (at - from) / (to - from)))
}
