//! The cost of a decision of the scheduler: compares the results of the benchmark of `pure/sched` with the
//! bars.

use std::collections::BTreeMap;

use anyhow::Context;

use super::criterion::{Benchmark, Measured, Results};
use super::report::{Bar, Figure, Row, Unit};

/// The benchmark. `pure/sched/benches/decision.rs` names the group.
pub(super) const BENCHMARK: Benchmark = Benchmark {
    name: NAME,
    package: "weir-sched",
    bench: "decision",
    group: "submit_dispatch_complete",
    rows,
};

const NAME: &str = "decision";

/// The most nanoseconds that a decision may take with [`MANY`] volumes and 10,000 requests queued.
const BUDGET: Bar = Bar::AtMost(300.0);
const MANY: u32 = 1_000;

/// From 10 to 10,000 volumes the logarithm grows fourfold, and so may the cost.
const GROWTH: Bar = Bar::AtMost(4.0);
const FEWEST: u32 = 10;
const MOST: u32 = 10_000;

fn rows(schedulers: &Results) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (name, cases) in schedulers {
        let costs = by_volumes(cases).with_context(|| name.clone())?;
        let cost = |volumes: u32| {
            costs.get(&volumes).with_context(|| format!("{name}: no case of {volumes} volumes"))
        };
        let growth = cost(MOST)? / cost(FEWEST)?;
        cost(MANY)?;
        let row = |what, weir, bar| Row::alone(format!("{NAME}-{name}"), what, weir, bar);
        for (volumes, ns) in &costs {
            let what = format!("{volumes} volumes, 10,000 requests queued");
            let bar = (*volumes == MANY).then_some(BUDGET);
            rows.push(row(what, Figure { value: *ns, unit: Unit::Nanos }, bar));
        }
        let what = format!("growth from {FEWEST} to {MOST} volumes");
        rows.push(row(what, Figure { value: growth, unit: Unit::Ratio }, Some(GROWTH)));
    }
    Ok(rows)
}

/// Nanoseconds for each number of volumes.
fn by_volumes(cases: &BTreeMap<String, Measured>) -> anyhow::Result<BTreeMap<u32, f64>> {
    let cost = |(volumes, measured): (&String, &Measured)| {
        let volumes = volumes.parse().with_context(|| format!("\"{volumes}\" is no number of volumes"))?;
        Ok((volumes, measured.median_ns))
    };
    cases.iter().map(cost).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edf(costs: &[(&str, f64)]) -> Results {
        let case = |(volumes, median_ns): &(&str, f64)| {
            ((*volumes).to_owned(), Measured { median_ns: *median_ns, elements: None })
        };
        Results::from([("edf".to_owned(), costs.iter().map(case).collect())])
    }

    #[test]
    fn the_budget_is_for_a_thousand_volumes_and_growth_is_judged_over_all() {
        let results = edf(&[("10", 100.0), ("100", 200.0), ("1000", 301.0), ("10000", 399.0)]);
        let met: Vec<Option<bool>> = rows(&results).unwrap().iter().map(Row::met).collect();
        assert_eq!(met, [None, None, Some(false), None, Some(true)]);
    }

    #[test]
    fn a_benchmark_without_the_cases_that_have_bars_is_an_error() {
        assert!(rows(&edf(&[("10", 100.0), ("10000", 399.0)])).is_err());
    }

    #[test]
    fn a_case_that_is_no_number_of_volumes_is_an_error() {
        let results = edf(&[("10", 100.0), ("1000", 200.0), ("10000", 399.0), ("many", 1.0)]);
        assert!(rows(&results).is_err());
    }
}
