//! §3.1, figure 5: four equal readers share a disk equally while nobody is delayed.
//!
//! The control has one reader with twice as many requests outstanding. It must get more, or the figure would
//! say nothing.

use crate::delay::Measured;
use crate::study::{Figure, Records, greatest, least};

/// What is left out at the beginning, in microseconds: the readers do not begin at the same instant.
const BEGIN_US: u64 = 2_000_000;

/// The figures of the claim.
pub(super) fn study(records: &Records) -> Vec<Figure> {
    let equal = records.measured.get("equal");
    let total = equal.map(|measured| rates(measured).iter().sum());
    vec![
        Figure::new("spread", equal.and_then(spread)),
        Figure::new("spread-unequal", records.measured.get("unequal").and_then(spread)),
        Figure::new("total", total),
    ]
}

/// By how much the reader that gets most is above the one that gets least, in percent.
fn spread(measured: &Measured) -> Option<f64> {
    let rates = rates(measured);
    Some(100.0 * (greatest(rates.iter().copied())? / least(rates)? - 1.0))
}

fn rates(measured: &Measured) -> Vec<f64> {
    let end = measured.whole().end;
    let time = BEGIN_US..end.max(BEGIN_US + 1);
    (0..measured.initiators.len()).map(|initiator| measured.rate(initiator, time.clone())).collect()
}
