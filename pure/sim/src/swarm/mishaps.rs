//! The faults of a random scenario.

use rand::RngExt;
use weir_model::Span;

use super::loads::within;
use super::{arrays, span};
use crate::array::options::ArrayOptions;
use crate::random::Prng;
use crate::scenario::{Fault, FaultKind};

/// Up to five faults at any time. Some of them have no effect, such as the rebuild of a disk that has not
/// failed.
pub(super) fn draw(random: &mut Prng, duration: Span, array: &ArrayOptions, volumes: usize) -> Vec<Fault> {
    let number = random.random_range(0..=5);
    (0..number)
        .map(|_| {
            let what = match random.random_range(0..4) {
                0 => {
                    let (unit, disk) = arrays::any_disk(random, array);
                    FaultKind::DiskFails { unit, disk }
                }
                1 => FaultKind::Rebuild { unit: arrays::any_disk(random, array).0 },
                2 => FaultKind::Stall(span(random, 1, 300)),
                _ => FaultKind::VolumeRemoved { volume: random.random_range(0..volumes) },
            };
            Fault { at: within(random, duration), what }
        })
        .collect()
}
