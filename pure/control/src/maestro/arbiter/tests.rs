//! The arbiter's cases.

use super::*;
use crate::maestro::requirement;

const TOTAL: f64 = 100.0;

/// An application that uses all that it has.
const fn claim(priority: f64, had: f64, performance: f64, slope: f64) -> Claim {
    let model = Some(Model { performance, slope });
    Claim { priority, model, had, usable: None, is_hindered: false, minimum: 1.0, limit: TOTAL }
}

fn decide(claims: &[Claim]) -> Decision {
    let required: Vec<_> = claims.iter().map(|claim| requirement::estimate(claim, TOTAL)).collect();
    arbitrate(claims, &required, TOTAL, Completions::ALL)
}

fn own(decision: &Decision) -> Vec<f64> {
    decision.allotments.iter().map(|given| (given.own * 1e6).round() / 1e6).collect()
}

fn reasons(decision: &Decision) -> Vec<BoundBy> {
    decision.allotments.iter().map(|given| given.bound_by).collect()
}

#[test]
fn in_underload_requirements_are_met_and_the_excess_goes_by_priority() {
    let decision = decide(&[claim(3.0, 40.0, 1.0, 2.0), claim(1.0, 40.0, 1.0, 2.0)]);
    assert_eq!((decision.case, own(&decision)), (Case::Underload, vec![55.0, 45.0]));
}

#[test]
fn the_excess_of_who_has_a_target_and_cannot_use_it_stays_empty() {
    let content = Claim { usable: Some(42.0), ..claim(3.0, 40.0, 1.0, 2.0) };
    let decision = decide(&[content, claim(1.0, 40.0, 1.0, 2.0)]);
    assert_eq!(own(&decision), [55.0, 45.0]);
}

#[test]
fn without_a_performance_nobody_gets_more_of_the_excess_than_it_can_use() {
    let idle = Claim { model: None, usable: Some(5.0), ..claim(3.0, 2.0, 0.0, 1.0) };
    assert_eq!(own(&decide(&[idle, claim(1.0, 40.0, 1.0, 2.0)])), [5.0, 95.0]);
}

#[test]
fn in_underload_nobody_falls_by_more_than_a_step_and_the_others_rise_by_no_more_than_that() {
    let decision = decide(&[claim(1.0, 90.0, 1.5, 1.0), claim(9.0, 10.0, 1.5, 1.0)]);
    assert_eq!((decision.case, own(&decision)), (Case::Underload, vec![85.0, 15.0]));
}

#[test]
fn what_is_not_used_is_there_at_once_for_who_needs_it_up_to_its_need() {
    let unused = Claim { usable: Some(10.0), ..claim(1.0, 90.0, 3.0, 1.0) };
    let own_of = |performance| own(&decide(&[unused, claim(1.0, 10.0, performance, 1.0)]))[1];
    assert!((own_of(0.8) - 30.0).abs() < 1e-6, "{}", own_of(0.8));
    assert!((own_of(0.97) - 15.0).abs() < 1e-6, "{}", own_of(0.97));
    assert!((own_of(1.1) - 15.0).abs() < 1e-6, "{}", own_of(1.1));
}

#[test]
fn who_is_hindered_rises_by_a_step_at_the_cost_of_the_others_and_nothing_is_dealt() {
    let hindered = Claim { usable: Some(25.0), is_hindered: true, ..claim(1.0, 45.0, 0.6, 1.0) };
    let decision = decide(&[hindered, claim(1.0, 55.0, 1.5, 1.0)]);
    assert_eq!((decision.case, own(&decision)), (Case::Overload, vec![50.0, 50.0]));
    let at_its_limit = decide(&[Claim { limit: 45.0, ..hindered }, claim(1.0, 45.0, 1.5, 1.0)]);
    assert_eq!(own(&at_its_limit), [45.0, 50.0], "5 stay empty");
}

#[test]
fn in_overload_weighted_errors_are_equal() {
    let decision = decide(&[claim(4.0, 50.0, 0.8, 4.0), claim(1.0, 50.0, 0.5, 4.0)]);
    // 4 (0.2 - 0.04 d) = 0.5 + 0.04 d
    assert_eq!((decision.case, own(&decision)), (Case::Overload, vec![51.5, 48.5]));
    assert_eq!(reasons(&decision), [BoundBy::Priority; 2]);
}

#[test]
fn in_overload_nobody_moves_by_more_than_a_step() {
    let decision = decide(&[claim(4.0, 50.0, 0.1, 1.0), claim(1.0, 50.0, 0.9, 1.0)]);
    assert_eq!(own(&decision), [55.0, 45.0]);
    assert_eq!(reasons(&decision), [BoundBy::StepLimit; 2]);
}

#[test]
fn who_cannot_use_more_gets_no_more_however_far_it_falls_short() {
    let stuck = Claim { usable: Some(21.0), ..claim(9.0, 20.0, 0.1, 1.0) };
    let decision = decide(&[stuck, claim(1.0, 78.0, 0.9, 1.0)]);
    assert!((own(&decision)[0] - 21.0).abs() < 1e-6, "{decision:?}");
    assert_eq!(reasons(&decision)[0], BoundBy::Use);
}

#[test]
fn without_a_performance_an_application_gives_way_by_a_step_at_a_time_and_never_its_minimum() {
    let greedy = Claim { model: None, ..claim(1000.0, 60.0, 0.0, 1.0) };
    let decision = decide(&[greedy, claim(1.0, 40.0, 0.5, 1.0)]);
    assert_eq!(own(&decision), [55.0, 45.0]);
    let decision = decide(&[Claim { had: 3.0, ..greedy }, claim(1.0, 97.0, 0.5, 1.0)]);
    assert_eq!(own(&decision), [1.0, 99.0]);
    assert_eq!(reasons(&decision)[0], BoundBy::Minimum);
}

#[test]
fn the_total_wins_over_the_step_limit() {
    let decision = decide(&[claim(1.0, 101.0, 0.5, 1.0), claim(1.0, 101.0, 0.5, 1.0)]);
    assert_eq!((decision.case, own(&decision)), (Case::Overload, vec![50.0, 50.0]));
}

#[test]
fn at_the_edge_of_overload_both_cases_give_the_same() {
    let claims = |performance| [claim(1.0, 50.0, performance, 4.0), claim(2.0, 50.0, 1.02, 4.0)];
    let (under, over) = (decide(&claims(0.98 + 1e-9)), decide(&claims(0.98 - 1e-9)));
    assert_eq!((under.case, over.case), (Case::Underload, Case::Overload));
    assert_eq!(own(&under), own(&over));
}

#[test]
fn priorities_of_any_size_are_relative() {
    let decision = decide(&[claim(4e300, 50.0, 0.8, 4.0), claim(1e300, 50.0, 0.5, 4.0)]);
    assert_eq!(own(&decision), [51.5, 48.5]);
    let decision = decide(&[claim(4.0, 50.0, 0.8, 4.0), claim(1e-300, 50.0, 0.5, 4.0)]);
    assert!((own(&decision)[0] - 55.0).abs() < 1e-3, "{decision:?}");
}
