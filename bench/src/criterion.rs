//! Benchmarks of functions: builds a criterion benchmark, runs it on a core of its own, and reads its
//! results.
//!
//! The results come from criterion's files, because its output is for people and changes with its version.
//! They are in a directory of this run: `target/criterion` also has the cases that a benchmark had last
//! month.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::bed::{TestBed, cargo, output_of};
use super::cores::End;
use super::report::Row;

/// A benchmark of a package, and the figures made of it.
#[derive(Debug)]
pub(super) struct Benchmark {
    /// The name for `--only`.
    pub(super) name: &'static str,
    pub(super) package: &'static str,
    /// The `[[bench]]` of the package.
    pub(super) bench: &'static str,
    /// Its group that is read.
    pub(super) group: &'static str,
    /// Compares the results with the bars. It is an error if the benchmark has other cases than expected.
    pub(super) rows: fn(&Results) -> anyhow::Result<Vec<Row>>,
}

/// The results of a group: for each function, and for each of its parameters.
pub(super) type Results = BTreeMap<String, BTreeMap<String, Measured>>;

/// One case.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Measured {
    /// The time of one iteration in nanoseconds; the median.
    pub(super) median_ns: f64,
    /// How many elements an iteration handles, if the benchmark says so.
    pub(super) elements: Option<f64>,
}

impl Benchmark {
    /// Builds and runs it.
    ///
    /// # Errors
    /// If it cannot be built or run, or has other cases than expected.
    pub(super) fn measure(&self, bed: &TestBed) -> anyhow::Result<Vec<Row>> {
        let Self { name, package, bench, group, rows } = self;
        let arguments = ["bench", "--package", package, "--bench", bench];
        let what = format!("cargo {}", arguments.join(" "));
        eprintln!("{name}: building and running the benchmark of {package}, about half a minute");
        // The build is a step of its own, because the compiler may have all cores.
        output_of(cargo().args(arguments).arg("--no-run"), &format!("{what} --no-run"))?;
        let found = bed.scratch("criterion");
        let mut pinned = bed.cores().command(End::Server, cargo().get_program());
        pinned.env("CRITERION_HOME", &found).args(arguments);
        pinned.args(["--", "--warm-up-time", "0.5", "--measurement-time", "1.5", "--noplot"]);
        output_of(&mut pinned, &what)?;
        rows(&read(&found.join(group))?).with_context(|| what)
    }
}

/// The results of `group`, a directory of criterion, which writes `FUNCTION/PARAMETER/new/*.json`.
fn read(group: &Path) -> anyhow::Result<Results> {
    let mut results = Results::new();
    for (function, path) in folders(group)? {
        let mut cases = BTreeMap::new();
        for (parameter, path) in folders(&path)? {
            let new = path.join("new");
            if new.is_dir() {
                cases.insert(parameter, measured(&new)?);
            }
        }
        if !cases.is_empty() {
            results.insert(function, cases);
        }
    }
    ensure!(!results.is_empty(), "{}: no results of criterion", group.display());
    Ok(results)
}

fn measured(dir: &Path) -> anyhow::Result<Measured> {
    #[derive(Deserialize)]
    struct Estimates {
        median: Estimate,
    }
    #[derive(Deserialize)]
    struct Estimate {
        point_estimate: f64,
    }
    #[derive(Deserialize)]
    struct Case {
        throughput: Option<Throughput>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Throughput {
        elements: Option<f64>,
    }
    let estimates: Estimates = json(&dir.join("estimates.json"))?;
    let case: Case = json(&dir.join("benchmark.json"))?;
    Ok(Measured {
        median_ns: estimates.median.point_estimate,
        elements: case.throughput.and_then(|throughput| throughput.elements),
    })
}

fn json<T: DeserializeOwned>(file: &Path) -> anyhow::Result<T> {
    let text = fs::read_to_string(file).with_context(|| file.display().to_string())?;
    serde_json::from_str(&text).with_context(|| file.display().to_string())
}

fn folders(dir: &Path) -> anyhow::Result<Vec<(String, PathBuf)>> {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A case as criterion leaves it.
    fn write(dir: &Path, estimates: &str, benchmark: &str) {
        fs::create_dir_all(dir).unwrap();
        fs::write(dir.join("estimates.json"), estimates).unwrap();
        fs::write(dir.join("benchmark.json"), benchmark).unwrap();
    }

    #[test]
    fn the_median_and_the_elements_are_taken_from_the_files_of_criterion() {
        let dir = tempfile::tempdir().unwrap();
        let estimates = r#"{ "mean": { "point_estimate": 9.0 }, "median": { "confidence_interval": {}, "point_estimate": 181.5 } }"#;
        let of = |benchmark: &str| {
            write(dir.path(), estimates, benchmark);
            measured(dir.path()).unwrap()
        };
        let case = |elements| Measured { median_ns: 181.5, elements };
        assert_eq!(of(r#"{"group_id":"g","throughput":{"Elements":441828}}"#), case(Some(441_828.0)));
        assert_eq!(of(r#"{"throughput":{"Bytes":4096}}"#), case(None));
        assert_eq!(of(r#"{"throughput":null}"#), case(None));
    }

    #[test]
    fn estimates_without_a_median_are_an_error_that_names_the_file() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), "{}", "{}");
        let error = measured(dir.path()).unwrap_err();
        assert!(error.to_string().ends_with("estimates.json"), "{error}");
    }

    #[test]
    fn results_are_found_where_criterion_puts_them() {
        let dir = tempfile::tempdir().unwrap();
        for path in ["edf/report", "report"] {
            fs::create_dir_all(dir.path().join(path)).unwrap();
        }
        write(
            &dir.path().join("edf/10/new"),
            r#"{"median":{"point_estimate":5.0}}"#,
            r#"{"throughput":null}"#,
        );
        let case = Measured { median_ns: 5.0, elements: None };
        let expected = Results::from([("edf".to_owned(), BTreeMap::from([("10".to_owned(), case)]))]);
        assert_eq!(read(dir.path()).unwrap(), expected);
    }

    #[test]
    fn a_group_without_results_is_an_error() {
        assert!(read(tempfile::tempdir().unwrap().path()).is_err());
    }
}
