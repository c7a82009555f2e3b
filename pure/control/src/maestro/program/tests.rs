//! The degenerate cases of the program.

use super::*;

/// A range from `lower` to `upper`, with the errors at its ends.
const fn range(lower: f64, upper: f64, error_at_lower: f64, error_at_upper: f64) -> Range {
    Range { lower, upper, error_at_lower, error_at_upper }
}

fn solved(ranges: &[Range], sum: f64) -> Vec<f64> {
    solve(ranges, sum).into_iter().map(|amount| (amount * 1e9).round() / 1e9).collect()
}

#[test]
fn errors_are_equal_where_no_end_is_in_the_way() {
    let ranges = [range(0.0, 10.0, 1.0, 0.0), range(0.0, 10.0, 1.5, 0.5)];
    assert_eq!(solved(&ranges, 9.0), [2.0, 7.0]);
    assert_eq!(solved(&ranges, 12.0), [3.5, 8.5]);
}

#[test]
fn one_application_gets_the_sum() {
    assert_eq!(solved(&[range(2.0, 8.0, 0.5, 0.2)], 3.0), [3.0]);
    assert_eq!(solved(&[range(2.0, 8.0, 0.5, 0.5)], 3.0), [3.0]);
}

#[test]
fn nobody_gets_nothing() {
    assert_eq!(solved(&[], 3.0), [0.0; 0]);
}

#[test]
fn equals_get_equal_parts() {
    assert_eq!(solved(&[range(1.0, 9.0, 0.8, 0.1); 4], 22.0), [5.5; 4]);
}

#[test]
fn steps_at_the_same_level_get_the_same_part_of_their_ranges() {
    let ranges = [range(0.0, 4.0, 0.5, 0.5), range(0.0, 8.0, 0.5, 0.5), range(0.0, 10.0, 1.0, 0.0)];
    assert_eq!(solved(&ranges, 8.0), [1.0, 2.0, 5.0]);
}

#[test]
fn who_gains_nothing_gets_the_most_if_it_is_worst_off_and_the_least_if_it_is_best_off() {
    let ramp = range(0.0, 10.0, 1.0, 0.0);
    assert_eq!(solved(&[range(1.0, 4.0, 2.0, 2.0), ramp], 9.0), [4.0, 5.0]);
    assert_eq!(solved(&[range(1.0, 4.0, -2.0, -2.0), ramp], 9.0), [1.0, 8.0]);
}

#[test]
fn ranges_without_width_bind_all_at_once() {
    let ranges = [range(3.0, 3.0, 0.7, 0.7), range(4.0, 4.0, 0.1, 0.1)];
    assert_eq!(solved(&ranges, 7.0), [3.0, 4.0]);
}

#[test]
fn a_sum_that_cannot_be_met_gives_the_ends_that_come_closest() {
    let ranges = [range(1.0, 2.0, 1.0, 0.0), range(3.0, 5.0, 0.5, 0.5)];
    assert_eq!(solved(&ranges, 8.0), [2.0, 5.0]);
    assert_eq!(solved(&ranges, 1.0), [1.0, 3.0]);
}

#[test]
fn who_is_held_at_an_end_leaves_the_others_equal_among_themselves() {
    let held = range(0.0, 1.0, 9.0, 8.0);
    let ranges = [held, range(0.0, 10.0, 1.0, 0.0), range(0.0, 10.0, 2.0, 1.0), range(5.0, 6.0, -3.0, -4.0)];
    assert_eq!(solved(&ranges, 16.0), [1.0, 0.0, 10.0, 5.0]);
    assert_eq!(solved(&ranges, 13.0), [1.0, 0.0, 7.0, 5.0]);
    assert_eq!(solved(&ranges, 17.0), [1.0, 1.0, 10.0, 5.0]);
}
