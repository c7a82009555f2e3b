//! The kernel is as it was before, byte for byte, once the agent is gone; and what somebody else has set
//! stays.

use std::collections::BTreeSet;

use weir_agent::actuator::ActuatorError;
use weir_model::Span;
use weir_throttle::Command;

use super::in_guest;
use super::scene::{LEAF, LINK, Scene, TARGET_V4, add_leaf, apply, enter, link, set_delay};

/// Longer than any delay of these tests.
const CEILING: Span = Span::from_millis(20);

/// Queues and tables of somebody else beside the agent's: the kernel's own roots with one queue and with
/// several, a classifier of packets that come in, and rules.
fn surround(scene: &Scene) {
    scene.shell(
        "ip link add one type ifb; ip link set one up
         ip link add several numtxqueues 4 numrxqueues 4 type ifb; ip link set several up
         tc qdisc add dev link0 clsact
         nft add table inet other
         nft add chain inet other output '{ type filter hook output priority 0; }'
         nft add rule inet other output tcp dport 22 counter accept
         nft add map ip other4 '{ type ipv4_addr : classid; }' 2>/dev/null || true",
    );
}

#[test]
fn removing_everything_restores_the_kernel_byte_for_byte() {
    in_guest("removing_everything_restores_the_kernel_byte_for_byte", || {
        for default in ["pfifo_fast", "fq_codel", "fq"] {
            super::scene::shell(&format!(
                "modprobe sch_{default} || true; sysctl -qw net.core.default_qdisc={default}"
            ));
            let scene = Scene::new();
            surround(&scene);
            let before = scene.state();
            assert!(
                before.contains("\"mq\"") && before.contains(default) && before.contains("noqueue"),
                "{before}"
            );
            let session = scene.session(TARGET_V4);
            let mut actuator = scene.actuator();
            let all = ["link0", "one", "several"].map(str::to_owned).into();
            assert_eq!(actuator.install(&all, CEILING), Ok(BTreeSet::new()));
            for interface in &all {
                let leaf = Command::AddLeaf { interface: interface.clone(), leaf: LEAF, delay: CEILING };
                apply(&mut actuator, &[leaf]);
            }
            apply(&mut actuator, &[enter(LEAF, session.connection), Command::Classify(true)]);
            // Two on each interface, and on one also the class; and the member's leaf.
            let during = scene.state();
            assert_eq!(during.matches("7e17:").count(), 3 * 2 + 1 + 1, "{during}");
            actuator.remove().expect("it is ours");
            assert_eq!(scene.state(), before);
            actuator.remove().expect("removing nothing is fine");
            assert_eq!(scene.state(), before);
        }
        super::scene::shell("sysctl -qw net.core.default_qdisc=pfifo_fast");
    });
}

#[test]
fn what_waits_in_a_leaf_is_sent_before_the_leaf_is_removed() {
    in_guest("what_waits_in_a_leaf_is_sent_before_the_leaf_is_removed", || {
        let scene = Scene::new();
        let delay = Span::from_millis(200);
        let mut actuator = scene.with_leaf(delay);
        let (accepted, received) = scene.pair(TARGET_V4);
        apply(&mut actuator, &[enter(LEAF, super::scene::connection(&accepted))]);
        std::io::Write::write_all(&mut &accepted, &[7; 8_000]).expect("it is connected");
        assert!(actuator.look().expect("the kernel answers").interfaces[LINK][&LEAF].1, "packets wait");
        actuator.remove().expect("it is ours");
        std::io::Read::read_exact(&mut &received, &mut [0; 8_000]).expect("it is connected");
        let retransmitted = scene.shell("nstat -asz TcpRetransSegs | awk '/Retrans/ { print $2 }'");
        assert_eq!(retransmitted.trim(), "0");
    });
}

#[test]
fn a_root_that_somebody_has_set_is_refused_untouched() {
    in_guest("a_root_that_somebody_has_set_is_refused_untouched", || {
        for root in ["handle 1: prio", "handle 7e17: prio", "handle 7e17: htb", "fq_codel", "handle 1: mq"] {
            let scene = Scene::new();
            scene.shell(&format!(
                "ip link add several numtxqueues 4 numrxqueues 4 type ifb; ip link set several up
                 tc qdisc replace dev several root {root}"
            ));
            let before = scene.uncounted_state();
            let mut actuator = scene.actuator();
            let both = [LINK, "several"].map(str::to_owned).into();
            let refused = actuator.install(&both, CEILING).expect_err("it is somebody's");
            let is_named = |error: &ActuatorError| matches!(error, ActuatorError::ForeignRoot { interface, .. } if interface == "several");
            assert!(is_named(&refused), "{refused}");
            assert!(refused.to_string().contains("tc qdisc del dev several root"), "{refused}");
            assert_eq!(scene.uncounted_state(), before);

            // It may be set after the agent has looked.
            actuator.install(&link(), CEILING).expect("nobody has set that");
            let add = Command::AddRoot { interface: "several".to_owned() };
            let refused = actuator.apply(&[add]).expect_err("it is somebody's");
            assert!(is_named(&refused), "{refused}");
            actuator.remove().expect("it is ours");
            assert_eq!(scene.uncounted_state(), before);
        }
    });
}

