//! Each rule at its bound, with numbers that the paper's set-up has.

use weir_model::{Bandwidth, Span};

use super::*;
use crate::request::testing::write;

const MB: u64 = 1_000_000;

/// A node of `peak` MB/s with so many transfers of 10 MB/s, and this average.
fn node(place: usize, peak: u64, active: u32, average: u64) -> NodeView {
    NodeView {
        node: NodeIndex(place),
        peak: Bandwidth::new(peak * MB).expect("above zero"),
        reserved: u64::from(active) * 10 * MB,
        average: average * MB,
        active,
        needed: u64::from(active) * 10 * MB,
        external: None,
    }
}

fn placed(name: PolicyName, nodes: &[NodeView]) -> Option<usize> {
    placed_by(&mut name.policy(), nodes)
}

fn placed_by(policy: &mut Policy, nodes: &[NodeView]) -> Option<usize> {
    let now = Instant::ORIGIN;
    policy.place(now, &write(1, 10 * MB, 3), now, nodes).map(|NodeIndex(node)| node)
}

#[test]
fn round_robin_takes_one_node_after_the_other_whatever_they_do() {
    let nodes = [node(0, 20, 50, 1), node(1, 300, 0, 0), node(2, 60, 9, 60)];
    let mut policy = PolicyName::Rr.policy();
    let mut next = |nodes: &[NodeView]| placed_by(&mut policy, nodes);
    assert_eq!(
        [next(&nodes), next(&nodes), next(&nodes), next(&nodes)],
        [Some(0), Some(1), Some(2), Some(0)]
    );
    assert_eq!(next(&nodes[2..]), Some(2), "the next of those that may serve it");
    assert_eq!(next(&nodes), Some(0));
    assert_eq!(next(&[]), None);
}

#[test]
fn static_qos_takes_as_many_as_the_rounded_down_peak_over_the_rate_and_k4() {
    // 300 / (10 x 4) = 7.5, 60 / 40 = 1.5, 20 / 40 = 0.5
    for (peak, most) in [(300, 7), (60, 1), (20, 0)] {
        assert_eq!(placed(PolicyName::Static, &[node(0, peak, most, 0)]), None, "{peak} MB/s");
        if most > 0 {
            assert_eq!(placed(PolicyName::Static, &[node(0, peak, most - 1, 0)]), Some(0), "{peak} MB/s");
        }
    }
}

#[test]
fn sm_r1_counts_what_is_reserved_and_not_what_is_measured() {
    // 300 - 10 n 1.5 > 10 up to n = 19; 60: up to 3; 20: 20 - 15 > 10 does not hold, so 0.
    for (peak, passes) in [(300, 19), (60, 3), (20, 0)] {
        assert_eq!(placed(PolicyName::SmR1, &[node(0, peak, passes, 900)]), Some(0), "{peak} MB/s");
        assert_eq!(placed(PolicyName::SmR1, &[node(0, peak, passes + 1, 0)]), None, "{peak} MB/s");
    }
}

#[test]
fn sm_r2_takes_any_number_as_long_as_little_is_measured_in_both_forms() {
    let figure = |peak, average| placed(PolicyName::SmR2, &[node(0, peak, 1_000, average)]);
    assert_eq!(figure(20, 0), None, "20 - 0 > 10 x 2 does not hold: no transfer ever");
    assert_eq!((figure(300, 279), figure(300, 280)), (Some(0), None));
    let equation = |peak, average| {
        let mut policy = Policy::SmR2(SmR2 { form: SmR2Form::Equation, ..SmR2::default() });
        placed_by(&mut policy, &[node(0, peak, 1_000, average)])
    };
    assert_eq!((equation(20, 4), equation(20, 5)), (Some(0), None), "20 - 5 x 2 > 10 does not hold");
    assert_eq!((equation(300, 144), equation(300, 145)), (Some(0), None));
}

#[test]
fn sm_r3_shares_the_measured_rate_by_one_more_and_starts_one_on_an_idle_node() {
    let one = |active, average| placed(PolicyName::SmR3, &[node(0, 300, active, average)]);
    assert_eq!((one(1, 25), one(1, 24)), (Some(0), None), "24 / 2 > 12 does not hold");
    assert_eq!((one(19, 241), one(19, 240)), (Some(0), None));
    assert_eq!(one(0, 0), Some(0), "idle");
    let nodes = [node(0, 20, 0, 0), node(1, 300, 9, 240)];
    assert_eq!(placed(PolicyName::SmR3, &nodes), Some(1), "a node that passes comes before an idle one");
}

#[test]
fn of_the_nodes_that_pass_the_one_with_the_most_to_spare_is_taken() {
    let nodes = [node(0, 60, 0, 0), node(1, 300, 10, 0), node(2, 100, 0, 0)];
    assert_eq!(placed(PolicyName::SmR1, &nodes), Some(1), "50, 140 and 90 MB/s to spare");
    assert_eq!(placed(PolicyName::Static, &nodes), Some(2), "1, -3 and 2 transfers: 7 for 300 MB/s");
    let equal = [node(0, 60, 0, 0), node(1, 60, 0, 0)];
    assert_eq!(placed(PolicyName::SmR1, &equal), Some(0), "the first of two that are equal");
}

#[test]
fn a_policy_is_known_by_its_name() {
    for name in PolicyName::ALL {
        assert_eq!(name.to_string().parse(), Ok(name));
    }
    let error = "best".parse::<PolicyName>().expect_err("there is none");
    assert_eq!(error.to_string(), "found \"best\"; accepted: rr, static, sm-r1, sm-r2, sm-r3, deadline");
}

