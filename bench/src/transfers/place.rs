//! The cost of a placement decision: compares the results of the benchmark of `pure/transfer` with the bar.

use anyhow::ensure;

use crate::criterion::{Benchmark, Results};
use crate::report::{Bar, Figure, Row, Unit};

/// The benchmark. `pure/transfer/benches/place.rs` names the group.
pub(crate) const BENCHMARK: Benchmark =
    Benchmark { name: NAME, package: "weir-transfer", bench: "place", group: "transfer-place", rows };

const NAME: &str = "transfers-place";

/// The most nanoseconds that a decision may take with 10,000 transfers that wait and 100 nodes.
const BUDGET: Bar = Bar::AtMost(100_000.0);

/// A row for each policy, and for each answer to the question which nodes may serve the transfers.
fn rows(policies: &Results) -> anyhow::Result<Vec<Row>> {
    ensure!(policies.contains_key("deadline"), "no case of the policy deadline, the default");
    let mut rows = Vec::new();
    for (policy, cases) in policies {
        for (among, measured) in cases {
            let what = format!("a decision, {among}; 10,000 wait for 100 nodes");
            let figure = Figure { value: measured.median_ns, unit: Unit::Nanos };
            rows.push(Row::alone(format!("{NAME}-{policy}"), what, figure, Some(BUDGET)));
        }
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::criterion::Measured;

    fn policy(name: &str, costs: &[(&str, f64)]) -> (String, BTreeMap<String, Measured>) {
        let case = |(among, median_ns): &(&str, f64)| {
            ((*among).to_owned(), Measured { median_ns: *median_ns, elements: None })
        };
        (name.to_owned(), costs.iter().map(case).collect())
    }

    #[test]
    fn the_bar_is_for_each_policy_and_each_set_of_nodes() {
        let results = Results::from([
            policy("deadline", &[("3-replicas", 99_999.0), ("any-node", 100_001.0)]),
            policy("sm-r1", &[("any-node", 1.0)]),
        ]);
        let met: Vec<Option<bool>> = rows(&results).unwrap().iter().map(Row::met).collect();
        assert_eq!(met, [Some(true), Some(false), Some(true)]);
    }

    #[test]
    fn a_benchmark_without_the_default_policy_is_an_error() {
        assert!(rows(&Results::from([policy("sm-r1", &[("any-node", 1.0)])])).is_err());
    }
}