#[test]
fn a_removal_tells_what_it_removed_and_leaves_an_htb_of_the_same_number_alone() {
    in_guest("a_removal_tells_what_it_removed_and_leaves_an_htb_of_the_same_number_alone", || {
        let scene = Scene::new();
        scene.shell(
            "ip link add theirs type ifb; ip link set theirs up
             tc qdisc replace dev theirs root handle 7e17: htb default 1
             tc class add dev theirs parent 7e17: classid 7e17:1 htb rate 1gbit
             tc qdisc add dev theirs parent 7e17:1 netem delay 10ms",
        );
        let before = scene.uncounted_state();
        let mut actuator = scene.actuator();
        actuator.remove().expect("no agent is at work");
        assert_eq!(actuator.removed(), &BTreeSet::new());
        assert_eq!(scene.uncounted_state(), before);

        scene.with_leaf(CEILING); // and its socket closes, as after a kill
        actuator.remove().expect("no agent is at work");
        assert_eq!(actuator.removed(), &link());
        assert_eq!(scene.uncounted_state(), before);
    });
}

#[test]
fn all_that_a_start_would_be_refused_for_is_told_and_nothing_changes() {
    in_guest("all_that_a_start_would_be_refused_for_is_told_and_nothing_changes", || {
        let scene = Scene::new();
        let mut actuator = scene.actuator();
        assert_eq!(actuator.refusals(&link()), []);
        scene.shell(
            "ip link add one type ifb; tc qdisc replace dev one root handle 7e17: htb
             ip link add two type ifb; tc qdisc replace dev two root handle 1: prio
             tc qdisc replace dev lo root handle 1: prio; nft add table inet weir_throttle",
        );
        let before = scene.uncounted_state();
        let all = [LINK, "one", "two", "missing0"].map(str::to_owned).into();
        let foreign = |interface: &str, kind: &str, handle| ActuatorError::ForeignRoot {
            interface: interface.to_owned(),
            kind: kind.to_owned(),
            handle,
        };
        let expected =
            [ActuatorError::ForeignTable, foreign("one", "htb", 0x7e17), foreign("two", "prio", 1)];
        assert_eq!(actuator.refusals(&all), expected);
        assert_eq!(actuator.install(&all, CEILING), Err(foreign("one", "htb", 0x7e17)));
        assert!(!actuator.has_left());
        assert_eq!(scene.uncounted_state(), before);
    });
}

#[test]
fn an_interface_may_go_away_and_come_back_or_be_down_for_a_while() {
    in_guest("an_interface_may_go_away_and_come_back_or_be_down_for_a_while", || {
        let scene = Scene::new();
        let mut actuator = scene.with_leaf(CEILING);
        let present = actuator.look().expect("the kernel answers");
        scene.shell("ip link set link0 down; ip link set link0 up");
        assert_eq!(actuator.look(), Ok(present.clone()));

        scene.shell("ip link del link0");
        assert_eq!(actuator.look().expect("the kernel answers").interfaces.len(), 0);
        let add_root = Command::AddRoot { interface: LINK.to_owned() };
        let remove_leaf = Command::RemoveLeaf { interface: LINK.to_owned(), leaf: LEAF };
        for command in [&set_delay(Span::ZERO), &add_leaf(LEAF, CEILING), &add_root, &remove_leaf] {
            assert_eq!(actuator.apply(std::slice::from_ref(command)), Ok(link()), "{command:?}");
        }

        scene.connect();
        assert_eq!(actuator.apply(&[set_delay(CEILING)]), Ok(link()), "it is another one");
        apply(&mut actuator, &[add_root, add_leaf(LEAF, CEILING)]);
        assert_eq!(actuator.look(), Ok(present));
        actuator.remove().expect("it is ours");

        let missing = BTreeSet::from(["missing0".to_owned()]);
        assert_eq!(actuator.install(&missing, CEILING), Ok(missing));
        actuator.remove().expect("it is ours");
    });
}
