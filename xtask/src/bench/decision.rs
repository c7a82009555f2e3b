//! What a decision of the scheduler costs: runs the benchmark of `pure/sched` and holds its figures against the bars.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, ensure};
use serde::Deserialize;

use super::bed::{TestBed, cargo, output_of};
use super::cores::End;
use super::report::{Bar, Figure, Row, Unit};

/// What `--only` finds it by.
pub(super) const NAME: &str = "decision";

/// As `pure/sched/benches/decision.rs` has it.
const GROUP: &str = "submit_dispatch_complete";

/// What a decision may cost with [`MANY`] volumes and 10,000 requests queued, in nanoseconds.
const BUDGET: Bar = Bar::AtMost(300.0);
const MANY: u32 = 1_000;

/// From 10 to 10,000 volumes the logarithm grows fourfold, and so may the cost.
const GROWTH: Bar = Bar::AtMost(4.0);
const FEWEST: u32 = 10;
const MOST: u32 = 10_000;

/// Nanoseconds for each number of volumes.
type Costs = BTreeMap<u32, f64>;

/// Runs the benchmark.
///
/// # Errors
/// If it cannot be built or run, or has other cases than expected.
pub(super) fn measure(bed: &TestBed) -> anyhow::Result<Vec<Row>> {
    const BENCH: [&str; 5] = ["bench", "--package", "weir-sched", "--bench", "decision"];
    eprintln!("{NAME}: building and running the benchmark of pure/sched, about half a minute");
    output_of(cargo().args(BENCH).arg("--no-run"), "cargo bench --package weir-sched --no-run")?;
    let mut pinned = bed.cores().command(End::Server, cargo().get_program());
    pinned.args(BENCH).args(["--", "--warm-up-time", "0.5", "--measurement-time", "1.5"]);
    output_of(&mut pinned, "cargo bench --package weir-sched")?;
    rows(&read(&bed.target().join("criterion").join(GROUP))?)
}

/// The costs of each scheduler in `group`, by its name. Criterion writes `NAME/VOLUMES/new/estimates.json`.
fn read(group: &Path) -> anyhow::Result<BTreeMap<String, Costs>> {
    let mut schedulers = BTreeMap::new();
    for (name, path) in folders(group)? {
        let mut costs = Costs::new();
        for (volumes, path) in folders(&path)? {
            let (Ok(volumes), file) = (volumes.parse(), path.join("new/estimates.json")) else { continue };
            let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
            costs.insert(volumes, median_ns(&text).with_context(|| file.display().to_string())?);
        }
        if !costs.is_empty() {
            schedulers.insert(name, costs);
        }
    }
    ensure!(!schedulers.is_empty(), "{}: no results of criterion", group.display());
    Ok(schedulers)
}

fn folders(dir: &Path) -> anyhow::Result<Vec<(String, std::path::PathBuf)>> {
    let entries = fs::read_dir(dir).with_context(|| dir.display().to_string())?;
    let mut folders = Vec::new();
    for entry in entries {
        let path = entry.with_context(|| dir.display().to_string())?.path();
        if let Some(name) = path.file_name().and_then(|name| name.to_str()).filter(|_| path.is_dir()) {
            folders.push((name.to_owned(), path.clone()));
        }
    }
    Ok(folders)
}

fn median_ns(estimates: &str) -> anyhow::Result<f64> {
    #[derive(Deserialize)]
    struct Estimates {
        median: Estimate,
    }
    #[derive(Deserialize)]
    struct Estimate {
        point_estimate: f64,
    }
    Ok(serde_json::from_str::<Estimates>(estimates)?.median.point_estimate)
}

fn rows(schedulers: &BTreeMap<String, Costs>) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (name, costs) in schedulers {
        let cost = |volumes: u32| {
            costs.get(&volumes).with_context(|| format!("{name}: no case of {volumes} volumes"))
        };
        let growth = cost(MOST)? / cost(FEWEST)?;
        cost(MANY)?;
        let row = |what, weir, bar| Row {
            case: format!("{NAME}-{name}"),
            what,
            weir,
            other: None,
            compared: None,
            bar,
        };
        for (volumes, ns) in costs {
            let what = format!("{volumes} volumes, 10,000 requests queued");
            rows.push(row(
                what,
                Figure { value: *ns, unit: Unit::Nanos },
                (*volumes == MANY).then_some(BUDGET),
            ));
        }
        let what = format!("growth from {FEWEST} to {MOST} volumes");
        rows.push(row(what, Figure { value: growth, unit: Unit::Ratio }, Some(GROWTH)));
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_taken_from_the_estimates_of_criterion() {
        let text = r#"{ "mean": { "point_estimate": 9.0 }, "median": { "confidence_interval": {}, "point_estimate": 181.5 } }"#;
        assert!((median_ns(text).unwrap() - 181.5).abs() < 1e-9);
        assert!(median_ns("{}").is_err());
    }

    #[test]
    fn the_budget_is_for_a_thousand_volumes_and_growth_is_judged_over_all() {
        let costs = Costs::from([(10, 100.0), (100, 200.0), (1_000, 301.0), (10_000, 399.0)]);
        let rows = rows(&BTreeMap::from([("edf".to_owned(), costs)])).unwrap();
        let met: Vec<Option<bool>> = rows.iter().map(Row::met).collect();
        assert_eq!(met, [None, None, Some(false), None, Some(true)]);
    }

    #[test]
    fn a_benchmark_without_the_cases_that_have_bars_is_an_error() {
        let costs = Costs::from([(10, 100.0), (10_000, 399.0)]);
        assert!(rows(&BTreeMap::from([("edf".to_owned(), costs)])).is_err());
    }

    #[test]
    fn results_are_found_where_criterion_puts_them() {
        let dir = tempfile::tempdir().unwrap();
        for path in ["edf/10/new", "edf/report", "report"] {
            fs::create_dir_all(dir.path().join(path)).unwrap();
        }
        fs::write(dir.path().join("edf/10/new/estimates.json"), r#"{"median":{"point_estimate":5.0}}"#)
            .unwrap();
        assert_eq!(read(dir.path()).unwrap(), BTreeMap::from([("edf".to_owned(), Costs::from([(10, 5.0)]))]));
    }
}
