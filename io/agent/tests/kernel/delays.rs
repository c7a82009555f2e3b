//! Whose packets are delayed, by how much, and how long.

use std::collections::{BTreeMap, BTreeSet};

use weir_agent::actuator::LASTS;
use weir_model::Span;
use weir_throttle::{Command, LeafId, Packets, Present};

use super::in_guest;
use super::scene::{
    LEAF, LINK, Scene, TARGET_V4, TARGET_V6, add_leaf, apply, enter, link, set_delay, wait_until,
};

/// A delay that no stall of the emulated processor resembles.
const DELAY: Span = Span::from_millis(80);
/// What a round trip without a delay stays below.
const UNDELAYED: Span = Span::from_millis(40);

#[test]
fn a_member_is_delayed_by_what_was_set_and_nobody_else() {
    in_guest("a_member_is_delayed_by_what_was_set_and_nobody_else", || {
        let scene = Scene::new();
        let mut actuator = scene.with_leaf(DELAY);
        for address in [TARGET_V4, TARGET_V6] {
            let [mut member, mut other] = [(); 2].map(|()| scene.session(address));
            assert!(member.round_trip() < UNDELAYED, "{address}: not a member yet");
            apply(&mut actuator, &[enter(LEAF, member.connection)]);
            assert!(member.round_trip() >= DELAY, "{address}");
            assert!(other.round_trip() < UNDELAYED, "{address}: another port of the same address");

            let half = Span::from_millis(40);
            apply(&mut actuator, &[set_delay(half), enter(LEAF, member.connection)]);
            let delayed = member.round_trip();
            assert!((half..DELAY).contains(&delayed), "{address}: {delayed:?}");

            let leave = Command::Leave { connections: BTreeSet::from([member.connection]) };
            apply(&mut actuator, &[set_delay(DELAY), leave]);
            assert!(member.round_trip() < UNDELAYED, "{address}: no member any more");
        }
        actuator.remove().expect("it is ours");
    });
}

#[test]
fn an_agent_for_payload_or_for_acknowledgements_delays_no_other_packet() {
    in_guest("an_agent_for_payload_or_for_acknowledgements_delays_no_other_packet", || {
        for address in [TARGET_V4, TARGET_V6] {
            for (packets, answers_are_delayed) in [(Packets::Payload, true), (Packets::Acks, false)] {
                let scene = Scene::new();
                let mut actuator = scene.actuator().delaying(packets);
                actuator.install(&link(), DELAY).expect("nobody has set a root");
                let mut member = scene.session(address);
                let member_of = enter(LEAF, member.connection);
                apply(&mut actuator, &[add_leaf(LEAF, DELAY), Command::Classify(true), member_of]);
                let took = member.round_trip();
                assert_eq!(took >= DELAY, answers_are_delayed, "{address}, {packets:?}: {took:?}");
                let took = member.acknowledged_round_trip();
                assert!(
                    (DELAY..DELAY + DELAY).contains(&took),
                    "one of two: {address}, {packets:?}: {took:?}"
                );
            }
        }
    });
}

#[test]
fn a_bond_is_delayed_as_one_interface_and_its_parts_are_left_alone() {
    in_guest("a_bond_is_delayed_as_one_interface_and_its_parts_are_left_alone", || {
        let scene = Scene::new();
        scene.shell(&format!(
            "ip link add bond0 type bond mode active-backup miimon 50
             ip link set {LINK} down; ip addr flush dev {LINK}; ip link set {LINK} master bond0
             ip link set bond0 up; ip addr add {TARGET_V4}/24 dev bond0"
        ));
        let before = scene.state();
        let (mut actuator, bond) = (scene.actuator(), "bond0".to_owned());
        actuator.install(&BTreeSet::from([bond.clone()]), DELAY).expect("nobody has set a root");
        let mut member = scene.session(TARGET_V4);
        assert!(member.round_trip() < UNDELAYED);
        let leaf = Command::AddLeaf { interface: bond, leaf: LEAF, delay: DELAY };
        apply(&mut actuator, &[leaf, Command::Classify(true), enter(LEAF, member.connection)]);
        assert!(member.round_trip() >= DELAY);
        let part = scene.shell(&format!("tc qdisc show dev {LINK}"));
        assert!(!part.contains("htb") && !part.contains("netem"), "{part}");
        actuator.remove().expect("it is ours");
        assert!(member.round_trip() < UNDELAYED);
        assert_eq!(scene.state(), before);
    });
}

