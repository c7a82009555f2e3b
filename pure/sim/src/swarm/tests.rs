//! Random scenarios can be run and repeated, and have every kind of fault.

use super::*;
use crate::scenario::FaultKind;
use crate::world::Fingerprint;

const SEEDS: std::ops::Range<u64> = 0..100;

#[test]
fn every_seed_gives_a_scenario_that_can_be_run() {
    for seed in SEEDS {
        assert_eq!(scenario(seed).check(), Ok(()), "seed {seed}");
    }
}

#[test]
fn a_seed_gives_the_same_run_every_time() {
    let fingerprint = |seed| {
        let mut fingerprint = Fingerprint::new();
        let outcome = world(seed).run(&mut fingerprint).unwrap_or_else(|violation| panic!("{violation}"));
        (outcome, fingerprint)
    };
    for seed in 0..5 {
        assert_eq!(scenario(seed), scenario(seed));
        assert_eq!(fingerprint(seed), fingerprint(seed));
        assert_ne!(fingerprint(seed), fingerprint(seed + 1));
    }
}

#[test]
fn all_that_can_go_wrong_does() {
    let mut seen = [false; 4];
    for fault in SEEDS.flat_map(|seed| scenario(seed).faults) {
        seen[match fault.what {
            FaultKind::DiskFails { .. } => 0,
            FaultKind::Rebuild { .. } => 1,
            FaultKind::Stall(_) => 2,
            FaultKind::VolumeRemoved { .. } => 3,
        }] = true;
    }
    assert_eq!(seen, [true; 4]);
}
