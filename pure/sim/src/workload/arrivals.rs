//! When the requests of one phase come.
//!
//! Open arrivals at equal distances are counted, and their distances are not added up. Otherwise a distance
//! that is no whole number of nanoseconds would make the rate a little wrong, for ever.

use std::collections::VecDeque;

use rand_distr::{Distribution, Exp1};
use weir_model::{Instant, Iops, Span};

use crate::random::Prng;
use crate::scenario;

/// How long a thread waits at least after an error. A failed array answers at once, so threads that do not
/// think would ask it for ever in the same instant.
const AFTER_ERROR: Span = Span::from_millis(10);

/// The arrivals of a phase that has begun.
#[derive(Debug)]
pub(super) enum Arrivals {
    /// Open: at distances that are exponentially distributed.
    Poisson { mean_gap: f64, next: Instant },
    /// Open: at equal distances, the first at the beginning.
    Constant { gap: f64, began: Instant, asked: u64, next: Instant },
    /// Closed: threads that ask, wait and think.
    Closed {
        threads: u32,
        think: Span,
        /// When the threads that have their answer ask again; in order.
        thinking: VecDeque<Instant>,
    },
}

impl Arrivals {
    /// The arrivals of a phase that begins now, while `busy` threads still wait for an answer.
    pub(super) fn begin(now: Instant, how: scenario::Arrivals, busy: u32, random: &mut Prng) -> Self {
        match how {
            scenario::Arrivals::Poisson(rate) => {
                let mean_gap = nanos_between(rate);
                Self::Poisson { mean_gap, next: after(now, mean_gap * draw(random)) }
            }
            scenario::Arrivals::Constant(rate) => {
                Self::Constant { gap: nanos_between(rate), began: now, asked: 0, next: now }
            }
            scenario::Arrivals::Closed { threads, think } => {
                let idle = threads.saturating_sub(busy) as usize;
                Self::Closed { threads, think, thinking: std::iter::repeat_n(now, idle).collect() }
            }
        }
    }

    pub(super) fn next_at(&self) -> Instant {
        match self {
            Self::Poisson { next, .. } | Self::Constant { next, .. } => *next,
            Self::Closed { thinking, .. } => thinking.front().copied().unwrap_or(Instant::FAR_FUTURE),
        }
    }

    /// The arrival of [`Arrivals::next_at`] happens. Returns whether it is a thread's.
    pub(super) fn advance(&mut self, random: &mut Prng) -> bool {
        match self {
            Self::Poisson { mean_gap, next } => *next = after(*next, *mean_gap * draw(random)),
            Self::Constant { gap, began, asked, next } => {
                *asked += 1;
                *next = after(*began, *gap * count(*asked));
            }
            Self::Closed { thinking, .. } => return thinking.pop_front().is_some(),
        }
        false
    }

    /// A thread has its answer, and `busy` others still wait for theirs.
    pub(super) fn on_answer(&mut self, now: Instant, ok: bool, busy: u32) {
        let Self::Closed { threads, think, thinking } = self else { return };
        if busy as usize + thinking.len() >= *threads as usize {
            return; // one too many, from a phase with more of them
        }
        let at = now + if ok { *think } else { AFTER_ERROR.max(*think) };
        if thinking.back().is_none_or(|last| *last <= at) {
            thinking.push_back(at);
        } else {
            let place = thinking.partition_point(|other| *other <= at);
            thinking.insert(place, at);
        }
    }
}

fn nanos_between(rate: Iops) -> f64 {
    1e9 / rate.get()
}

/// Exponentially distributed with a mean of one.
fn draw(random: &mut Prng) -> f64 {
    Exp1.sample(random)
}

/// Exact up to 2^53 requests: at a million a second, 285 years.
#[allow(clippy::cast_precision_loss)]
const fn count(requests: u64) -> f64 {
    requests as f64
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // `as` saturates: "never" is what is meant
fn after(start: Instant, nanos: f64) -> Instant {
    start + Span::from_nanos(nanos.round() as u64)
}
