//! All runs of a cell, and what follows from them.

use std::collections::BTreeMap;
use std::sync::Mutex;

use anyhow::Context;
use serde::Serialize;

use super::bed::{Bed, told};
use super::draw::{Cell, Draw};
use super::gateways::Gateways;
use super::interval::Interval;
use super::load::Loads;
use super::matrix::Matrix;
use super::oracle::Oracle;
use super::oracle_file::{Key, OracleFile, key};
use super::outcome::{Got, Harm, Kept};
use super::promise::{Metric, Request, Tally, idle};
use super::setting::{Law, Told, without};
use super::weigh::Scales;
use crate::run::on_threads;

/// A promise that is kept in this share of windows is not at risk.
const KEPT: f64 = 0.99;
/// Seconds beside one another are alike. So many of them are drawn anew together.
const BLOCK: usize = 10;

/// Judges cells of a matrix.
#[derive(Debug)]
pub struct Judge<'m> {
    matrix: &'m Matrix,
    scales: Scales<'m>,
    oracles: &'m OracleFile,
    gateways: Gateways,
}

/// What a law did in a cell.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Judged {
    /// How it kept the promise.
    pub kept: Kept,
    /// Windows that it kept and no control did not, less those the other way round.
    pub gained: Interval,
    /// Bursts of which it kept the first second, of those of which the oracle did.
    pub bursts: u64,
    /// What became of the other volume: beside no control, or, if the promise is at risk, beside the mildest
    /// static setting that keeps it as well.
    pub others: Harm,
    /// What became of the promised volume if it was alone on the array, beside no control.
    pub oneself: Harm,
}

/// All that is found of a cell.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Judgement {
    /// Its number.
    pub cell: u32,
    /// What it is, for people.
    pub what: String,
    /// The promise, for people.
    pub promise: String,
    /// Seconds in which no request came. No law can change them.
    pub idle: u64,
    /// How the promise is kept by the volume alone.
    pub alone: Kept,
    /// The same beside the other volume, without control.
    pub without: Kept,
    /// The best static setting; only if the promise is at risk.
    pub oracle: Option<Oracle>,
    /// The laws.
    pub laws: BTreeMap<Law, Judged>,
}

impl<'m> Judge<'m> {
    /// A judge that has judged nothing.
    pub const fn new(matrix: &'m Matrix, loads: &'m Loads, oracles: &'m OracleFile) -> Self {
        Self { matrix, scales: Scales::new(loads), oracles, gateways: Gateways::ONE }
    }

