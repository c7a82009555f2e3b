//! The claims of Maestro (Merchant, Uysal, Padala, Zhu, Singhal, Shin 2011, §5) and of the paper before it
//! (Padala, Merchant and others, "Performance differentiation for multi-port arrays", §3): the figures that
//! each needs.
//!
//! The experiments' files say what runs, how long and with which loads. `study/application.rs` defines the
//! words. The instants at which something changes in a run stand both in the file and here; they are the
//! paper's.

mod bursts;
mod differentiation;
mod metrics;
mod ports;
mod priority;
mod scale;
#[cfg(test)]
mod tests;
mod traces;

use crate::study::application::{Application, Interval};
use crate::study::{Claim, Records};

/// The claims, by their ids.
pub(crate) const CLAIMS: [(&str, Claim); 13] = [
    ("maestro-calibration", traces::calibration),
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

/// How long the law may take to find a new balance, in seconds: 30 control intervals. The step limit needs 20
/// of them to move everything from one application to another.
const SETTLING: f64 = 60.0;

/// A volume in a run, with all of its ports as one.
fn application<'r>(records: &'r Records, run: &str, volume: &str) -> Option<Application<'r>> {
    Application::of(records.runs.get(run)?, volume)
}

/// The intervals of a volume in a run between two instants, in seconds; none if there is no such volume.
fn between(records: &Records, run: &str, volume: &str, from: f64, to: f64) -> Vec<Interval> {
    application(records, run, volume).map_or_else(Vec::new, |application| application.between(from, to))
}
