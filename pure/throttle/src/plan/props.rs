//! From any state of the kernel, a plan leads to what is wanted, and is safe wherever it stops.

use std::net::SocketAddr;

use proptest::prelude::*;

use super::*;
use crate::pretend_kernel::apply;

const INTERFACES: [&str; 3] = ["eth0", "eth1", "bond0"];
const LEAVES: u16 = 4;
const CONNECTIONS: u8 = 6;

fn connection(host: u8) -> Connection {
    Connection {
        local: SocketAddr::from(([10, 0, 0, 1], 3260)),
        peer: SocketAddr::from(([10, 0, 0, host], 40_000)),
    }
}

fn delays() -> impl Strategy<Value = Span> {
    prop::sample::select(vec![0, 500, 1_000, 5_000, 20_000]).prop_map(Span::from_micros)
}

fn leaf() -> impl Strategy<Value = LeafId> {
    (1..=LEAVES).prop_map(LeafId)
}

fn presents() -> impl Strategy<Value = Present> {
    let leaves = prop::collection::btree_map(leaf(), (delays(), any::<bool>()), 0..=usize::from(LEAVES));
    let interface = prop::sample::select(INTERFACES.map(String::from).to_vec());
    let left = (1u64..=3_000).prop_map(Span::from_millis);
    let member = ((0..CONNECTIONS).prop_map(connection), (leaf(), left));
    (
        prop::collection::btree_map(interface, leaves, 0..=INTERFACES.len()),
        prop::collection::vec(member, 0..=usize::from(CONNECTIONS)),
        any::<bool>(),
    )
        .prop_map(|(interfaces, members, classifies)| Present {
            interfaces,
            members: members.into_iter().collect(),
            classifies,
        })
}

fn wanteds() -> impl Strategy<Value = Wanted> {
    let interface = prop::sample::select(INTERFACES.map(String::from).to_vec());
    (
        prop::collection::btree_map(leaf(), delays(), 0..=usize::from(LEAVES)),
        prop::collection::vec((0..CONNECTIONS, 0..LEAVES), 0..=usize::from(CONNECTIONS)),
        prop::collection::btree_set(interface, 0..=INTERFACES.len()),
    )
        .prop_map(|(leaves, members, interfaces)| {
            let leaf = |(id, delay)| (id, WantedLeaf { delay, members: BTreeSet::new() });
            let mut leaves: BTreeMap<_, _> = leaves.into_iter().map(leaf).collect();
            // A connection enters one leaf only: the last one that is named.
            let members: BTreeMap<_, _> = members.into_iter().collect();
            for (host, leaf) in members {
                let count = leaves.len();
                if let Some((_, leaf)) = leaves.iter_mut().nth(usize::from(leaf) % count.max(1)) {
                    leaf.members.insert(connection(host));
                }
            }
            Wanted { leaves, interfaces }
        })
}

/// How long the packets of a connection are delayed on an interface.
fn effective(kernel: &Present, interface: &str, connection: &Connection) -> Span {
    let leaf = kernel.members.get(connection).filter(|_| kernel.classifies);
    let delay = leaf.and_then(|(leaf, _)| kernel.interfaces.get(interface)?.get(leaf));
    delay.map_or(Span::ZERO, |(delay, _)| *delay)
}

fn wanted_delay(wanted: &Wanted, connection: &Connection) -> Span {
    let leaf = wanted.leaves.values().find(|leaf| leaf.members.contains(connection));
    leaf.map_or(Span::ZERO, |leaf| leaf.delay)
}

/// Applies plans until one is empty; how many it took.
fn converge(kernel: &mut Present, wanted: &Wanted) -> usize {
    for plans in 0.. {
        let commands = plan(kernel, wanted);
        if commands.is_empty() {
            return plans;
        }
        assert!(plans < 2, "a third plan: {commands:?}");
        commands.iter().for_each(|command| apply(kernel, command));
    }
    unreachable!("it returns")
}

proptest! {
    #[test]
    fn wherever_a_plan_stops_the_next_one_leads_to_what_is_wanted(
        present in presents(), wanted in wanteds(), stop in any::<prop::sample::Index>(),
    ) {
        let mut kernel = present;
        let commands = plan(&kernel, &wanted);
        for command in &commands[..stop.index(commands.len() + 1)] {
            apply(&mut kernel, command);
        }
        converge(&mut kernel, &wanted);
        let members: BTreeMap<_, _> = kernel.members.iter().map(|(member, &(leaf, _))| (*member, leaf)).collect();
        let expected: BTreeMap<_, _> = wanted.leaves.iter()
            .flat_map(|(&leaf, WantedLeaf { members, .. })| members.iter().map(move |&member| (member, leaf)))
            .collect();
        prop_assert_eq!(kernel.classifies, !expected.is_empty());
        prop_assert_eq!(members, expected);
        for interface in &wanted.interfaces {
            for (id, leaf) in &wanted.leaves {
                prop_assert_eq!(kernel.interfaces[interface][id].0, leaf.delay);
            }
        }
        for leaves in kernel.interfaces.values() {
            prop_assert!(leaves.iter().all(|(id, leaf)| leaf.1 || wanted.leaves.contains_key(id)));
        }
    }

    #[test]
    fn wherever_a_plan_stops_nobody_is_delayed_for_longer_than_before_or_than_wanted(
        present in presents(), wanted in wanteds(),
    ) {
        let mut kernel = present.clone();
        for command in plan(&present, &wanted) {
            apply(&mut kernel, &command);
            for (interface, host) in INTERFACES.iter().flat_map(|name| (0..CONNECTIONS).map(move |host| (name, host))) {
                let connection = connection(host);
                let most = effective(&present, interface, &connection).max(wanted_delay(&wanted, &connection));
                prop_assert!(
                    effective(&kernel, interface, &connection) <= most,
                    "host {} on {}, after {:?}", host, interface, command
                );
            }
        }
    }

    #[test]
    fn a_plan_that_was_applied_leaves_nothing_but_leaves_to_remove(present in presents(), wanted in wanteds()) {
        let mut kernel = present;
        plan(&kernel, &wanted).iter().for_each(|command| apply(&mut kernel, command));
        let rest = plan(&kernel, &wanted);
        prop_assert!(rest.iter().all(|command| matches!(command, Command::RemoveLeaf { .. })), "{:?}", rest);
    }
}
