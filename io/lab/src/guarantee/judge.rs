//! All runs of a cell, and what follows from them.

use std::collections::BTreeMap;
use std::sync::Mutex;

use anyhow::Context;
use serde::Serialize;
use weir_engine::VolumeConfig;
use weir_model::Span;

use super::draw::{Cell, Draw};
use super::load::{Load, Loads, MOST_RATE};
use super::matrix::{ArrayCase, Matrix};
use super::promise::{Metric, Promise, Request, Tally, mean, p99};
use super::run::{LASTS, Volume, busy, run};
use super::setting::{Law, Setting, Told, statics, without};
use crate::run::on_threads;

/// A promise that is kept in this share of windows is not at risk.
const KEPT: f64 = 0.99;
/// How often a load is run, at most, to find the weight with which it takes its share of the array's time.
const TRIES: u32 = 12;
/// A weight that is within this part of the wanted one is good enough.
const CLOSE: f64 = 0.05;
/// An array that is busy for more than this does not say how much more it is asked for.
const SATURATED: f64 = 0.95;

/// Judges cells of a matrix.
#[derive(Debug)]
pub struct Judge<'m> {
    matrix: &'m Matrix,
    loads: &'m Loads,
    /// The weights that were found.
    weights: Mutex<BTreeMap<Weighed, f64>>,
}

/// What a weight was found for.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Weighed {
    array: String,
    load: String,
    /// Percent of the array's time.
    share: u32,
    /// Where a recording begins, in percent of its requests.
    from: u32,
}

/// How a promise was kept.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct Kept {
    /// Windows that kept it.
    pub met: u64,
    /// All windows with requests.
    pub windows: u64,
    /// Requests within the limit.
    pub in_time: u64,
    /// All requests.
    pub requests: u64,
    /// The longest latency, in microseconds.
    pub worst_us: u64,
}

/// What became of a volume, in relation to what it was before. 1 is the same.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Harm {
    /// Its mean latency.
    pub mean: f64,
    /// The latency within which 99 % of its requests are answered.
    pub p99: f64,
    /// The requests that it got answered while it asked.
    pub rate: f64,
}

/// What a law did in a cell.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Judged {
    /// How it kept the promise.
    pub kept: Kept,
    /// What became of the other volume: beside no control, or, if the promise is at risk, beside the mildest
    /// static setting that keeps it as well.
    pub others: Harm,
    /// What became of the promised volume if it was alone on the array, beside no control.
    pub oneself: Harm,
}

/// The best static setting.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Oracle {
    /// The setting.
    pub setting: String,
    /// How it kept the promise.
    pub kept: Kept,
}

/// All that is found of a cell.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Judgement {
    /// Its number.
    pub cell: u32,
    /// What it is, for people.
    pub what: String,
    /// The promised latency, in microseconds.
    pub limit_us: u64,
    /// How the promise is kept by the volume alone.
    pub alone: Kept,
    /// The same beside the other volume, without control.
    pub without: Kept,
    /// The best static setting; only if the promise is at risk.
    pub oracle: Option<Oracle>,
    /// The laws.
    pub laws: BTreeMap<Law, Judged>,
}

/// The volumes of a cell, and its array, with one draw.
struct Bed<'c> {
    array: &'c ArrayCase,
    draw: Draw,
    promised: Load,
    other: Load,
}

impl<'m> Judge<'m> {
    /// A judge that has judged nothing.
    pub const fn new(matrix: &'m Matrix, loads: &'m Loads) -> Self {
        Self { matrix, loads, weights: Mutex::new(BTreeMap::new()) }
    }

    /// Judges all cells, and tells after each how many are done.
    ///
    /// # Errors
    /// As [`judge`](Self::judge).
    pub fn judge_all(
        &self,
        cells: &[Cell],
        jobs: usize,
        progress: &(dyn Fn(usize) + Sync),
    ) -> anyhow::Result<Vec<Judgement>> {
        let judged = Mutex::new(Vec::new());
        let work = |cell: &Cell| {
            let judgement = self.judge(cell).with_context(|| format!("cell {}: {cell}", cell.number))?;
            let mut judged = judged.lock().expect("no thread panics with it");
            judged.push(judgement);
            progress(judged.len());
            Ok(())
        };
        on_threads(jobs, cells, &work)?;
        let mut judged = judged.into_inner().expect("no thread panicked with it");
        judged.sort_by_key(|judgement| judgement.cell);
        Ok(judged)
    }

