//! The generator against servers: real ones, for what every server must do, and scripted ones, for what no
//! server should do.

mod real;
mod recorded;
mod scripted;

use std::future::{Future, pending};

use weir_load::{Interval, LoadError, LoadSpec, Report, run};

/// Runs a load on a runtime of its own. Returns the report and the rows that were shown.
fn load(spec: &LoadSpec) -> Result<(Report, Vec<Interval>), LoadError> {
    load_until(spec, pending())
}

fn load_until(
    spec: &LoadSpec,
    cancel: impl Future<Output = ()>,
) -> Result<(Report, Vec<Interval>), LoadError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut shown = Vec::new();
    let report = runtime.block_on(run(spec, cancel, |row| shown.push(row.clone())))?;
    assert_eq!(shown, report.intervals, "every row is shown once");
    assert_eq!(shown.iter().map(|row| row.completed).sum::<u64>(), report.completed);
    assert_eq!(shown.iter().map(|row| row.offered).sum::<u64>(), report.offered);
    assert_eq!(shown.iter().map(|row| row.errors).sum::<u64>(), report.errors);
    Ok((report, shown))
}
