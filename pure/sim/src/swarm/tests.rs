//! Random scenarios can be run and repeated, and have every kind of fault.

use weir_engine::Event;
use weir_model::Instant;

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
fn replies_are_held_in_some_of_the_scenarios() {
    let controls = |seed| matches!(scenario(seed).engine.control, Control::Pid(_));
    let held = SEEDS.filter(|seed| controls(*seed)).filter(|seed| {
        let mut longest = LongestDelay(Span::ZERO);
        world(*seed).run(&mut longest).unwrap_or_else(|violation| panic!("{violation}"));
        !longest.0.is_zero()
    });
    assert!(held.count() > 1);
}

/// The longest delay of a run.
struct LongestDelay(Span);

impl Observer for LongestDelay {
    fn on_event(&mut self, _: Instant, event: &Event) {
        if let Event::Throttled { delay, .. } = event {
            self.0 = self.0.max(*delay);
        }
    }
}

#[test]
fn background_volumes_have_a_bound_or_a_share_and_promised_ones_go_in_order_in_some_of_the_scenarios() {
    let mut seen = Allowed::default();
    for seed in SEEDS.filter(|seed| scenario(*seed).engine.control == Control::Promise) {
        world(seed).run(&mut seen).unwrap_or_else(|violation| panic!("{violation}"));
    }
    assert!(seen.bounds > 1 && seen.shares > 1 && seen.in_order > 1, "{seen:?}");
}

/// How often background volumes had a bound, how often only a share, and how often promised ones had a bound.
#[derive(Default, Debug)]
struct Allowed {
    bounds: u32,
    shares: u32,
    in_order: u32,
}

impl Observer for Allowed {
    fn on_event(&mut self, _: Instant, event: &Event) {
        if let Event::Allowed(knobs) = event {
            self.bounds += u32::from((1..u32::MAX).contains(&knobs.most));
            self.shares += u32::from(knobs.most == 0);
        }
        self.in_order += u32::from(matches!(event, Event::InOrder(Some(_))));
    }
}

#[test]
fn behind_several_gateways_background_volumes_have_a_bound_in_some_of_the_scenarios() {
    let mut seen = Allowed::default();
    for seed in (0..300).filter(|seed| scenario(*seed).engine.control == Control::SharedPromise) {
        world(seed).run(&mut seen).unwrap_or_else(|violation| panic!("{violation}"));
    }
    assert!(seen.bounds > 1 && seen.shares > 1, "{seen:?}");
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
