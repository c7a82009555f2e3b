//! The figures over all cells.

use serde::Serialize;

use super::interval::Interval;
use super::judge::{Judged, Judgement};
use super::outcome::Harm;
use super::setting::Law;

/// A cell in which fewer windows could be given back says too little by itself.
const TELLING: u64 = 30;
/// A law is to give back this part of what the oracle does, in each cell that tells.
const GIVES_BACK: f64 = 0.9;

/// What a volume may lose by a law. Absent: nothing is asked.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Bar {
    /// The most that its mean latency may grow.
    pub mean: f64,
    /// The most that its 99th percentile may grow.
    pub p99: Option<f64>,
    /// The least that must remain of its rate.
    pub rate: Option<f64>,
}

impl Bar {
    /// Of the other volume, if nothing is at risk.
    pub const SAFE: Self = Self { mean: 1.1, p99: None, rate: Some(0.97) };
    /// Of the other volume, if the promise is at risk.
    pub const AT_RISK: Self = Self { mean: 1.25, p99: None, rate: Some(0.9) };
    /// Of the promised volume alone.
    pub const ONESELF: Self = Self { mean: 1.02, p99: Some(1.02), rate: None };

    fn is_passed(self, harm: Harm) -> bool {
        harm.mean > self.mean
            || self.p99.is_some_and(|most| harm.p99 > most)
            || self.rate.is_some_and(|least| harm.rate < least)
    }
}

/// The worst that a figure was, and where.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Worst {
    /// The figure.
    pub value: f64,
    /// The number of the cell.
    pub cell: u32,
}

/// The worst that became of a volume, each figure by itself.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct WorstHarm {
    /// The mean latency.
    pub mean: Worst,
    /// The latency within which 99 % of the requests are answered.
    pub p99: Worst,
    /// The requests that were answered while clients asked.
    pub rate: Worst,
    /// In how many cells it was beyond the bar; absent without a bar.
    pub beyond: Option<usize>,
    /// In how many cells it was looked for.
    pub cells: usize,
}

/// The figures of a law.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LawSummary {
    /// The law.
    pub law: Law,
    /// How many cells were judged.
    pub cells: usize,
    /// In how many of them the promise is at risk.
    pub at_risk: usize,
    /// What the law gave back of what the oracle did, in windows; of all cells at risk together.
    pub restored: Option<Interval>,
    /// The same in the worst cell in which 30 windows or more could be given back.
    pub worst_restored: Option<Worst>,
    /// In how many cells so many windows could be given back.
    pub telling: usize,
    /// In how many of these the law gave back less than 0.9 of what the oracle did.
    pub below: usize,
    /// The cells in which fewer windows keep the promise than without control, by more than the interval.
    pub worse: Vec<u32>,
    /// Bursts of cells at risk of which the oracle keeps the first second.
    pub bursts: u64,
    /// Of these, bursts of which the law keeps it, too.
    pub bursts_kept: u64,
    /// What became of the other volume where the promise was safe without control.
    pub others_safe: Option<WorstHarm>,
    /// What became of it where the promise was at risk, beside the mildest static setting that keeps it as
    /// well.
    pub others_at_risk: Option<WorstHarm>,
    /// What became of it where the promised volume does not keep its promise even alone, beside no control.
    pub others_hopeless: Option<WorstHarm>,
    /// What became of the promised volume, alone on the array.
    pub oneself: Option<WorstHarm>,
}

/// The figures of each law by which all cells were judged.
pub fn summarise(cells: &[Judgement]) -> Vec<LawSummary> {
    let is_judged = |law: &Law| cells.iter().all(|cell| cell.laws.contains_key(law));
    Law::ALL.into_iter().filter(is_judged).map(|law| of_law(law, cells)).collect()
}

