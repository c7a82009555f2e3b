//! The law to the letter: each test has an equation or a sentence of §3.2.

use weir_model::Target;

use super::super::arbiter::{Decision, arbitrate};
use super::super::claim::{Claim, Model};
use super::super::port_allocator::rounded_up;
use super::super::requirement;
use super::super::slope::{Point, SlopeModel};
use super::super::usage::Usage;
use super::*;

const NONE: Completions = Completions::NONE;
/// `C`.
const C: f64 = 100.0;

const fn claim(priority: f64, had: f64, performance: f64, slope: f64) -> Claim {
    let model = Some(Model { performance, slope });
    Claim { priority, model, had, usable: None, is_hindered: false, minimum: 1.0, limit: C }
}

fn decide(claims: &[Claim]) -> (Case, Vec<f64>) {
    let required: Vec<_> = claims.iter().map(|claim| requirement::estimate(claim, C)).collect();
    let Decision { case, allotments } = arbitrate(claims, &required, C, NONE);
    (case, allotments.iter().map(|given| (given.own * 1e6).round() / 1e6).collect())
}

fn slope(points: &[(f64, f64)]) -> f64 {
    let mut model = SlopeModel::default();
    for (had, performance) in points {
        model.observe(Some(Point { had: *had, performance: *performance }));
    }
    model.slope(C, NONE).0
}

#[test]
fn all_completions_are_the_law_of_every_array() {
    assert_eq!(Maestro::with(Completions::ALL), Maestro::new());
}

#[test]
fn the_slope_of_equation_1_is_believed_from_the_first_change_on() {
    // y(t) = y(t-1) + β (U(t) - U(t-1)) / C
    assert!((slope(&[(20.0, 0.5), (20.5, 0.51)]) - 2.0).abs() < 1e-9);
    assert!((slope(&[(20.0, 0.5), (30.0, 0.505)]) - 0.05).abs() < 1e-9, "however flat it is");
    assert!((slope(&[(20.0, 0.5), (21.0, 9.5)]) - 900.0).abs() < 1e-6, "or steep");
    assert!((slope(&[(20.0, 0.5), (25.0, 0.4)]) - 1.0).abs() < 1e-9, "the default, if it is negative");
    assert!((slope(&[(20.0, 0.5), (20.0, 0.9)]) - 1.0).abs() < 1e-9, "or nothing has moved");
}

#[test]
fn who_uses_less_than_80_percent_of_the_sum_over_its_ports_requires_what_makes_that_80_percent() {
    let usage = |at_device: [f64; 2], bounds: [u32; 2]| {
        let port = |at_device| PortObservation { at_device, ..PortObservation::default() };
        Usage::of(&at_device.map(port), &bounds, NONE).usable
    };
    assert_eq!(usage([4.0, 2.0], [5, 5]), Some(7.5));
    assert_eq!(usage([5.0, 0.0], [5, 5]), Some(6.25), "though one port has felt its bound");
    assert_eq!(usage([4.0, 4.0], [5, 5]), None);
}

#[test]
fn in_underload_each_gets_its_request_and_the_excess_in_proportion_to_the_priorities() {
    // 35 and 25 are required, a step less than before. 40 are left.
    let claims = [claim(3.0, 40.0, 1.5, 1.0), claim(1.0, 30.0, 1.5, 1.0)];
    assert_eq!(decide(&claims), (Case::Underload, vec![65.0, 35.0]));
    // Also who has no target, or uses nothing.
    let idle = Claim { model: None, usable: Some(0.0), ..claim(3.0, 6.0, 0.0, 1.0) };
    assert_eq!(decide(&[idle, claim(1.0, 30.0, 1.5, 1.0)]), (Case::Underload, vec![56.5, 43.5]));
}

#[test]
fn the_limit_of_change_is_one_of_the_request_and_not_of_the_excess() {
    let (_, given) = decide(&[claim(1.0, 90.0, 1.5, 1.0), claim(9.0, 10.0, 1.5, 1.0)]);
    assert_eq!(given, [86.0, 14.0], "85 and 5, and the excess of 10 by priority");
    let (_, given) = decide(&[claim(0.001, 90.0, 3.0, 1.0), claim(1.0, 1.0, 1.5, 1.0)]);
    assert!(given[1] > 14.0, "{given:?}");
}

#[test]
fn in_overload_the_program_has_no_bound_but_the_step_and_its_sum_is_c() {
    // |u_i - c_i| <= l, though the first can use no more than 38 of what it has.
    let stuck = Claim { usable: Some(38.0), ..claim(9.0, 40.0, 0.1, 1.0) };
    assert_eq!(decide(&[stuck, claim(1.0, 60.0, 0.4, 1.0)]), (Case::Overload, vec![45.0, 55.0]));
    // p_i (1 - f_i) are equal: 4 (0.2 - 0.04 d) = 0.5 + 0.04 d.
    let claims = [claim(4.0, 50.0, 0.8, 4.0), claim(1.0, 50.0, 0.5, 4.0)];
    assert_eq!(decide(&claims), (Case::Overload, vec![51.5, 48.5]));
}

#[test]
fn equation_4_is_rounded_up_at_each_port_and_is_at_least_one() {
    // U_ij = U_i d_ij / sum_k d_ik
    assert_eq!(rounded_up(10.0, &[1.0, 3.0]), [3, 8]);
    assert_eq!(rounded_up(10.0, &[10.0, 0.0, 0.0]), [10, 1, 1]);
    assert_eq!(rounded_up(12.0, &[1.0, 3.0]), [3, 9]);
}

#[test]
fn a_latency_without_an_answer_is_no_performance() {
    let performance = |port| {
        let target = Some(Target::Latency(Span::from_millis(50)));
        let objective = Objective { target, priority: Priority::ONE };
        let seen = ApplicationObservation { id: 0, objective, limits: Limits::default(), ports: vec![port] };
        Interval::of(&seen, None, NONE).performance
    };
    let over = Span::from_secs(2);
    let hangs = PortObservation { over, oldest: Some(Span::from_secs(9)), ..PortObservation::default() };
    assert_eq!(performance(hangs.clone()), None);
    let latency_sum = Span::from_millis(2);
    let fast = PortObservation { answered: 2, latency_sum, ..hangs };
    assert_eq!(performance(fast), Some(50.0));
}

#[test]
fn nobody_is_held_back_for_an_application_that_cannot_use_more() {
    let clients = vec![rate(1200.0, 1.0, 25), rate(1500.0, 1.0, 100)];
    let mut plant = plant(clients);
    plant.law = Maestro::with(NONE.with(Completion::WithinTotal));
    let cases: Vec<Case> = (0..80).map(|_| plant.interval().reasoning[0].case).collect();
    assert!(cases[40..].contains(&Case::Underload), "{cases:?}");
}
