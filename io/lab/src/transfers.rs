//! The claims of transfer scheduling (Nikolow, Słota, Kitowski 2010, §IV): the figures that each needs, one
//! file for each claim.
//!
//! The experiments' files say which nodes there are, and which transfers are asked for. `study/bulk.rs`
//! defines the words. The names of the runs stand both in the file and here.

mod load;
mod r1;
mod r2;
mod r3;
mod read;
mod rr;
mod static_qos;
#[cfg(test)]
mod tests;

use crate::bulk::BulkRecord;
use crate::study::{Claim, Records};

/// The claims, by their ids.
pub(crate) const CLAIMS: [(&str, Claim); 7] = [
    ("transfer-rr", rr::study),
    ("transfer-static", static_qos::study),
    ("transfer-r1", r1::study),
    ("transfer-r2", r2::study),
    ("transfer-r3", r3::study),
    ("transfer-load", load::study),
    ("transfer-read", read::study),
];

fn total(records: &Records, run: &str) -> Option<f64> {
    records.bulk.get(run).and_then(BulkRecord::total)
}

fn below(records: &Records, run: &str) -> Option<f64> {
    records.bulk.get(run).and_then(BulkRecord::below)
}

fn slowest(records: &Records, run: &str) -> Option<f64> {
    records.bulk.get(run).and_then(BulkRecord::slowest)
}

fn on(records: &Records, run: &str, node: &str) -> Option<f64> {
    records.bulk.get(run).and_then(|record| record.on(node))
}

/// The total of a run as a multiple of that of another.
fn times(records: &Records, run: &str, than: &str) -> Option<f64> {
    Some(total(records, run)? / total(records, than)?)
}

/// How many percentage points more of a run's transfers are below than of another's.
fn more_below(records: &Records, run: &str, than: &str) -> Option<f64> {
    Some(below(records, run)? - below(records, than)?)
}