#[test]
fn without_the_rule_no_packet_is_touched() {
    in_guest("without_the_rule_no_packet_is_touched", || {
        let scene = Scene::new();
        let mut actuator = scene.with_leaf(DELAY);
        let mut member = scene.session(TARGET_V4);
        apply(&mut actuator, &[enter(LEAF, member.connection), Command::Classify(false)]);
        assert!(member.round_trip() < UNDELAYED);
        assert!(!scene.shell("nft list ruleset").contains("hook output"));
        let twice = [Command::Classify(false), Command::Classify(true), Command::Classify(true)];
        apply(&mut actuator, &twice);
        assert_eq!(scene.shell("nft list ruleset").matches("map @members4").count(), 1, "one rule");
        apply(&mut actuator, &[enter(LEAF, member.connection)]);
        assert!(member.round_trip() >= DELAY);
    });
}

#[test]
fn what_is_present_is_what_was_done_and_doing_it_again_changes_nothing() {
    in_guest("what_is_present_is_what_was_done_and_doing_it_again_changes_nothing", || {
        let scene = Scene::new();
        let mut actuator = scene.with_leaf(DELAY);
        let sessions = [TARGET_V4, TARGET_V6].map(|address| scene.session(address));
        let other = LeafId(0xffff);
        let commands = [
            Command::AddRoot { interface: LINK.to_owned() },
            add_leaf(LEAF, DELAY),
            add_leaf(other, Span::from_micros(500)),
            enter(LEAF, sessions[0].connection),
            enter(other, sessions[1].connection),
            Command::Classify(true),
        ];
        for _ in 0..2 {
            apply(&mut actuator, &commands);
            let present = actuator.look().expect("the kernel answers");
            let leaves = [(LEAF, (DELAY, false)), (other, (Span::from_micros(500), false))];
            let interfaces = BTreeMap::from([(LINK.to_owned(), BTreeMap::from(leaves))]);
            let members: BTreeMap<_, _> =
                present.members.iter().map(|(connection, (leaf, _))| (*connection, *leaf)).collect();
            let expected = [(sessions[0].connection, LEAF), (sessions[1].connection, other)];
            assert_eq!(members, BTreeMap::from(expected));
            assert!(present.members.values().all(|(_, left)| !left.is_zero() && *left <= LASTS));
            let Present { members, classifies, .. } = present.clone();
            assert_eq!(present, Present { interfaces, members, classifies });
            assert!(classifies);
        }
        // One that is in another leaf moves, and a leaf that is gone may be removed again.
        apply(&mut actuator, &[enter(LEAF, sessions[1].connection)]);
        let present = actuator.look().expect("the kernel answers");
        assert_eq!(present.members[&sessions[1].connection].0, LEAF);
        let remove = Command::RemoveLeaf { interface: LINK.to_owned(), leaf: other };
        apply(&mut actuator, std::slice::from_ref(&remove));
        assert_eq!(actuator.apply(&[remove]), Ok(link()), "there is no such leaf");
    });
}

#[test]
fn a_member_that_is_not_renewed_is_delayed_no_more() {
    in_guest("a_member_that_is_not_renewed_is_delayed_no_more", || {
        let scene = Scene::new();
        let mut actuator = scene.with_leaf(DELAY);
        let mut member = scene.session(TARGET_V4);
        let enter = enter(LEAF, member.connection);
        let left = |actuator: &mut weir_agent::actuator::Actuator| {
            let present = actuator.look().expect("the kernel answers");
            present.members.get(&member.connection).map(|(_, left)| *left)
        };
        apply(&mut actuator, std::slice::from_ref(&enter));
        wait_until("a third is over", || left(&mut actuator) < Some(Span::from_secs(2)));
        apply(&mut actuator, std::slice::from_ref(&enter));
        assert!(left(&mut actuator) > Some(Span::from_secs(2)), "renewed");
        wait_until("it has expired", || left(&mut actuator) == Some(Span::ZERO));
        assert!(member.round_trip() < UNDELAYED);
        apply(&mut actuator, &[enter]);
        assert!(member.round_trip() >= DELAY);
    });
}

#[test]
fn a_thousand_connections_enter_and_leave() {
    in_guest("a_thousand_connections_enter_and_leave", || {
        let scene = Scene::new();
        let mut actuator = scene.with_leaf(DELAY);
        let one = scene.session(TARGET_V4).connection;
        let many: BTreeSet<_> = (1..=1_000)
            .map(|port| {
                let mut other = one;
                other.peer.set_port(port);
                other
            })
            .collect();
        let enter = Command::Enter { leaf: LEAF, connections: many.clone() };
        apply(&mut actuator, &[enter.clone(), enter]);
        assert_eq!(actuator.look().expect("the kernel answers").members.len(), 1_000);
        apply(&mut actuator, &[Command::Leave { connections: many }]);
        assert_eq!(actuator.look().expect("the kernel answers").members.len(), 0);
    });
}