    /// Judges a cell.
    ///
    /// # Errors
    /// If a run breaks a rule that holds for every run, or the cell is of another matrix.
    pub fn judge(&self, cell: &Cell) -> anyhow::Result<Judgement> {
        let bed = self.bed(cell, cell.scored)?;
        let free = bed.alone(&without())?;
        let told = told(cell, &free);
        let keeps = |requests: &[Request]| Kept::of(told.promise, requests);
        let [promised, other] = bed.both(&without())?;
        let (alone, without) = (keeps(&free), keeps(&promised));
        let is_at_risk = alone.share() >= KEPT && without.share() < KEPT;
        let statics = if is_at_risk { self.statics(cell, &bed, told)? } else { Vec::new() };
        let mut laws = BTreeMap::new();
        for law in Law::ALL {
            let setting = law.setting(told);
            let [promised, others] = bed.both(&setting)?;
            let kept = keeps(&promised);
            let before = mildest(&statics, kept).map_or_else(|| Got::of(&other), |fixed| fixed.other);
            let oneself = Harm::of(Got::of(&free), Got::of(&bed.alone(&setting)?));
            laws.insert(law, Judged { kept, others: Harm::of(before, Got::of(&others)), oneself });
        }
        let best = statics.into_iter().max_by_key(|fixed| fixed.chosen);
        Ok(Judgement {
            cell: cell.number,
            what: cell.to_string(),
            limit_us: told.promise.limit.as_micros(),
            alone,
            without,
            oracle: best.map(|fixed| Oracle { setting: fixed.name, kept: fixed.kept }),
            laws,
        })
    }

    /// Every static setting: what it does with the draw that is scored, and how good it was with the other.
    fn statics(&self, cell: &Cell, scored: &Bed<'_>, told_scored: Told) -> anyhow::Result<Vec<Fixed>> {
        let chosen = self.bed(cell, cell.chosen)?;
        // Another part of a recording has another latency alone, and so another promise.
        let told_chosen = told(cell, &chosen.alone(&without())?);
        let of = |(to_choose, to_score): (Setting, Setting)| {
            let [promised, other] = chosen.both(&to_choose)?;
            let tally = told_chosen.promise.tally(&promised);
            let chosen = (tally.met, tally.in_time, Got::of(&other).answered);
            let [promised, other] = scored.both(&to_score)?;
            let kept = Kept::of(told_scored.promise, &promised);
            Ok(Fixed { name: to_score.name, chosen, kept, other: Got::of(&other) })
        };
        statics(told_chosen).into_iter().zip(statics(told_scored)).map(of).collect()
    }

    fn bed(&self, cell: &Cell, draw: Draw) -> anyhow::Result<Bed<'m>> {
        let array = self.matrix.array.get(&cell.array);
        let array = array.with_context(|| format!("there is no array {}", cell.array))?;
        let weighed = |load: &str, share, from| self.weighed(array, &cell.array, load, share, from);
        Ok(Bed {
            array,
            draw,
            promised: weighed(&cell.promised, cell.promised_share, draw.promised_from)?,
            other: weighed(&cell.other, cell.other_share, draw.other_from)?,
        })
    }

    /// The load with the weight with which it takes `share` of the time of the array.
    fn weighed(
        &self,
        array: &ArrayCase,
        array_name: &str,
        name: &str,
        share: f64,
        from: f64,
    ) -> anyhow::Result<Load> {
        let mut load = self.loads.load(name)?;
        if !self.loads.is_open(name) {
            return Ok(load);
        }
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // from 0 to 100
        let percent = |share: f64| (share * 100.0).round() as u32;
        let (array_name, load_name) = (array_name.to_owned(), name.to_owned());
        let key = Weighed { array: array_name, load: load_name, share: percent(share), from: percent(from) };
        let known = || self.weights.lock().expect("no thread panics with it");
        let found = known().get(&key).copied();
        load.weight = match found {
            Some(weight) => weight,
            None => weight(array, load.clone(), share * load.mean(), from)?,
        };
        known().insert(key, load.weight);
        Ok(load)
    }
}

