//! The volumes of a scene, and their runs.

use std::num::NonZeroU32;
use std::ops::Range;

use weir_engine::{EngineConfig, VolumeConfig};
use weir_model::{Iops, Priority, Span};

use crate::guarantee::load::Load;
use crate::guarantee::matrix::{ArrayCase, BurstSpec, MadeUpSpec};
use crate::guarantee::promise::{LASTS, Metric, Promise, Request, mean};
use crate::guarantee::run::{Volume, run};
use crate::guarantee::setting::{Law, Wanted, without};
use crate::quantities::{Bytes, Text};

/// A promised latency is so many times the mean alone.
const FACTOR: f64 = 3.0;
/// A greedy volume asks for so many times its rate.
const GREEDY: f64 = 5.0;
/// A latency is promised up to so many times the mean rate, because requests come at random.
const UP_TO: f64 = 1.5;
/// A volume that takes turns is there for so long, and then is not.
const TURN: Span = Span::from_secs(100);
/// A promise is kept again with the first of so many windows in a row.
const IN_A_ROW: usize = 5;

/// A volume of a scene: small reads at random places.
#[derive(Clone, Copy, Debug)]
pub(super) struct Actor {
    /// Each with one request at a time; absent: the load is open.
    threads: Option<u32>,
    /// For which part of what the array can do an open load asks.
    share: f64,
    in_turns: bool,
    is_greedy: bool,
    has_latency: bool,
    /// Requests of a run, one behind the other; absent: each is at a random place.
    run: Option<u32>,
    /// With the priority of its promise.
    rate: Option<f64>,
}

impl Actor {
    pub(super) const fn threads(threads: u32) -> Self {
        Self { threads: Some(threads), ..Self::open(0.0) }
    }

    pub(super) const fn open(share: f64) -> Self {
        Self {
            threads: None,
            share,
            in_turns: false,
            is_greedy: false,
            has_latency: false,
            run: None,
            rate: None,
        }
    }

    /// It reads one behind the other, in runs of 4 MiB.
    pub(super) const fn in_order(self) -> Self {
        Self { run: Some(64), ..self }
    }

    /// It is there for 100 s, and then for 100 s it is not.
    pub(super) const fn in_turns(self) -> Self {
        Self { in_turns: true, ..self }
    }

    /// It is promised a latency, up to its rate.
    pub(super) const fn with_latency(self) -> Self {
        Self { has_latency: true, ..self }
    }

    /// It is promised its rate, with this priority.
    pub(super) const fn with_rate(self, priority: f64) -> Self {
        Self { rate: Some(priority), ..self }
    }

    /// It asks for five times its rate.
    pub(super) const fn greedy(self) -> Self {
        Self { is_greedy: true, ..self }
    }

    /// Its load, if it is not greedy, on an array that can answer so many such requests in a second.
    pub(super) fn load(&self, capacity: f64) -> Load {
        let mut load = Load::made_up(self.spec());
        if load.is_open() {
            load.weight = self.share * capacity;
        }
        load
    }

    fn spec(&self) -> MadeUpSpec {
        MadeUpSpec {
            reads: 1.0,
            request: Text(Bytes(if self.run.is_some() { 64 << 10 } else { 8 << 10 })),
            threads: self.threads.and_then(NonZeroU32::new),
            run: self.run.and_then(NonZeroU32::new),
            flush_every: None,
            bursts: self.in_turns.then_some(BurstSpec { on: Text(TURN), off: Text(TURN) }),
            steps: None,
        }
    }
}

/// How many requests such as those of all scenes an array answers in a second, if 32 threads ask for them in
/// each half.
///
/// # Errors
/// If a run breaks a rule that holds for every run.
pub(super) fn capacity(array: &ArrayCase) -> anyhow::Result<f64> {
    let threads = || Load::made_up(Actor::threads(32).spec());
    let usual = || VolumeConfig::default();
    let requests = both(array, without().engine, 1, &[threads(), threads()], [usual(), usual()])?;
    let answered = requests.iter().map(|requests| answered_in(requests, &(Span::ZERO..LASTS))).sum::<f64>();
    Ok(answered / LASTS.as_secs_f64())
}

/// What is the same under all laws, with one seed.
pub(super) struct Stage<'c> {
    actors: &'c [Actor; 2],
    array: &'c ArrayCase,
    seed: u64,
    loads: [Load; 2],
    /// What each asks for in a second, if it is not greedy.
    rates: [f64; 2],
    /// The latency that each is promised.
    limits: [Span; 2],
    /// The share of windows in which each keeps that alone.
    alone: [f64; 2],
    /// What each gets answered alone.
    answered_alone: [f64; 2],
    without: [Vec<Request>; 2],
}

/// A run on a stage.
pub(super) struct Take<'s> {
    stage: &'s Stage<'s>,
    requests: [Vec<Request>; 2],
}

