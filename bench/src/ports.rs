//! Several gateways before one array, for real: four gateways in network namespaces of their own, a
//! controller, and NBD clients at each gateway.
//!
//! The array is a `weir serve` with a simulated array in real time, so that every machine shares out the same
//! array. Two results of Maestro must hold as they do in simulated time. A third run breaks one part after
//! the other.

mod failures;
mod limit;
mod loads;
mod moving;
mod network;
mod observe;
mod priority;
mod site;

use super::bed::TestBed;
use super::progress::Progress;
use super::report::{Bar, Figure, Row, Unit};

/// Requests at the array at a time: 4 for each of its 28 disks.
const TOTAL: u32 = 112;

/// The function that makes a run.
type Run = fn(&TestBed, &mut Progress) -> anyhow::Result<Vec<Row>>;

/// All runs: name, number of steps, function.
pub(super) const RUNS: [(&str, u32, Run); 4] = [
    ("priority", priority::STEPS, priority::measure),
    ("ports", moving::STEPS, moving::measure),
    ("limit", limit::STEPS, limit::measure),
    ("failures", failures::STEPS, failures::measure),
];

fn row(case: &str, what: &str, value: f64, bar: Option<Bar>) -> Row {
    Row::alone(case.to_owned(), what.to_owned(), Figure { value, unit: Unit::Ratio }, bar)
}
