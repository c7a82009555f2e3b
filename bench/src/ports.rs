//! Several gateways before one array, for real: four of them in network namespaces of their own, a
//! controller, and NBD clients at each.
//!
//! The array is a `weir serve` with a simulated array in real time, so that what is shared out is the same on
//! every machine. Two results of Maestro must hold as they do in simulated time, and a third run breaks one
//! part after the other.

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

/// A run, by name: how many steps it has, and how it is made.
type Run = fn(&TestBed, &mut Progress) -> anyhow::Result<Vec<Row>>;

/// All of them.
pub(super) const RUNS: [(&str, u32, Run); 4] = [
    ("priority", priority::STEPS, priority::measure),
    ("ports", moving::STEPS, moving::measure),
    ("limit", limit::STEPS, limit::measure),
    ("failures", failures::STEPS, failures::measure),
];

fn row(case: &str, what: &str, value: f64, bar: Option<Bar>) -> Row {
    Row::alone(case.to_owned(), what.to_owned(), Figure { value, unit: Unit::Ratio }, bar)
}
