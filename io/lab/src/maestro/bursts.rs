//! §5.2, figure 7: a workload of high priority beside one that has 50 clients and 200 by turns.
//!
//! The allocation *follows* a burst if within five intervals it has gone most of its way: from where it was
//! before the burst to where it is at the end of it, as the mean over all bursts; and back. Which is only
//! said where that is a way at all.

use super::{application, between};
use crate::study::application::{Interval, performance, share_at_least};
use crate::study::{Figure, Records, least, mean};

/// How long a burst lasts, and how long what is between two; in seconds.
const TURN: f64 = 20.0;
/// When the first begins that counts: those before are the law's beginning.
const FROM: f64 = 80.0;
const END: f64 = 400.0;
/// In how many intervals the allocation must have followed.
const FOLLOWED: usize = 5;
/// Over how many intervals at its end the level of a turn is taken.
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

/// The intervals of each turn of the bursty workload, the first with few clients.
fn turns(records: &Records) -> Vec<Vec<Interval>> {
    let Some(bursty) = application(records, "maestro", "bursty") else { return Vec::new() };
    let begins = std::iter::successors(Some(FROM), |at| Some(at + TURN)).take_while(|at| *at < END);
    begins.map(|at| bursty.between(at, at + TURN)).collect()
}

/// The allocation at the end of a turn.
fn level(turn: &[Interval]) -> Option<f64> {
    mean(turn.iter().rev().take(LEVEL).map(|interval| interval.allocation))
}

/// What share of the way from one level to the other the allocation has gone after [`FOLLOWED`] intervals of
/// every second turn from the `first` on, in percent; the least of all.
fn followed(turns: &[Vec<Interval>], first: usize, from: f64, to: f64) -> Option<f64> {
    let reached = |turn: &Vec<Interval>| Some(turn.get(FOLLOWED)?.allocation);
    least(turns.iter().skip(first).step_by(2).filter_map(reached).map(|at| 100.0 * (at - from) / (to - from)))
}
