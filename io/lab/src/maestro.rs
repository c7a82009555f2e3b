//! The claims of Maestro (Merchant, Uysal, Padala, Zhu, Singhal, Shin 2011, §5) and of the paper before it
//! (Padala, Merchant and others, "Performance differentiation for multi-port arrays", §3): which figures each
//! needs.
//!
//! What runs, how long and with which loads is in the experiments' files; what a word means in
//! `study/application.rs`. When something changes in a run is said in the file and here: it is the paper's.

mod bursts;
mod differentiation;
mod metrics;
mod ports;
mod priority;
mod scale;
#[cfg(test)]
mod tests;
mod traces;

use crate::claims::Claim;
use crate::study::Records;
use crate::study::application::{Application, Interval};

/// The claims, by their ids.
pub(crate) const CLAIMS: [(&str, Claim); 12] = [
    ("maestro-differentiation", differentiation::study),
    ("maestro-metrics", metrics::study),
    ("maestro-priority", priority::study),
    ("maestro-scale", scale::study),
    ("maestro-bursts", bursts::study),
    ("maestro-ports", ports::study),
    ("maestro-oltp", traces::oltp),
    ("maestro-erp", traces::erp),
    ("maestro-two-traces", traces::two),
    ("multiport-changing", differentiation::study),
    ("multiport-metrics", metrics::study),
    ("multiport-priority", priority::study),
];

/// How long the law may take to find a new balance, in seconds: 30 control intervals, of which the step limit
/// takes 20 to move everything from one application to another.
const SETTLING: f64 = 60.0;

/// A volume in a run, seen through all of its ports.
fn application<'r>(records: &'r Records, run: &str, volume: &str) -> Option<Application<'r>> {
    Application::of(records.runs.get(run)?, volume)
}

/// The intervals of a volume in a run between two instants, in seconds; none if there is no such volume.
fn between(records: &Records, run: &str, volume: &str, from: f64, to: f64) -> Vec<Interval> {
    application(records, run, volume).map_or_else(Vec::new, |application| application.between(from, to))
}
