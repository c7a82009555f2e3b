//! The cost of a control interval of Maestro: compares the results of the benchmark of `pure/control` with
//! the bar.

use std::collections::BTreeMap;

use anyhow::Context;

use super::criterion::{Benchmark, Measured, Results};
use super::report::{Bar, Figure, Row, Unit};

/// The benchmark. `pure/control/benches/interval.rs` names the group.
pub(super) const BENCHMARK: Benchmark =
    Benchmark { name: NAME, package: "weir-control", bench: "interval", group: "control_interval", rows };

const NAME: &str = "interval";

/// The case with the bar: the whole law. The other case is the linear program, which is a part of it.
const JUDGED: &str = "maestro";

/// The most nanoseconds that an interval may take with [`MOST`] applications and 16 ports.
const BUDGET: Bar = Bar::AtMost(2e6);

/// The growth between these numbers of applications is shown, and has no bar.
const FEWEST: u32 = 10;
const MOST: u32 = 1_000;

fn rows(parts: &Results) -> anyhow::Result<Vec<Row>> {
    parts.get(JUDGED).with_context(|| format!("no case {JUDGED}"))?;
    let mut rows = Vec::new();
    for (name, cases) in parts {
        let costs = by_applications(cases).with_context(|| name.clone())?;
        let cost = |applications: u32| {
            costs
                .get(&applications)
                .with_context(|| format!("{name}: no case of {applications} applications"))
        };
        let growth = cost(MOST)? / cost(FEWEST)?;
        let row = |what, weir, bar| Row::alone(format!("{NAME}-{name}"), what, weir, bar);
        for (applications, ns) in &costs {
            let what = format!("{applications} applications, 16 ports");
            let bar = (name == JUDGED && *applications == MOST).then_some(BUDGET);
            rows.push(row(what, Figure { value: *ns, unit: Unit::Nanos }, bar));
        }
        let what = format!("growth from {FEWEST} to {MOST} applications");
        rows.push(row(what, Figure { value: growth, unit: Unit::Ratio }, None));
    }
    Ok(rows)
}

/// Nanoseconds for each number of applications.
fn by_applications(cases: &BTreeMap<String, Measured>) -> anyhow::Result<BTreeMap<u32, f64>> {
    let cost = |(applications, measured): (&String, &Measured)| {
        let number = applications.parse();
        let number = number.with_context(|| format!("\"{applications}\" is no number of applications"))?;
        Ok((number, measured.median_ns))
    };
    cases.iter().map(cost).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(name: &str, costs: &[(&str, f64)]) -> (String, BTreeMap<String, Measured>) {
        let case = |(applications, median_ns): &(&str, f64)| {
            ((*applications).to_owned(), Measured { median_ns: *median_ns, elements: None })
        };
        (name.to_owned(), costs.iter().map(case).collect())
    }

    #[test]
    fn the_budget_is_for_the_whole_law_over_a_thousand_applications() {
        let costs = [("10", 1e4), ("100", 1e5), ("1000", 2.1e6)];
        let results = Results::from([part("maestro", &costs), part("program", &costs)]);
        let met: Vec<Option<bool>> = rows(&results).unwrap().iter().map(Row::met).collect();
        assert_eq!(met, [None, None, Some(false), None, None, None, None, None]);
    }

    #[test]
    fn a_benchmark_without_the_case_that_has_the_bar_is_an_error() {
        assert!(rows(&Results::from([part("program", &[("10", 1.0), ("1000", 1.0)])])).is_err());
        assert!(rows(&Results::from([part("maestro", &[("10", 1.0), ("100", 1.0)])])).is_err());
    }
}