/// A sample in which all had the same.
fn sample(active: u32, rate: u64) -> Sample {
    let rate = bytes_f64(rate);
    Sample { count: Count::Same(active), rate, share: rate / f64::from(active) }
}

/// A `deadline` policy whose node had each of these numbers of transfers for three samples, with these rates
/// in MB/s.
fn learned(visits: &[(u32, u64)]) -> (Policy, Instant) {
    let (mut policy, mut now) = (PolicyName::Deadline.policy(), Instant::ORIGIN);
    for (active, rate) in visits {
        for _ in 0..3 {
            now = now + Span::from_secs(1);
            policy.sampled(now, NodeIndex(0), Direction::Write, sample(*active, rate * MB));
        }
    }
    (policy, now)
}

#[test]
fn deadline_stops_where_another_transfer_would_not_raise_the_rate_of_the_node() {
    let (mut policy, now) = learned(&[(9, 234), (10, 246), (11, 241), (10, 246)]);
    let mut place = |active, since| {
        let nodes = [node(0, 300, active, 0)];
        // 10 s at its rate.
        let request = Request { bytes: Some(100 * MB), ..write(1, 10 * MB, 1) };
        policy.place(now, &request, since, &nodes).is_some()
    };
    assert!(place(9, now));
    assert!(!place(10, now), "11 reached 241 MB/s, less than 246");
    assert!(place(10, Instant::ORIGIN), "unless it has waited for 12 s");
}

#[test]
fn deadline_starts_nothing_that_takes_others_below_their_rate() {
    let (mut policy, now) = learned(&[(1, 20), (2, 40), (1, 20)]);
    let mut place = |rate: u64, needed: u64| {
        let nodes = [NodeView { needed: needed * MB, ..node(0, 300, 1, 0) }];
        policy.place(now, &write(1, rate * MB, 1), now, &nodes).is_some()
    };
    assert!(place(10, 10), "40 > 1.2 (10 + 10)");
    assert!(!place(24, 10), "40 > 1.2 (24 + 10) does not hold");
    assert!(place(24, 5), "what a fast transfer no longer needs is free");
}

#[test]
fn deadline_does_not_believe_a_rate_that_seems_to_rise_while_the_shares_fall() {
    // 12 seem to do 4 % more than 11, but each gets 17 % less than one of 9.
    let (mut policy, now) = learned(&[(9, 234), (11, 241), (12, 251), (11, 241)]);
    let mut place =
        |active| policy.place(now, &write(1, 10 * MB, 1), now, &[node(0, 300, active, 0)]).is_some();
    assert!(place(9));
    assert!(!place(11));
}

#[test]
fn deadline_takes_an_idle_node_that_did_too_little_only_after_all_others() {
    let idle = [node(0, 20, 0, 0)];
    let two = [node(0, 20, 0, 0), node(1, 30, 0, 0)];
    let (mut policy, now) = learned(&[(1, 8)]);
    let mut place =
        |nodes: &[NodeView]| policy.place(now, &write(1, 10 * MB, 1), now, nodes).map(|NodeIndex(node)| node);
    assert_eq!((place(&two), place(&idle)), (Some(1), Some(0)), "it comes last, and takes any");
}

/// The node whose device moves so many MB/s for others.
fn beside(external: u64, node: NodeView) -> NodeView {
    NodeView { external: Some(external * MB), ..node }
}

#[test]
fn deadline_takes_the_idle_node_whose_peak_leaves_the_most_beside_the_load_of_others() {
    let place = |nodes: &[NodeView]| placed(PolicyName::Deadline, nodes);
    let (large, small) = (node(0, 300, 0, 0), node(1, 100, 0, 0));
    assert_eq!(place(&[large, small]), Some(0), "300 - 10 > 100 - 10");
    assert_eq!(place(&[beside(250, large), small]), Some(1), "300 - 250 - 10 < 100 - 10");
    assert_eq!(place(&[beside(250, large), beside(60, small)]), Some(0));
    assert_eq!(place(&[beside(u64::MAX / MB, small)]), Some(1), "an idle node takes a transfer in any case");
}

#[test]
fn deadline_does_not_try_a_node_against_its_history_whose_peak_is_taken_by_others() {
    let (policy, now) = learned(&[(1, 8)]);
    // It takes a second at its rate, and has waited for three: it has lost its patience.
    let request = Request { bytes: Some(10 * MB), ..write(1, 10 * MB, 1) };
    let tries = |node| policy.clone().place(now, &request, Instant::ORIGIN, &[node]).is_some();
    let busy = node(0, 100, 1, 0);
    assert!(tries(busy), "100 > 1.2 (10 + 10)");
    assert!(tries(beside(70, busy)), "100 - 70 > 1.2 (10 + 10)");
    assert!(!tries(beside(80, busy)), "it is slow because of the others, and not because of a slow client");
}

#[test]
fn deadline_does_not_take_off_again_what_its_history_contains() {
    let (policy, now) = learned(&[(1, 40)]);
    let place = |node: NodeView| policy.clone().place(now, &write(1, 10 * MB, 1), now, &[node]);
    for external in [0, 50, 250, 1_000] {
        assert_eq!(place(beside(external, node(0, 300, 1, 0))), Some(NodeIndex(0)), "{external} MB/s");
    }
}

#[test]
fn no_policy_of_the_paper_looks_at_the_load_of_others() {
    for name in PolicyName::ALL.into_iter().filter(|name| *name != PolicyName::Deadline) {
        let nodes = [node(0, 300, 2, 30), node(1, 300, 3, 30)];
        let external = nodes.map(|node| beside(299, node));
        assert_eq!(placed(name, &external), placed(name, &nodes), "{name}");
    }
}
