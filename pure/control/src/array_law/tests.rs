//! What the allocator adds to the law: reserved requests, the least total, and the two kinds of total.

use weir_model::{Iops, Objective, Priority, Span, Target};

use super::*;
use crate::maestro::{Limits, PortObservation};
use crate::total_probe::TotalProbe;

/// An application that is at its bound at each port, and gets half of its target.
fn application(id: u64, bounds: &[u32]) -> ApplicationObservation {
    let port = |bound: &u32| PortObservation {
        over: Span::from_secs(1),
        answered: 500,
        answered_bytes: 500 << 12,
        at_device: f64::from(*bound),
        outstanding: 2.0 * f64::from(*bound),
        bound: NonZeroU32::new(*bound),
        ..PortObservation::default()
    };
    let target = Iops::new(2.0 * 500.0 * bounds.iter().fold(0.0, |ports, _| ports + 1.0)).map(Target::Rate);
    ApplicationObservation {
        id,
        objective: Objective { target, priority: Priority::default() },
        limits: Limits::default(),
        ports: bounds.iter().map(port).collect(),
    }
}

fn fixed(total: u32) -> TotalConcurrency {
    TotalConcurrency::Fixed(NonZeroU32::new(total).unwrap())
}

fn granted(setting: &ArraySetting) -> Vec<u32> {
    let ports = setting.applications.iter().flat_map(|application| &application.ports);
    ports.map(|grant| grant.concurrency.get()).collect()
}

#[test]
fn what_is_reserved_is_not_shared_out() {
    for (reserved, expected) in [(0, 40), (10, 30), (38, 4), (40, 4), (u32::MAX, 4)] {
        let mut law = ArrayLaw::new(fixed(40));
        let seen = vec![application(1, &[10, 10]), application(2, &[10, 10])];
        let granted = granted(&law.step(Instant::ORIGIN, reserved, seen));
        assert_eq!(granted.iter().sum::<u32>(), expected, "{reserved} reserved: {granted:?}");
    }
}

#[test]
fn an_interval_in_which_nobody_was_seen_is_not_one_in_which_all_are_gone() {
    let (mut law, mut other) = (ArrayLaw::new(fixed(40)), ArrayLaw::new(fixed(40)));
    for seconds in 0..5 {
        let now = Instant::ORIGIN + Span::from_secs(seconds);
        let seen = vec![application(1, &[12, 8]), application(2, &[10, 10])];
        assert!(law.step(now, 0, Vec::new()).applications.is_empty());
        assert_eq!(law.step(now, 0, seen.clone()), other.step(now, 0, seen));
    }
}

#[test]
fn a_total_that_is_fixed_for_a_while_leaves_what_probing_has_found() {
    let mut law = ArrayLaw::new(TotalConcurrency::Auto);
    let begins_with = law.total();
    for seconds in 0..4 {
        let now = Instant::ORIGIN + Span::from_secs(seconds);
        law.step(now, 0, vec![application(1, &[begins_with.get()])]);
    }
    let found = law.total();
    assert!(found > begins_with, "no raise is tried from {found}");
    assert_eq!(law.most(), TotalProbe::MOST);
    law.set_total(fixed(10));
    law.step(Instant::ORIGIN, 0, vec![application(1, &[10])]);
    assert_eq!((law.total().get(), law.most()), (10, 10));
    law.set_total(TotalConcurrency::Auto);
    assert_eq!(law.total(), found);
}
