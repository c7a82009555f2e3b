//! The claims of packet delay (Bjørgeengen, Haugerud 2010, §3): the figures that each needs, one file for
//! each claim.
//!
//! The experiments' files say what runs, how long and with which loads. `study/target.rs` defines the words.
//! The names of the runs and of the initiators stand both in the file and here.

mod auto;
mod curve;
mod fairness;
mod interference;
mod overhead;
mod pid;
mod relief;
mod selective;
#[cfg(test)]
mod tests;

pub(crate) use curve::rates;

use crate::study::Claim;

/// The claims, by their ids.
pub(crate) const CLAIMS: [(&str, Claim); 8] = [
    ("delay-fairness", fairness::study),
    ("delay-selective", selective::study),
    ("delay-curve", curve::study),
    ("delay-interference", interference::study),
    ("delay-relief", relief::study),
    ("delay-pid", pid::study),
    ("delay-auto", auto::study),
    ("delay-overhead", overhead::study),
];
