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
        for root in ["handle 1: prio", "handle 7e17: prio", "fq_codel", "handle 1: mq"] {
            let scene = Scene::new();
            scene.shell(&format!(
                "ip link add several numtxqueues 4 numrxqueues 4 type ifb; ip link set several up
                 tc qdisc replace dev several root {root}"
            ));
            let before = scene.state();
            let mut actuator = scene.actuator();
            let both = [LINK, "several"].map(str::to_owned).into();
            let refused = actuator.install(&both, CEILING).expect_err("it is somebody's");
            let is_named = |error: &ActuatorError| matches!(error, ActuatorError::ForeignRoot { interface, .. } if interface == "several");
            assert!(is_named(&refused), "{refused}");
            assert!(refused.to_string().contains("tc qdisc del dev several root"), "{refused}");
            assert_eq!(scene.state(), before);

            // It may be set after the agent has looked.
            actuator.install(&link(), CEILING).expect("nobody has set that");
            let add = Command::AddRoot { interface: "several".to_owned() };
            let refused = actuator.apply(&[add]).expect_err("it is somebody's");
            assert!(is_named(&refused), "{refused}");
            actuator.remove().expect("it is ours");
            assert_eq!(scene.state(), before);
        }
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