fn of_law(law: Law, cells: &[Judgement]) -> LawSummary {
    let judged = |cell: &Judgement| cell.laws[&law];
    let others = |is_in: fn(&Judgement) -> bool, bar: Option<Bar>| {
        let cells = cells.iter().filter(|cell| is_in(cell));
        worst(cells.map(|cell| (cell.cell, judged(cell).others)), bar)
    };
    let at_risk: Vec<&Judgement> = cells.iter().filter(|cell| cell.is_at_risk()).collect();
    let gains: Vec<Gain> = at_risk.iter().filter_map(|cell| Gain::of(cell, &judged(cell))).collect();
    let telling: Vec<Worst> = gains
        .iter()
        .filter(|gain| gain.recoverable >= TELLING as f64)
        .map(|gain| Worst { value: gain.restored / gain.recoverable, cell: gain.cell })
        .collect();
    let is_worse = |cell: &&Judgement| judged(cell).gained.high < 0.0;
    let of_oracle = |cell: &&Judgement| cell.oracle.as_ref().map_or(0, |oracle| count(&oracle.bursts));
    LawSummary {
        law,
        cells: cells.len(),
        at_risk: at_risk.len(),
        restored: restored(&gains),
        worst_restored: telling.iter().copied().min_by(|one, other| one.value.total_cmp(&other.value)),
        telling: telling.len(),
        below: telling.iter().filter(|share| share.value < GIVES_BACK).count(),
        worse: cells.iter().filter(is_worse).map(|cell| cell.cell).collect(),
        bursts: at_risk.iter().map(of_oracle).sum(),
        bursts_kept: at_risk.iter().map(|cell| judged(cell).bursts).sum(),
        others_safe: others(Judgement::is_safe, Some(Bar::SAFE)),
        others_at_risk: others(Judgement::is_at_risk, Some(Bar::AT_RISK)),
        others_hopeless: others(Judgement::is_hopeless, None),
        oneself: worst(cells.iter().map(|cell| (cell.cell, judged(cell).oneself)), Some(Bar::ONESELF)),
    }
}

fn count(kept: &[bool]) -> u64 {
    kept.iter().filter(|kept| **kept).count() as u64
}

fn worst(cells: impl Iterator<Item = (u32, Harm)>, bar: Option<Bar>) -> Option<WorstHarm> {
    let all: Vec<(u32, Harm)> = cells.collect();
    let most = |figure: fn(&Harm) -> f64| {
        let of = |(cell, harm): &(u32, Harm)| Worst { value: figure(harm), cell: *cell };
        all.iter().map(of).max_by(|one, other| one.value.total_cmp(&other.value))
    };
    let least = most(|harm| -harm.rate)?;
    Some(WorstHarm {
        mean: most(|harm| harm.mean)?,
        p99: most(|harm| harm.p99)?,
        rate: Worst { value: -least.value, ..least },
        beyond: bar.map(|bar| all.iter().filter(|(_, harm)| bar.is_passed(*harm)).count()),
        cells: all.len(),
    })
}

/// Windows of a cell that came back.
#[derive(Clone, Copy, Debug)]
struct Gain {
    cell: u32,
    restored: f64,
    recoverable: f64,
}

impl Gain {
    /// `None` if there is no oracle, as the promise is not at risk.
    #[allow(clippy::cast_precision_loss)] // some windows
    fn of(cell: &Judgement, judged: &Judged) -> Option<Self> {
        let before = cell.without.met as f64;
        let recoverable = cell.oracle.as_ref()?.kept.met as f64 - before;
        Some(Self { cell: cell.cell, restored: judged.kept.met as f64 - before, recoverable })
    }
}