/// What a static setting did in a cell.
struct Fixed {
    name: String,
    /// How good it was with the draw that the oracle chooses with: windows that kept the promise, requests in
    /// time, and what the other volume got.
    chosen: (u64, u64, u64),
    /// What it did with the draw that is scored.
    kept: Kept,
    other: Got,
}

/// What a volume got.
#[derive(Clone, Copy)]
struct Got {
    mean: Span,
    p99: Span,
    /// Requests that were answered while clients asked.
    answered: u64,
}

/// The static setting under which the other volume waits least, of those that keep the promise at least as
/// well; if none does, of those that keep it best.
fn mildest(statics: &[Fixed], kept: Kept) -> Option<&Fixed> {
    let best = statics.iter().map(|fixed| fixed.kept.met).max()?;
    let keeps = statics.iter().filter(|fixed| fixed.kept.met >= kept.met.min(best));
    keeps.min_by_key(|fixed| fixed.other.mean)
}

/// Runs the load until its weight is found. All runs are the same, whatever cell asks first.
#[allow(clippy::cast_precision_loss)] // requests of some minutes
fn weight(array: &ArrayCase, mut load: Load, share: f64, from: f64) -> anyhow::Result<f64> {
    let most = MOST_RATE * LASTS.as_secs_f64();
    let (mut light, mut heavy): (Option<f64>, Option<f64>) = (None, None);
    for _ in 0..TRIES {
        let config = VolumeConfig::default();
        let (busy, came) = busy(array, Volume { name: "promised", half: 0, load: &load, from, config })?;
        let step = (share / busy.max(1e-9)).min(most / (came as f64).max(1.0));
        if (step - 1.0).abs() < CLOSE {
            break;
        }
        let known = if step < 1.0 { &mut heavy } else { &mut light };
        *known = Some(load.weight);
        let step = if busy > SATURATED { step.min(0.25) } else { step.clamp(1.0 / 16.0, 16.0) };
        load.weight = match (light, heavy) {
            (Some(light), Some(heavy)) => (light * heavy).sqrt(),
            _ => load.weight * step,
        };
    }
    Ok(load.weight)
}

/// The promise of a cell, by the latencies of its volume alone.
fn told(cell: &Cell, alone: &[Request]) -> Told {
    let times = |span: Span| Span::from_secs_f64(span.as_secs_f64() * cell.factor);
    let least = Span::from_micros(1);
    let of = |metric: Metric| times(metric.of(alone)).max(least);
    Told { promise: Promise { metric: cell.metric, limit: of(cell.metric) }, mean: of(Metric::Mean) }
}

impl Bed<'_> {
    /// The requests of the promised volume, alone on the array.
    fn alone(&self, setting: &Setting) -> anyhow::Result<Vec<Request>> {
        let mut requests = run(self.array, setting.engine, self.draw.seed, &[self.promised(setting)])?;
        Ok(requests.swap_remove(0))
    }

    /// The requests of both volumes: of the promised one, and of the other.
    fn both(&self, setting: &Setting) -> anyhow::Result<[Vec<Request>; 2]> {
        let (load, from) = (&self.other, self.draw.other_from);
        let other = Volume { name: "other", half: 1, load, from, config: setting.other.clone() };
        let requests = run(self.array, setting.engine, self.draw.seed, &[self.promised(setting), other])?;
        Ok(requests.try_into().expect("two volumes were run"))
    }

    fn promised(&self, setting: &Setting) -> Volume<'_> {
        let (load, from) = (&self.promised, self.draw.promised_from);
        Volume { name: "promised", half: 0, load, from, config: setting.promised.clone() }
    }
}

impl Kept {
    fn of(promise: Promise, requests: &[Request]) -> Self {
        let Tally { met, windows, in_time, requests: count } = promise.tally(requests);
        let worst = requests.iter().map(|request| request.latency).max();
        Self { met, windows, in_time, requests: count, worst_us: worst.map_or(0, Span::as_micros) }
    }

