//! Plans as text, one line for each command.

use std::net::SocketAddr;

use super::*;

fn connection(host: u8) -> Connection {
    Connection {
        local: SocketAddr::from(([10, 0, 0, 1], 3260)),
        peer: SocketAddr::from(([10, 0, 0, host], 40_000)),
    }
}

fn millis(n: u64) -> Span {
    Span::from_millis(n)
}

/// What is wanted: `(leaf, delay in ms, members)`, on these interfaces.
fn wanted(interfaces: &[&str], leaves: &[(u16, u64, &[u8])]) -> Wanted {
    let leaf = |&(leaf, delay, members): &(u16, u64, &[u8])| {
        let members = members.iter().map(|&host| connection(host)).collect();
        (LeafId(leaf), WantedLeaf { delay: millis(delay), members })
    };
    Wanted {
        leaves: leaves.iter().map(leaf).collect(),
        interfaces: interfaces.iter().map(ToString::to_string).collect(),
    }
}

/// What is present: on `eth0` leaves as `(leaf, delay in ms, whether packets are in it)`, and members as
/// `(host, leaf, milliseconds that are left)`. The rule is there if there are members.
fn present(leaves: &[(u16, u64, bool)], members: &[(u8, u16, u64)]) -> Present {
    let leaves = leaves.iter().map(|&(leaf, delay, packets)| (LeafId(leaf), (millis(delay), packets)));
    let member = |&(host, leaf, left): &(u8, u16, u64)| (connection(host), (LeafId(leaf), millis(left)));
    Present {
        interfaces: [("eth0".to_string(), leaves.collect())].into(),
        members: members.iter().map(member).collect(),
        classifies: !members.is_empty(),
    }
}

fn hosts(connections: &BTreeSet<Connection>) -> String {
    let host = |connection: &Connection| connection.peer.ip().to_string().replace("10.0.0.", ".");
    connections.iter().map(host).collect::<Vec<_>>().join(" ")
}

fn line(command: &Command) -> String {
    match command {
        Command::AddRoot { interface } => format!("{interface}: root"),
        Command::AddLeaf { interface, leaf, delay } => format!("{interface}: leaf {} of {delay}", leaf.0),
        Command::SetDelay { interface, leaf, delay } => format!("{interface}: leaf {} now {delay}", leaf.0),
        Command::RemoveLeaf { interface, leaf } => format!("{interface}: no leaf {}", leaf.0),
        Command::Enter { leaf, connections } => format!("{} into leaf {}", hosts(connections), leaf.0),
        Command::Leave { connections } => format!("{} out", hosts(connections)),
        Command::Classify(on) => format!("rule {}", if *on { "on" } else { "off" }),
    }
}

fn lines(present: &Present, wanted: &Wanted) -> Vec<String> {
    plan(present, wanted).iter().map(line).collect()
}

#[test]
fn on_an_empty_kernel_members_enter_then_the_leaves_come_then_the_rule() {
    let wanted = wanted(&["eth0", "eth1"], &[(1, 5, &[11, 12]), (2, 0, &[])]);
    assert_eq!(
        lines(&Present::default(), &wanted),
        [
            ".11 .12 into leaf 1",
            "eth0: root",
            "eth0: leaf 1 of 5ms",
            "eth0: leaf 2 of 0s",
            "eth1: root",
            "eth1: leaf 1 of 5ms",
            "eth1: leaf 2 of 0s",
            "rule on",
        ]
    );
}

#[test]
fn what_is_there_needs_no_command() {
    let wanted = wanted(&["eth0"], &[(1, 5, &[11])]);
    assert_eq!(lines(&present(&[(1, 5, true)], &[(11, 1, 2000)]), &wanted), [""; 0]);
    assert_eq!(plan(&Present::default(), &Wanted::default()), []);
}

#[test]
fn a_member_is_renewed_when_less_than_2_s_are_left() {
    let wanted = wanted(&["eth0"], &[(1, 5, &[11, 12])]);
    let present = present(&[(1, 5, true)], &[(11, 1, 1999), (12, 1, 2000)]);
    assert_eq!(lines(&present, &wanted), [".11 into leaf 1"]);
}

#[test]
fn a_step_of_the_delay_is_one_command_on_each_interface() {
    let mut present = present(&[(1, 5, true)], &[(11, 1, 3000)]);
    present.interfaces.insert("eth1".to_string(), present.interfaces["eth0"].clone());
    assert_eq!(
        lines(&present, &wanted(&["eth0", "eth1"], &[(1, 7, &[11])])),
        ["eth0: leaf 1 now 7ms", "eth1: leaf 1 now 7ms"]
    );
}

#[test]
fn who_leaves_does_so_before_a_delay_rises_and_who_moves_does_so_between_falls_and_rises() {
    let present = present(&[(1, 5, true), (2, 9, true)], &[(11, 1, 3000), (12, 1, 3000), (13, 2, 3000)]);
    assert_eq!(
        lines(&present, &wanted(&["eth0"], &[(1, 8, &[11]), (2, 6, &[13, 12])])),
        ["eth0: leaf 2 now 6ms", ".12 into leaf 2", "eth0: leaf 1 now 8ms"]
    );
    assert_eq!(
        lines(&present, &wanted(&["eth0"], &[(1, 8, &[11]), (2, 9, &[13])])),
        [".12 out", "eth0: leaf 1 now 8ms"]
    );
}

#[test]
fn with_the_last_member_the_rule_goes_first_and_the_leaf_in_the_next_plan_once_it_is_empty() {
    let mut kernel = present(&[(1, 5, false)], &[(11, 1, 3000)]);
    assert_eq!(lines(&kernel, &Wanted::default()), ["rule off", ".11 out"]);
    kernel.members.clear();
    kernel.classifies = false;
    assert_eq!(lines(&kernel, &Wanted::default()), ["eth0: no leaf 1"]);
    assert_eq!(
        lines(&present(&[(1, 5, true)], &[]), &Wanted::default()),
        [""; 0],
        "its packets are not lost"
    );
}

#[test]
fn what_somebody_else_removed_comes_back() {
    let wanted = wanted(&["eth0"], &[(1, 5, &[11])]);
    let all = present(&[(1, 5, true)], &[(11, 1, 3000)]);
    let flushed = Present { members: BTreeMap::new(), ..all.clone() };
    assert_eq!(lines(&flushed, &wanted), [".11 into leaf 1"]);
    let no_rule = Present { classifies: false, ..all.clone() };
    assert_eq!(lines(&no_rule, &wanted), ["rule on"]);
    let no_root = Present { interfaces: BTreeMap::new(), ..all };
    assert_eq!(lines(&no_root, &wanted), ["eth0: root", "eth0: leaf 1 of 5ms"]);
}

#[test]
fn an_interface_that_no_member_uses_any_more_keeps_its_leaves_in_step() {
    let mut present = present(&[(1, 5, false)], &[(11, 1, 3000)]);
    present.interfaces.insert("eth1".to_string(), BTreeMap::new());
    assert_eq!(
        lines(&present, &wanted(&["eth1"], &[(1, 3, &[11])])),
        ["eth0: leaf 1 now 3ms", "eth1: leaf 1 of 3ms"]
    );
}
