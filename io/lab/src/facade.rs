//! The claims of Façade (Lumb, Merchant, Alvarez 2003, §4): the figures that each needs, one file for each.
//!
//! The experiments' files say what runs, how long and with which loads. `study.rs` defines the words.

mod calibration;
mod failure;
mod isolation_1;
mod isolation_2;
mod max_slo;
mod multiplexing;
mod overhead;
mod provisioning;
mod slo;

use crate::study::Claim;

/// The claims, by their ids.
pub(crate) const CLAIMS: [(&str, Claim); 9] = [
    ("facade-calibration", calibration::study),
    ("facade-slo", slo::study),
    ("facade-isolation-1", isolation_1::study),
    ("facade-isolation-2", isolation_2::study),
    ("facade-max-slo", max_slo::study),
    ("facade-multiplexing", multiplexing::study),
    ("facade-provisioning", provisioning::study),
    ("facade-overhead", overhead::study),
    ("facade-failure", failure::study),
];

#[cfg(test)]
mod tests;
