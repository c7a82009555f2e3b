//! The figures over all cells.

use rand::RngExt;
use serde::Serialize;
use weir_sim::Seed;

use super::judge::{Harm, Judged, Judgement};
use super::setting::Law;

/// A cell in which fewer windows could be given back says too little by itself.
const TELLING: u64 = 30;
/// How many times cells are drawn anew for an interval.
const RESAMPLED: usize = 1_000;

/// A figure, and where it lies with 95 % certainty.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Interval {
    /// The figure.
    pub value: f64,
    /// The 2.5th percentile, if other cells had been drawn.
    pub low: f64,
    /// The 97.5th.
    pub high: f64,
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
    pub worst_restored: Option<f64>,
    /// In how many cells fewer windows keep the promise than without control.
    pub worse: usize,
    /// The worst that became of the other volume where the promise was safe without control.
    pub others_safe: Option<Harm>,
    /// The worst that became of it where the promise was at risk, beside the mildest static setting that
    /// keeps it as well.
    pub others_at_risk: Option<Harm>,
    /// The worst that became of it where the promised volume does not keep its promise even alone, beside no
    /// control.
    pub others_hopeless: Option<Harm>,
    /// The worst that became of the promised volume, alone on the array.
    pub oneself: Option<Harm>,
}

/// The figures of each law.
pub fn summarise(cells: &[Judgement]) -> Vec<LawSummary> {
    Law::ALL.into_iter().map(|law| of_law(law, cells)).collect()
}

fn of_law(law: Law, cells: &[Judgement]) -> LawSummary {
    let judged = |cell: &Judgement| cell.laws[&law];
    let worst = |cells: Vec<&Judgement>, harm: fn(&Judged) -> Harm| {
        cells.into_iter().map(|cell| harm(&judged(cell))).reduce(|one, other| Harm {
            mean: one.mean.max(other.mean),
            p99: one.p99.max(other.p99),
            rate: one.rate.min(other.rate),
        })
    };
    let at_risk: Vec<&Judgement> = cells.iter().filter(|cell| cell.is_at_risk()).collect();
    let gains: Vec<Gain> = at_risk.iter().filter_map(|cell| Gain::of(cell, &judged(cell))).collect();
    LawSummary {
        law,
        cells: cells.len(),
        at_risk: at_risk.len(),
        restored: interval(&gains),
        worst_restored: gains
            .iter()
            .filter(|gain| gain.recoverable >= TELLING as f64)
            .map(Gain::share)
            .reduce(f64::min),
        worse: cells.iter().filter(|cell| judged(cell).kept.met < cell.without.met).count(),
        others_safe: worst(cells.iter().filter(|cell| cell.is_safe()).collect(), |judged| judged.others),
        others_at_risk: worst(at_risk, |judged| judged.others),
        others_hopeless: worst(cells.iter().filter(|cell| cell.is_hopeless()).collect(), |judged| {
            judged.others
        }),
        oneself: worst(cells.iter().collect(), |judged| judged.oneself),
    }
}

/// Windows of a cell that came back.
#[derive(Clone, Copy, Debug)]
struct Gain {
    restored: f64,
    recoverable: f64,
}

impl Gain {
    /// `None` if there is no oracle, as the promise is not at risk.
    #[allow(clippy::cast_precision_loss)] // some windows
    fn of(cell: &Judgement, judged: &Judged) -> Option<Self> {
        let before = cell.without.met as f64;
        let recoverable = cell.oracle.as_ref()?.kept.met as f64 - before;
        Some(Self { restored: judged.kept.met as f64 - before, recoverable })
    }

    fn share(&self) -> f64 {
        self.restored / self.recoverable
    }
}

/// The share of all cells together, and where it lies if as many cells are drawn of them anew.
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn interval(gains: &[Gain]) -> Option<Interval> {
    let pooled = |gains: &mut dyn Iterator<Item = &Gain>| {
        let sum = gains.fold((0.0, 0.0), |(restored, recoverable), gain| {
            (restored + gain.restored, recoverable + gain.recoverable)
        });
        sum.0 / sum.1
    };
    let all = pooled(&mut gains.iter());
    if gains.iter().map(|gain| gain.recoverable).sum::<f64>() <= 0.0 {
        return None; // nothing helps, or there is no cell
    }
    let mut random = Seed(1).stream("which cells are drawn anew");
    let mut shares: Vec<f64> = (0..RESAMPLED)
        .map(|_| pooled(&mut (0..gains.len()).map(|_| &gains[random.random_range(0..gains.len())])))
        .collect();
    shares.sort_by(f64::total_cmp);
    let at = |part: f64| shares[((RESAMPLED - 1) as f64 * part) as usize];
    Some(Interval { value: all, low: at(0.025), high: at(0.975) })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::judge::{Kept, Oracle};
    use super::*;

    const SAME: Harm = Harm { mean: 1.0, p99: 1.0, rate: 1.0 };

    fn kept(met: u64) -> Kept {
        Kept { met, windows: 100, in_time: met, requests: 100, worst_us: 0 }
    }

    /// A cell in which the oracle keeps so many windows of a hundred, and both laws so many.
    fn cell(without: u64, oracle: Option<u64>, with: u64, others: Harm) -> Judgement {
        let judged = Judged { kept: kept(with), others, oneself: SAME };
        Judgement {
            cell: 0,
            what: String::new(),
            limit_us: 1,
            alone: kept(100),
            without: kept(without),
            oracle: oracle.map(|met| Oracle { setting: "bound 8".to_owned(), kept: kept(met) }),
            laws: Law::ALL.into_iter().map(|law| (law, judged)).collect::<BTreeMap<_, _>>(),
        }
    }

    #[test]
    fn restored_is_pooled_over_windows_and_a_cell_that_nothing_helps_counts_if_the_law_does_harm() {
        let cells = [
            cell(50, Some(90), 80, SAME), // 30 of 40
            cell(80, Some(90), 90, SAME), // 10 of 10, too few to tell alone
            cell(50, Some(50), 40, SAME), // no static setting helps, and 10 are lost
            cell(100, None, 100, SAME),
        ];
        let summary = &summarise(&cells)[0];
        let restored = summary.restored.expect("some can be helped");
        assert!((restored.value - 0.6).abs() < 1e-9, "{restored:?}");
        assert!(restored.low <= restored.value && restored.value <= restored.high);
        assert_eq!((summary.cells, summary.at_risk, summary.worse), (4, 3, 1));
        assert!((summary.worst_restored.expect("one tells") - 0.75).abs() < 1e-9);
    }

    #[test]
    fn harm_is_the_worst_of_all_cells_and_told_apart_by_risk() {
        let slow = Harm { mean: 2.0, p99: 3.0, rate: 0.5 };
        let cells = [cell(100, None, 100, SAME), cell(50, Some(90), 90, slow)];
        let summary = &summarise(&cells)[0];
        assert_eq!((summary.others_safe, summary.others_at_risk), (Some(SAME), Some(slow)));
        assert_eq!(summarise(&[])[0].restored, None);
    }
}
