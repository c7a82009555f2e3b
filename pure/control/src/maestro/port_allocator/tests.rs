//! Whole numbers, and ports.

use proptest::prelude::*;

use super::*;

#[test]
fn an_amount_is_rounded_up_where_the_total_permits() {
    assert_eq!(to_whole(&[2.1, 3.0, 4.5], &[1; 3], 20), [3, 3, 5]);
}

#[test]
fn where_it_does_not_the_largest_remainder_is() {
    assert_eq!(to_whole(&[2.1, 3.4, 4.5], &[1; 3], 10), [2, 3, 5]);
    assert_eq!(to_whole(&[2.5, 3.0, 4.5], &[1; 3], 10), [3, 3, 4]);
}

#[test]
fn a_whole_number_is_itself_however_it_was_computed() {
    assert_eq!(to_whole(&[0.1 + 0.2 + 2.7, 3.0 - 1e-12], &[1; 2], 9), [3, 3]);
}

#[test]
fn ports_have_what_their_demand_is_of_all() {
    assert_eq!(to_ports(40, &[30.0, 10.0]), [30, 10]);
    assert_eq!(to_ports(50, &[25.0, 0.0, 25.0, 0.0]), [24, 1, 24, 1]);
}

#[test]
fn an_idle_port_keeps_one_request_at_the_cost_of_the_others() {
    assert_eq!(to_ports(10, &[1e9, 1e-9, 0.0]), [8, 1, 1]);
    assert_eq!(to_ports(3, &[9.0, 1.0, 0.0]), [1, 1, 1]);
}

#[test]
fn without_any_demand_the_parts_are_equal() {
    assert_eq!(to_ports(10, &[0.0; 4]), [3, 3, 2, 2]);
}

fn demand() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), 0.0..100.0, Just(1e-12), Just(4e9)]
}

proptest! {
    #[test]
    fn the_parts_of_ports_are_the_amount_in_sum(demand in prop::collection::vec(demand(), 1..17), above in 0..500_u32) {
        let amount = u32::try_from(demand.len()).unwrap() + above;
        let ports = to_ports(amount, &demand);
        prop_assert_eq!(ports.iter().sum::<u32>(), amount);
        prop_assert!(ports.iter().all(|port| *port >= 1));
    }

    #[test]
    fn whole_amounts_are_within_one_of_what_they_were_and_within_the_total(
        parts in prop::collection::vec(0.0..1.0_f64, 1..50), total in 100..1000_u32
    ) {
        let sum: f64 = parts.iter().sum();
        let above = |part: f64| if sum > 0.0 { f64::from(total - 50) * part / sum } else { 0.0 };
        let amounts: Vec<f64> = parts.iter().map(|part| 1.0 + above(*part)).collect();
        let whole = to_whole(&amounts, &vec![1; amounts.len()], total);
        prop_assert!(whole.iter().sum::<u32>() <= total);
        for (amount, whole) in amounts.iter().zip(&whole) {
            prop_assert!((amount - f64::from(*whole)).abs() < 1.0 + 1e-6);
        }
    }
}