    /// Judges laws over several gateways: the promised volume is behind the first, and the other volume's
    /// clients are behind the rest. What no control and static settings do is still that of one gateway.
    #[must_use]
    pub fn over(self, gateways: Gateways) -> Self {
        Self { gateways, ..self }
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
    /// If a run breaks a rule that holds for every run, the cell is of another matrix, or what was found
    /// cannot be kept.
    pub fn judge(&self, cell: &Cell) -> anyhow::Result<Judgement> {
        let bed = self.bed(cell, cell.scored)?;
        let free = bed.alone(&without())?;
        let told = told(cell, &free);
        let tally = |requests: &[Request]| told.promise.tally(requests);
        let keeps = |requests: &[Request]| Kept::of(&tally(requests), requests);
        let no_control = bed.both(&without())?;
        let before = tally(&no_control[0]);
        let (alone, without) = (keeps(&free), keeps(&no_control[0]));
        let is_at_risk = alone.share() >= KEPT && without.share() < KEPT;
        let oracle = is_at_risk.then(|| {
            let key = key(cell, &bed, told, &free, &no_control)?;
            self.oracles.get(&key).map_or_else(|| self.find(key, cell, (&bed, told)), Ok)
        });
        let oracle = oracle.transpose()?;
        let mut laws = BTreeMap::new();
        for law in self.gateways.laws().iter().copied() {
            let setting = self.gateways.setting(law, told);
            let [promised, others] = bed.both_behind(self.gateways, &setting)?;
            let (after, kept) = (tally(&promised), keeps(&promised));
            let compared = oracle.as_ref().map(|oracle| oracle.mildest(kept.met).other);
            let judged = Judged {
                kept,
                gained: gained(told.promise.metric, &before, &after),
                bursts: oracle.as_ref().map_or(0, |oracle| both(&oracle.bursts, &after.bursts)),
                others: Harm::of(compared.unwrap_or_else(|| Got::of(&no_control[1])), Got::of(&others)),
                oneself: Harm::of(Got::of(&free), Got::of(&bed.alone(&setting)?)),
            };
            laws.insert(law, judged);
        }
        let (what, promise) = (cell.to_string(), told.promise.to_string());
        // A closed load always has a request waiting.
        let idle = if cell.metric == Metric::Rate { 0 } else { idle(&free) };
        Ok(Judgement { cell: cell.number, what, promise, idle, alone, without, oracle, laws })
    }

    /// Finds the oracle of a cell, and keeps it.
    fn find(&self, key: Key, cell: &Cell, scored: (&Bed<'_>, Told)) -> anyhow::Result<Oracle> {
        let chosen: anyhow::Result<Vec<_>> = cell.chosen.iter().map(|draw| self.bed(cell, *draw)).collect();
        let oracle = Oracle::find(cell, scored, &chosen?)?;
        self.oracles.keep(key, cell, &oracle)?;
        Ok(oracle)
    }

    /// A cell with a draw.
    ///
    /// # Errors
    /// If the cell is of another matrix, or its loads cannot be run.
    pub(super) fn bed(&self, cell: &Cell, draw: Draw) -> anyhow::Result<Bed<'m>> {
        let array = self.matrix.array.get(&cell.array);
        let array = array.with_context(|| format!("there is no array {}", cell.array))?;
        let weigh = |load: &str, share, from| self.scales.weigh((&cell.array, array), load, share, from);
        Ok(Bed {
            array,
            draw,
            promised: weigh(&cell.promised, cell.promised_share, draw.promised_from)?,
            other: weigh(&cell.other, cell.other_share, draw.other_from)?,
        })
    }
}

/// Windows kept after and not before, less those the other way round. Windows of a percentile are long, so
/// each is drawn by itself.
fn gained(metric: Metric, before: &Tally, after: &Tally) -> Interval {
    let changes: Vec<f64> = before.windows.iter().zip(&after.windows).map(change).collect();
    let block = if metric == Metric::P99 { 1 } else { BLOCK };
    let blocks: Vec<f64> = changes.chunks(block).map(|block| block.iter().sum()).collect();
    Interval::of(&blocks, |blocks| blocks.sum())
}

fn change((before, after): (&bool, &bool)) -> f64 {
    f64::from(u8::from(*after)) - f64::from(u8::from(*before))
}

/// How many places are true in both.
fn both(one: &[bool], other: &[bool]) -> u64 {
    one.iter().zip(other).filter(|(one, other)| **one && **other).count() as u64
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
    use std::num::NonZeroU32;

    use weir_model::Span;

    use super::*;

    /// A cell of small reads on a station.
    fn cell(factor: f64, other: &str) -> Cell {
        let draw = |seed| Draw { seed, promised_from: 0.0, other_from: 0.0 };
        Cell {
            number: 0,
            array: "station".to_owned(),
            promised: "small-reads".to_owned(),
            promised_share: 0.1,
            other: other.to_owned(),
            other_share: 0.3,
            factor,
            metric: Metric::Mean,
            scored: draw(1),
            chosen: [draw(2), draw(3), draw(4)],
        }
    }

    fn judge(path: &std::path::Path, cell: &Cell) -> Judgement {
        let (matrix, loads) = (Matrix::embedded(), Loads::made_up_and(&[]));
        let oracles = OracleFile::open(path).expect("it is read");
        Judge::new(&matrix, &loads, &oracles).judge(cell).expect("it is judged")
    }

    #[test]
    fn two_judges_agree_and_a_promise_that_is_safe_needs_no_oracle() {
        let folder = tempfile::tempdir().expect("there is a folder for temporary files");
        let judged = || judge(&folder.path().join("oracle"), &cell(10.0, "mixed"));
        let first = judged();
        assert_eq!(first, judged());
        assert!(first.is_safe() && first.oracle.is_none(), "{first:?}");
        assert_eq!(first.alone.requests, first.without.requests, "the load says how many are judged");
        assert!(first.laws.values().all(|law| law.kept.requests == first.alone.requests));
    }

    #[test]
    fn over_several_gateways_the_promised_volume_is_asked_for_the_same_and_its_promise_is_kept() {
        let folder = tempfile::tempdir().expect("there is a folder for temporary files");
        let (matrix, loads) = (Matrix::embedded(), Loads::made_up_and(&[]));
        let oracles = OracleFile::open(&folder.path().join("oracle")).expect("it is read");
        let number = NonZeroU32::new(4).expect("above zero");
        let gateways = Gateways { number, apart: Span::from_millis(50) };
        let judge = Judge::new(&matrix, &loads, &oracles).over(gateways);
        let judged = judge.judge(&cell(10.0, "mixed")).expect("it is judged");
        assert_eq!(judged.laws.keys().copied().collect::<Vec<_>>(), [Law::Promise]);
        let law = judged.laws[&Law::Promise];
        assert_eq!(law.kept.requests, judged.alone.requests);
        assert!(law.kept.share() >= KEPT, "{law:?}");
        assert!((0.95..1.05).contains(&law.others.rate), "the parts of the other load add up: {law:?}");
    }

    #[test]
    fn gained_windows_are_those_that_are_kept_anew_less_those_that_are_lost() {
        let tally = |windows: &[bool]| Tally { windows: windows.to_vec(), ..Tally::default() };
        let [kept, lost] = [true, false].map(|kept| tally(&[kept; 100]));
        let gain = |before, after| {
            let Interval { value, low, high } = gained(Metric::Mean, before, after);
            (value, low, high)
        };
        assert_eq!(gain(&lost, &kept), (100.0, 100.0, 100.0));
        assert_eq!(gain(&kept, &lost), (-100.0, -100.0, -100.0));
        let first_block: Vec<bool> = (0..100).map(|window| window < 10).collect();
        let one = gained(Metric::Mean, &lost, &tally(&first_block));
        let is_about = |figure: f64, value: f64| (figure - value).abs() < 1e-9;
        assert!(is_about(one.value, 10.0) && is_about(one.low, 0.0), "{one:?}");
        assert!((20.0..=40.0).contains(&one.high), "{one:?}");
        let alone = gained(Metric::P99, &lost, &tally(&first_block));
        assert!(alone.low > one.low && alone.high < one.high, "{alone:?}");
        assert_eq!(both(&[true, true, false], &[true, false, true]), 1);
    }
}