impl<'c> Stage<'c> {
    /// Runs each volume alone, and both without control.
    ///
    /// # Errors
    /// If a run breaks a rule that holds for every run.
    pub(super) fn set(
        array: &'c ArrayCase,
        actors: &'c [Actor; 2],
        calm: &[Load; 2],
        seed: u64,
    ) -> anyhow::Result<Self> {
        let rates = calm.each_ref().map(|load| load.weight);
        let none = without();
        let mut limits = [Span::ZERO; 2];
        let mut alone = [1.0; 2];
        let mut answered_alone = [0.0; 2];
        for place in 0..2 {
            let volume = volume(place, calm, VolumeConfig::default());
            let requests = run(array, none.engine, seed, &[volume])?.swap_remove(0);
            limits[place] = Span::from_secs_f64(mean(&requests).as_secs_f64() * FACTOR);
            alone[place] = share_kept(&requests, limits[place]);
            answered_alone[place] = answered_in(&requests, &(Span::ZERO..LASTS));
        }
        let mut loads = calm.clone();
        for (load, actor) in loads.iter_mut().zip(actors) {
            load.weight *= if actor.is_greedy { GREEDY } else { 1.0 };
        }
        let configs = [none.promised, none.other];
        let without = both(array, none.engine, seed, &loads, configs)?;
        Ok(Self { actors, array, seed, loads, rates, limits, alone, answered_alone, without })
    }

    /// A run under a law; `None` if the law cannot be told what is promised.
    ///
    /// # Errors
    /// If it breaks a rule that holds for every run.
    pub(super) fn take(&self, law: Law) -> anyhow::Result<Option<Take<'_>>> {
        let told = |place: usize| {
            let actor = &self.actors[place];
            law.told(Wanted {
                latency: actor.has_latency.then_some(self.limits[place]),
                rate: Iops::new(self.rates[place] * if actor.has_latency { UP_TO } else { 1.0 }),
                is_rate_promised: actor.rate.is_some(),
                priority: actor.rate.and_then(Priority::new).unwrap_or_default(),
            })
        };
        let (Some(first), Some(second)) = (told(0), told(1)) else { return Ok(None) };
        let requests = both(self.array, law.engine(), self.seed, &self.loads, [first, second])?;
        Ok(Some(Take { stage: self, requests }))
    }

    /// The run without control.
    pub(super) fn without(&self) -> Take<'_> {
        Take { stage: self, requests: self.without.clone() }
    }
}

impl Take<'_> {
    /// Requests of a volume that were answered while clients asked.
    pub(super) fn answered(&self, place: usize) -> f64 {
        answered_in(&self.requests[place], &(Span::ZERO..LASTS))
    }

    /// The same without control.
    pub(super) fn answered_without(&self, place: usize) -> f64 {
        answered_in(&self.stage.without[place], &(Span::ZERO..LASTS))
    }

    /// The same alone.
    pub(super) const fn answered_alone(&self, place: usize) -> f64 {
        self.stage.answered_alone[place]
    }

    /// Requests of a volume that were answered in this time.
    pub(super) fn answered_in(&self, place: usize, time: &Range<Span>) -> f64 {
        answered_in(&self.requests[place], time)
    }

    /// The same without control.
    pub(super) fn answered_without_in(&self, place: usize, time: &Range<Span>) -> f64 {
        answered_in(&self.stage.without[place], time)
    }

    /// Which part of a volume's rate is not answered.
    pub(super) fn shortfall(&self, place: usize) -> f64 {
        1.0 - self.answered(place) / (self.stage.rates[place] * LASTS.as_secs_f64())
    }

    /// The share of windows that keep the latency of a volume.
    pub(super) fn kept(&self, place: usize) -> f64 {
        share_kept(&self.requests[place], self.stage.limits[place])
    }

    /// The same if the volume is alone, and not greedy.
    pub(super) fn kept_alone(&self, place: usize) -> f64 {
        self.stage.alone[place]
    }

    /// How many windows with requests pass after an instant until the latency of a volume is kept in five of
    /// them in a row; if it is not, all that are left.
    #[allow(clippy::cast_precision_loss)] // some windows
    pub(super) fn recovery(&self, place: usize, after: Span) -> f64 {
        let requests = &self.requests[place];
        let later = &requests[requests.partition_point(|request| request.came < after)..];
        let windows = promise(self.stage.limits[place]).tally(later).windows;
        let kept = windows.windows(IN_A_ROW).position(|row| row.iter().all(|kept| *kept));
        kept.unwrap_or(windows.len()) as f64
    }
}

const fn promise(limit: Span) -> Promise {
    Promise { metric: Metric::Mean, limit }
}

#[allow(clippy::cast_precision_loss)] // some windows
fn share_kept(requests: &[Request], limit: Span) -> f64 {
    let windows = promise(limit).tally(requests).windows;
    windows.iter().filter(|kept| **kept).count() as f64 / windows.len().max(1) as f64
}

#[allow(clippy::cast_precision_loss)] // requests of some minutes
fn answered_in(requests: &[Request], time: &Range<Span>) -> f64 {
    requests.iter().filter(|request| time.contains(&(request.came + request.latency))).count() as f64
}

fn volume(place: usize, loads: &[Load; 2], config: VolumeConfig) -> Volume<'_> {
    let (name, half) = if place == 0 { ("promised", 0) } else { ("other", 1) };
    Volume { name, gateway: 0, half, load: &loads[place], from: 0.0, config }
}

fn both(
    array: &ArrayCase,
    engine: EngineConfig,
    seed: u64,
    loads: &[Load; 2],
    [first, second]: [VolumeConfig; 2],
) -> anyhow::Result<[Vec<Request>; 2]> {
    let volumes = [volume(0, loads, first), volume(1, loads, second)];
    Ok(run(array, engine, seed, &volumes)?.try_into().expect("two volumes were run"))
}
