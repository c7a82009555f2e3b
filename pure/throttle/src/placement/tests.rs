//! One connection, and one or two leaves.

use std::net::SocketAddr;

use super::*;

fn at(millis: u64) -> Instant {
    Instant::ORIGIN + Span::from_millis(millis)
}

fn connection() -> Connection {
    Connection {
        local: SocketAddr::from(([10, 0, 0, 1], 3260)),
        peer: SocketAddr::from(([10, 0, 0, 11], 40_000)),
    }
}

/// A connection that may enter some leaves, whose delays change.
struct Case {
    placement: Placement,
    leaves: BTreeMap<LeafId, LeafState>,
}

impl Case {
    fn new() -> Self {
        Self { placement: Placement::default(), leaves: BTreeMap::new() }
    }

    /// Sets delays, as `(leaf, ms)`; where the connection is then, if it may enter `candidates`.
    fn at(&mut self, millis: u64, delays: &[(u16, u64)], candidates: &[u16]) -> Option<u16> {
        for &(leaf, delay) in delays {
            let leaf = self.leaves.entry(LeafId(leaf)).or_insert(LeafState::IDLE);
            leaf.set_delay(at(millis), Span::from_millis(delay));
        }
        let leaves: BTreeSet<_> = candidates.iter().copied().map(LeafId).collect();
        let eligible = (!leaves.is_empty()).then(|| (connection(), leaves)).into_iter().collect();
        self.placement.set_eligible(eligible);
        self.placement.update(at(millis), &self.leaves);
        self.placement
            .eligible
            .values()
            .flatten()
            .next()
            .and_then(|eligible| eligible.is_in)
            .map(|leaf| leaf.0)
    }
}

#[test]
fn a_connection_enters_a_leaf_with_the_first_delay_and_leaves_it_a_second_after_the_last() {
    let mut case = Case::new();
    assert_eq!(case.at(0, &[(1, 0)], &[1]), None, "nothing is delayed, so nothing is touched");
    assert_eq!(case.at(100, &[(1, 5)], &[1]), Some(1));
    assert_eq!(case.at(200, &[(1, 0)], &[1]), Some(1));
    assert_eq!(case.at(1_200, &[], &[1]), Some(1), "its last packet was out after 205 ms");
    assert_eq!(case.at(1_205, &[], &[1]), None);
}

#[test]
fn a_leaf_that_has_packets_longer_than_it_should_is_not_left() {
    let mut case = Case::new();
    case.at(0, &[(1, 5)], &[1]);
    case.at(100, &[(1, 0)], &[1]);
    case.leaves.get_mut(&LeafId(1)).unwrap().has_packets = true;
    assert_eq!(case.at(5_000, &[], &[1]), Some(1));
}

#[test]
fn with_two_resources_it_gets_the_longer_delay_and_stays_while_that_is_not_exceeded() {
    let mut case = Case::new();
    assert_eq!(case.at(0, &[(1, 5), (2, 9)], &[1, 2]), Some(2));
    assert_eq!(case.at(100, &[(1, 9)], &[1, 2]), Some(2), "no longer, so it stays");
    assert_eq!(case.at(200, &[(1, 10)], &[1, 2]), Some(1));
}

#[test]
fn it_does_not_move_before_its_earlier_packets_are_out() {
    let mut case = Case::new();
    assert_eq!(case.at(0, &[(1, 8), (2, 20)], &[1, 2]), Some(2));
    assert_eq!(case.at(100, &[(1, 8), (2, 1)], &[1, 2]), Some(2), "a packet may be in leaf 2 until 120");
    assert_eq!(case.at(111, &[], &[1, 2]), Some(2));
    assert_eq!(case.at(112, &[], &[1, 2]), Some(1), "a packet of now gets out at 120");
}

#[test]
fn who_is_no_longer_to_be_delayed_leaves_at_once() {
    let mut case = Case::new();
    case.at(0, &[(1, 5), (2, 3)], &[1]);
    assert_eq!(case.at(100, &[], &[2]), Some(2), "it writes to the other resource now");
    assert_eq!(case.at(200, &[], &[]), None);
}
