//! The speed of the simulator: compares the results of the benchmark of `pure/sim` with the bars.

use std::collections::BTreeMap;

use anyhow::{Context, ensure};

use super::criterion::{Benchmark, Measured, Results};
use super::report::{Bar, Figure, Row, Unit};

/// The benchmark. `pure/sim/benches/run.rs` names the group.
pub(super) const BENCHMARK: Benchmark =
    Benchmark { name: NAME, package: "weir-sim", bench: "run", group: "simulated_requests", rows };

const NAME: &str = "simulator";

/// The array with the bars: six disks in RAID-5 with control on. The other arrays show the cost of control
/// and of disks.
const JUDGED: &str = "raid_5_facade";

/// Host requests that one core simulates in a second, in a run of any length.
const RATE: Bar = Bar::AtLeast(1_000_000.0);

/// The cost of a request in the longest run, as a multiple of the cost in the shortest. A run is linear in
/// its requests; the rest is room for the processor's caches and for noise.
const GROWTH: Bar = Bar::AtMost(1.15);

fn rows(arrays: &Results) -> anyhow::Result<Vec<Row>> {
    ensure!(arrays.contains_key(JUDGED), "no case {JUDGED}");
    let mut rows = Vec::new();
    for (name, cases) in arrays {
        let rates = by_seconds(cases).with_context(|| name.clone())?;
        let row = |what, weir, bar| Row::alone(format!("{NAME}-{name}"), what, weir, bar);
        for (seconds, rate) in &rates {
            let what = format!("rate, a run of {seconds} simulated seconds");
            let bar = (name == JUDGED).then_some(RATE);
            rows.push(row(what, Figure { value: *rate, unit: Unit::Iops }, bar));
        }
        if name == JUDGED {
            let (what, growth) = growth(&rates).with_context(|| name.clone())?;
            rows.push(row(what, Figure { value: growth, unit: Unit::Ratio }, Some(GROWTH)));
        }
    }
    Ok(rows)
}

/// Requests simulated in a second, for each length of a run in simulated seconds.
fn by_seconds(cases: &BTreeMap<String, Measured>) -> anyhow::Result<BTreeMap<u32, f64>> {
    let rate = |(length, measured): (&String, &Measured)| {
        let seconds = length.strip_suffix('s').and_then(|seconds| seconds.parse().ok());
        let seconds = seconds.with_context(|| format!("\"{length}\" is no length such as \"30s\""))?;
        let requests = measured.elements.with_context(|| format!("{length}: no number of requests"))?;
        Ok((seconds, requests / measured.median_ns * 1e9))
    };
    cases.iter().map(rate).collect()
}

/// The cost of a request in the longest run, as a multiple of the cost in the shortest.
fn growth(rates: &BTreeMap<u32, f64>) -> anyhow::Result<(String, f64)> {
    let ends = rates.first_key_value().zip(rates.last_key_value());
    let apart = ends.filter(|((short, _), (long, _))| short < long);
    let ((short, of_short), (long, of_long)) = apart.context("no two lengths of a run")?;
    Ok((format!("cost of a request, {long} s against {short} s"), of_short / of_long))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The runs of an array, each with its length, its number of requests, and the nanoseconds for each.
    fn array(name: &str, runs: &[(&str, f64, f64)]) -> (String, BTreeMap<String, Measured>) {
        let case = |(length, requests, ns): &(&str, f64, f64)| {
            let measured = Measured { median_ns: requests * ns, elements: Some(*requests) };
            ((*length).to_owned(), measured)
        };
        (name.to_owned(), runs.iter().map(case).collect())
    }

    fn verdicts(arrays: &Results) -> Vec<Option<bool>> {
        rows(arrays).unwrap().iter().map(Row::met).collect()
    }

    #[test]
    fn a_million_requests_a_second_are_the_bar_for_a_run_of_any_length() {
        let runs = [("30s", 1e4, 999.0), ("300s", 1e5, 1_001.0), ("1500s", 5e5, 999.0)];
        let met = verdicts(&Results::from([array(JUDGED, &runs)]));
        assert_eq!(met, [Some(true), Some(false), Some(true), Some(true)]);
    }

    #[test]
    fn the_longest_run_is_held_against_the_shortest_whatever_their_names_sort_like() {
        let linear = |last| {
            let runs = [("30s", 1e4, 500.0), ("300s", 1e5, 900.0), ("1500s", 5e5, last)];
            rows(&Results::from([array(JUDGED, &runs)])).unwrap().pop().unwrap()
        };
        assert_eq!(linear(570.0).what, "cost of a request, 1500 s against 30 s");
        assert_eq!(linear(570.0).met(), Some(true));
        assert_eq!(linear(580.0).met(), Some(false));
    }

    #[test]
    fn other_arrays_have_figures_without_bars() {
        let judged = array(JUDGED, &[("30s", 1e4, 500.0), ("300s", 1e5, 500.0)]);
        let met = verdicts(&Results::from([judged, array("station_facade", &[("300s", 1e5, 2_000.0)])]));
        assert_eq!(met, [Some(true), Some(true), Some(true), None]);
    }

    #[test]
    fn a_benchmark_without_what_the_bars_need_is_an_error() {
        let error = |runs: &[(&str, f64, f64)], name| rows(&Results::from([array(name, runs)])).is_err();
        let runs = [("30s", 1e4, 500.0), ("300s", 1e5, 500.0)];
        assert!(!error(&runs, JUDGED));
        assert!(error(&runs, "station_facade"));
        assert!(error(&runs[..1], JUDGED));
        assert!(error(&[("30s", 1e4, 500.0), ("long", 1e5, 500.0)], JUDGED));
    }

    #[test]
    fn a_case_without_its_number_of_requests_is_an_error() {
        let (name, mut cases) = array(JUDGED, &[("30s", 1e4, 500.0), ("300s", 1e5, 500.0)]);
        cases.insert("60s".to_owned(), Measured { median_ns: 1.0, elements: None });
        assert!(rows(&Results::from([(name, cases)])).is_err());
    }
}
