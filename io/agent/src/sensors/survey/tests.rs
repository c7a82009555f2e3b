//! Whole surveys: a tree of files for the targets, and real connections at a portal on the loopback
//! interface.

use std::net::{TcpListener, TcpStream};

use weir_throttle::DeviceNumber;

use super::super::tree::{NO_SESSION, Tree, group};
use weir_throttle::Connection;

use super::*;

const IQN: &str = "iqn.2026-01.example:a";
const DM: DeviceNumber = DeviceNumber { major: 253, minor: 3 };

fn roots(tree: &Tree) -> Roots {
    Roots { sys: tree.sys(), proc: tree.proc(), run: tree.at("run"), tgtadm: tree.at("tgtadm") }
}

/// A target at a portal where somebody listens.
fn tree() -> (Tree, TcpListener) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let tree = Tree::new();
    tree.mapped("dm-3", DM, "vg-a", "LVM-x", &[]);
    tree.iblock("dm-3", DM);
    tree.group(IQN, 1, &[&listener.local_addr().unwrap().to_string()], &[(0, "dm-3")]);
    tree.entry(IQN, "iqn.i:1", &[], &[(0, 0, 0)]);
    tree.sessions(IQN, 0);
    (tree, listener)
}

/// The initiator logs in: the connection, then the session.
fn log_in(tree: &Tree, listener: &TcpListener) -> (TcpStream, TcpStream) {
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (accepted, _) = listener.accept().unwrap();
    tree.entry(IQN, "iqn.i:1", &["127.0.0.1"], &[(0, 0, 5)]);
    tree.sessions(IQN, 1);
    (client, accepted)
}

fn at(seconds: u64) -> Instant {
    Instant::ORIGIN + Span::from_secs(1000 + seconds)
}

#[test]
fn a_survey_has_targets_connections_devices_and_interfaces() {
    let (tree, listener) = tree();
    let (client, _accepted) = log_in(&tree, &listener);
    let mut surveyor = Surveyor::new(roots(&tree)).unwrap();
    assert!(surveyor.look(at(0)));
    assert_eq!(surveyor.remarks(), []);
    let survey = surveyor.survey();
    let connection = Connection { local: listener.local_addr().unwrap(), peer: client.local_addr().unwrap() };
    assert_eq!(survey.connections, [connection].into());
    assert_eq!(survey.targets[0].sessions[0].written, [(0, 5 << 20)].into());
    assert_eq!(survey.devices.keys().collect::<Vec<_>>(), [&DM]);
    assert_eq!(surveyor.survey().interfaces, [(connection, "lo".to_owned())].into());
}

#[test]
fn connections_are_listed_again_when_tcp_has_opened_or_ended_any_and_every_few_seconds() {
    let (tree, listener) = tree();
    let tcp = |passive| {
        let text = format!("Tcp: ActiveOpens PassiveOpens CurrEstab\nTcp: 1 {passive} 1\n");
        tree.write("proc/thread-self/net/snmp", text);
    };
    tcp(1);
    let mut surveyor = Surveyor::new(roots(&tree)).unwrap();
    let mut seen_at = |seconds| {
        surveyor.look(at(seconds));
        surveyor.survey().connections.len()
    };
    let connect =
        || (TcpStream::connect(listener.local_addr().unwrap()).unwrap(), listener.accept().unwrap());
    assert_eq!(seen_at(0), 0);
    let _one = connect();
    assert_eq!(seen_at(1), 0, "the counters of this test stand still");
    tcp(2);
    assert_eq!(seen_at(2), 1);
    let _two = connect();
    assert_eq!(seen_at(3), 1);
    assert_eq!(seen_at(5), 2);
}

#[test]
fn the_kernels_own_counters_tell_of_each_connection_that_comes_or_goes() {
    let (tree, listener) = tree();
    tree.link("proc/thread-self/net/snmp", "/proc/thread-self/net/snmp");
    let mut surveyor = Surveyor::new(roots(&tree)).unwrap();
    // The clock stands still, so nothing is late.
    let mut seen = || {
        surveyor.look(at(0));
        surveyor.survey().connections.len()
    };
    assert_eq!(seen(), 0);
    for _ in 0..20 {
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let accepted = listener.accept().unwrap();
        assert_eq!(seen(), 1);
        drop((client, accepted));
        assert_eq!(seen(), 0);
    }
}