    /// The share of windows that kept the promise; one if there was nothing to keep.
    #[allow(clippy::cast_precision_loss)] // some windows
    pub fn share(&self) -> f64 {
        if self.windows == 0 { 1.0 } else { self.met as f64 / self.windows as f64 }
    }
}

impl Got {
    fn of(requests: &[Request]) -> Self {
        let is_answered = |request: &&Request| request.came + request.latency <= LASTS;
        let answered = requests.iter().filter(is_answered).count() as u64;
        Self { mean: mean(requests), p99: p99(requests), answered }
    }
}

impl Harm {
    #[allow(clippy::cast_precision_loss)] // requests of some minutes
    fn of(before: Got, after: Got) -> Self {
        let ratio = |before: f64, after: f64| if before > 0.0 { after / before } else { 1.0 };
        Self {
            mean: ratio(before.mean.as_secs_f64(), after.mean.as_secs_f64()),
            p99: ratio(before.p99.as_secs_f64(), after.p99.as_secs_f64()),
            rate: ratio(before.answered as f64, after.answered as f64),
        }
    }
}

impl Judgement {
    /// Whether the volume alone keeps the promise, and does not beside the other one without control.
    pub const fn is_at_risk(&self) -> bool {
        self.oracle.is_some()
    }

    /// Whether the volume does not keep the promise even alone.
    pub fn is_hopeless(&self) -> bool {
        !self.is_at_risk() && !self.is_safe()
    }

    /// Whether the promise is kept without control.
    pub fn is_safe(&self) -> bool {
        self.without.share() >= KEPT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fixed(met: u64, mean_ms: u64) -> Fixed {
        let other = Got { mean: Span::from_millis(mean_ms), p99: Span::ZERO, answered: 0 };
        let kept = Kept { met, windows: 100, in_time: 0, requests: 0, worst_us: 0 };
        Fixed { name: format!("{met} windows, {mean_ms} ms"), chosen: (0, 0, 0), kept, other }
    }

    #[test]
    fn the_mildest_setting_is_the_one_that_keeps_as_much_with_the_least_wait_of_the_other() {
        let all = [fixed(90, 5), fixed(99, 50), fixed(99, 20), fixed(100, 900)];
        let mean_of = |met| {
            let kept = Kept { met, ..all[0].kept };
            mildest(&all, kept).map(|fixed| fixed.other.mean.as_micros() / 1_000)
        };
        assert_eq!(mean_of(95), Some(20));
        assert_eq!(mean_of(80), Some(5));
        assert_eq!(mean_of(101), Some(900), "none keeps as much, so the best");
        assert!(mildest(&[], all[0].kept).is_none());
    }

    #[test]
    fn two_judges_agree_and_a_promise_that_is_safe_needs_no_oracle() {
        let draw = Draw { seed: 1, promised_from: 0.0, other_from: 0.0 };
        let cell = Cell {
            number: 0,
            array: "station".to_owned(),
            promised: "small-reads".to_owned(),
            promised_share: 0.1,
            other: "mixed".to_owned(),
            other_share: 0.3,
            factor: 10.0,
            metric: Metric::Mean,
            scored: draw,
            chosen: draw,
        };
        let (matrix, loads) = (Matrix::embedded(), Loads::made_up_and(&[]));
        let judged = || Judge::new(&matrix, &loads).judge(&cell).expect("it is judged");
        let first = judged();
        assert_eq!(first, judged());
        assert!(first.is_safe() && first.oracle.is_none(), "{first:?}");
        assert_eq!(first.alone.requests, first.without.requests, "the load says how many are judged");
        assert!(first.laws.values().all(|law| law.kept.requests == first.alone.requests));
    }

    #[test]
    fn a_station_of_a_millisecond_is_made_half_busy_by_five_hundred_requests_a_second() {
        let matrix = Matrix::embedded();
        let loads = Loads::made_up_and(&[]);
        let judge = Judge::new(&matrix, &loads);
        let station = &matrix.array["station"];
        let load = judge.weighed(station, "station", "small-reads", 0.5, 0.0).expect("it is weighed");
        assert!((load.weight - 500.0).abs() < 50.0, "{} requests a second", load.weight);
    }
}