/// The share of all cells together; `None` if nothing helps, or there is no cell.
fn restored(gains: &[Gain]) -> Option<Interval> {
    let is_any = gains.iter().map(|gain| gain.recoverable).sum::<f64>() > 0.0;
    is_any.then(|| {
        Interval::of(gains, |gains| {
            let sum = gains.fold((0.0, 0.0), |(restored, recoverable), gain| {
                (restored + gain.restored, recoverable + gain.recoverable)
            });
            sum.0 / sum.1
        })
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::oracle::{Mild, Oracle};
    use super::super::outcome::{Got, Kept};
    use super::*;

    const SAME: Harm = Harm { mean: 1.0, p99: 1.0, rate: 1.0 };

    fn kept(met: u64) -> Kept {
        Kept { met, windows: 100, in_time: met, requests: 100, worst_us: 0 }
    }

    /// A cell in which the oracle keeps so many windows of a hundred, and both laws so many.
    #[allow(clippy::cast_precision_loss)] // a hundred windows
    fn cell(number: u32, without: u64, oracle: Option<u64>, with: u64, others: Harm) -> Judgement {
        let change = with as f64 - without as f64;
        let gained = Interval { value: change, low: change - 5.0, high: change + 5.0 };
        let judged = Judged { kept: kept(with), gained, bursts: 1, others, oneself: SAME };
        let oracle = oracle.map(|met| Oracle {
            setting: "bound 8".to_owned(),
            kept: kept(met),
            bursts: vec![true, true, false],
            mild: vec![Mild {
                setting: "bound 8".to_owned(),
                met,
                other: Got { mean_us: 1, p99_us: 1, answered: 1 },
            }],
        });
        Judgement {
            cell: number,
            what: String::new(),
            promise: String::new(),
            idle: 0,
            alone: kept(100),
            without: kept(without),
            oracle,
            laws: Law::ALL.into_iter().map(|law| (law, judged)).collect::<BTreeMap<_, _>>(),
        }
    }

    #[test]
    fn restored_is_pooled_over_windows_and_a_cell_that_nothing_helps_counts_if_the_law_does_harm() {
        let cells = [
            cell(0, 50, Some(90), 80, SAME), // 30 of 40
            cell(1, 80, Some(90), 90, SAME), // 10 of 10, too few to tell alone
            cell(2, 50, Some(50), 40, SAME), // no static setting helps, and 10 are lost
            cell(3, 50, Some(50), 46, SAME), // 4 are lost, which is within the interval
            cell(4, 100, None, 100, SAME),
        ];
        let summary = &summarise(&cells)[0];
        let restored = summary.restored.expect("some can be helped");
        assert!((restored.value - 26.0 / 50.0).abs() < 1e-9, "{restored:?}");
        assert!(restored.low <= restored.value && restored.value <= restored.high);
        assert_eq!((summary.cells, summary.at_risk, summary.worse.as_slice()), (5, 4, [2].as_slice()));
        assert_eq!(summary.worst_restored, Some(Worst { value: 0.75, cell: 0 }));
        assert_eq!((summary.telling, summary.below), (1, 1));
        assert_eq!((summary.bursts, summary.bursts_kept), (8, 4), "the safe cell has no oracle");
    }

    #[test]
    fn harm_is_the_worst_of_all_cells_and_told_apart_by_risk() {
        let slow = Harm { mean: 2.0, p99: 3.0, rate: 0.5 };
        let cells = [cell(7, 100, None, 100, SAME), cell(8, 50, Some(90), 90, slow)];
        let summary = &summarise(&cells)[0];
        let worst = |harm: Option<WorstHarm>| harm.expect("there is a cell");
        let (safe, at_risk) = (worst(summary.others_safe), worst(summary.others_at_risk));
        assert_eq!((safe.mean, safe.beyond, safe.cells), (Worst { value: 1.0, cell: 7 }, Some(0), 1));
        assert_eq!((at_risk.mean, at_risk.beyond), (Worst { value: 2.0, cell: 8 }, Some(1)));
        assert_eq!(at_risk.rate, Worst { value: 0.5, cell: 8 });
        assert_eq!(summary.others_hopeless, None);
        assert_eq!(summarise(&[])[0].restored, None);
    }

    #[test]
    fn a_bar_asks_only_for_what_it_names() {
        let harm = |mean, p99, rate| Harm { mean, p99, rate };
        assert!(!Bar::SAFE.is_passed(harm(1.1, 9.0, 0.97)));
        assert!(Bar::SAFE.is_passed(harm(1.11, 1.0, 1.0)) && Bar::SAFE.is_passed(harm(1.0, 1.0, 0.96)));
        assert!(Bar::ONESELF.is_passed(harm(1.0, 1.03, 1.0)) && !Bar::ONESELF.is_passed(harm(1.0, 1.0, 0.1)));
    }
}