#[test]
fn only_the_counters_are_read_as_long_as_nobody_comes_or_goes() {
    let (tree, listener) = tree();
    let _ends = log_in(&tree, &listener);
    let mut surveyor = Surveyor::new(roots(&tree)).unwrap();
    surveyor.look(at(0));
    surveyor.look(at(1));
    // What the outline does not show is not seen before its time.
    let counter = format!("{}/acls/iqn.i:1/lun_0/statistics/scsi_auth_intr/write_mbytes", group(IQN, 1));
    tree.write(&counter, "6\n");
    tree.write("sys/devices/block/dm-3/dm/name", "vg-b\n");
    surveyor.look(at(2));
    let name = |surveyor: &Surveyor| surveyor.survey().devices[&DM].mapper.clone().unwrap().name;
    assert_eq!(surveyor.survey().targets[0].sessions[0].written, [(0, 6 << 20)].into());
    assert_eq!(name(&surveyor), "vg-a");
    surveyor.read_again();
    assert!(surveyor.look(at(3)));
    assert_eq!(name(&surveyor), "vg-b");
    tree.write("sys/devices/block/dm-3/dm/name", "vg-c\n");
    surveyor.look(at(3 + LATEST.as_nanos() / 1_000_000_000));
    assert_eq!(name(&surveyor), "vg-c");
}

#[test]
fn who_logs_in_and_who_leaves_is_seen_at_the_next_look() {
    let (tree, listener) = tree();
    let mut surveyor = Surveyor::new(roots(&tree)).unwrap();
    surveyor.look(at(0));
    assert_eq!((surveyor.survey().targets[0].sessions.len(), surveyor.survey().connections.len()), (0, 0));
    let ends = log_in(&tree, &listener);
    assert!(surveyor.look(at(1)));
    assert_eq!((surveyor.survey().targets[0].sessions.len(), surveyor.survey().connections.len()), (1, 1));
    drop(ends);
    tree.write(&format!("{}/acls/iqn.i:1/info", group(IQN, 1)), NO_SESSION);
    tree.sessions(IQN, 0);
    assert!(surveyor.look(at(2)));
    assert_eq!((surveyor.survey().targets[0].sessions.len(), surveyor.survey().connections.len()), (0, 0));
    assert!(surveyor.survey().interfaces.is_empty());
    tree.remove("sys/kernel");
    assert!(surveyor.look(at(3)));
    assert_eq!(surveyor.survey(), &Survey::default());
    assert_eq!(surveyor.remarks(), []);
}

/// The kernel lists a connection before it lists the session.
#[test]
fn a_login_that_is_under_way_is_seen_a_second_later() {
    let (tree, listener) = tree();
    tree.sessions(IQN, 1);
    let mut surveyor = Surveyor::new(roots(&tree)).unwrap();
    surveyor.look(at(0));
    surveyor.look(at(1));
    let _ends = log_in(&tree, &listener);
    tree.write(&format!("{}/acls/iqn.i:1/info", group(IQN, 1)), NO_SESSION);
    surveyor.look(at(2));
    assert!(surveyor.survey().targets[0].sessions.iter().all(|session| session.addresses.is_empty()));
    tree.entry(IQN, "iqn.i:1", &["127.0.0.1"], &[(0, 0, 5)]);
    assert!(surveyor.look(at(3)));
    assert_eq!(surveyor.survey().targets[0].sessions[0].initiator, "iqn.i:1");
}

#[test]
fn a_counter_that_never_was_there_makes_nothing_be_read_again() {
    let (tree, listener) = tree();
    let _ends = log_in(&tree, &listener);
    tree.remove(&format!("{}/acls/iqn.i:1/lun_0/statistics", group(IQN, 1)));
    let mut surveyor = Surveyor::new(roots(&tree)).unwrap();
    for second in 0..3 {
        surveyor.look(at(second));
    }
    tree.write("sys/devices/block/dm-3/dm/name", "vg-b\n");
    surveyor.look(at(3));
    assert_eq!(surveyor.survey().devices[&DM].mapper.clone().unwrap().name, "vg-a");
    assert_eq!(surveyor.survey().targets[0].sessions[0].written, [].into());
}

#[test]
fn however_many_sessions_targets_list_no_more_are_kept_than_the_bound() {
    let tree = Tree::new();
    for target in ["a", "b"] {
        let iqn = format!("iqn.{target}");
        tree.group(&iqn, 1, &[], &[]);
        let names: String = (0..3000).map(|number| format!("iqn.i:{number}\0")).collect();
        tree.write(&format!("{}/dynamic_sessions", group(&iqn, 1)), names);
        tree.sessions(&iqn, 1_000_000);
    }
    let mut surveyor = Surveyor::new(roots(&tree)).unwrap();
    surveyor.look(at(0));
    let sessions: Vec<_> = surveyor.survey().targets.iter().map(|target| target.sessions.len()).collect();
    assert_eq!(sessions, [3001, 4096 - 3001]);
    assert_eq!(surveyor.remarks().len(), 1);
}
