//! LIO's configfs as a tree of files, whole, odd and half removed.

use std::net::SocketAddr;

use super::super::reading::Remark;
use super::super::tree::{Tree, group};
use super::super::written::Counters;
use super::*;

const IQN: &str = "iqn.2026-01.example:a";
const NULLB: DeviceNumber = DeviceNumber { major: 252, minor: 0 };
const DM: DeviceNumber = DeviceNumber { major: 253, minor: 3 };

/// A target with two LUNs, one initiator that is logged in and one that is not.
fn whole_tree() -> Tree {
    let tree = Tree::new();
    tree.iblock("nullb0", NULLB);
    tree.iblock("vol", DM);
    tree.group(IQN, 1, &["10.9.0.1:3260", "[fd00::1]:3260"], &[(0, "nullb0"), (7, "vol")]);
    tree.entry(IQN, "iqn.i:1", &["10.9.0.11"], &[(0, 7, 3), (1, 0, 0)]);
    tree.entry(IQN, "iqn.i:2", &[], &[(0, 0, 5)]);
    tree.sessions(IQN, 1);
    tree
}

fn read(tree: &Tree) -> (Vec<Target>, Vec<Remark>) {
    let mut reader = tree.reader();
    let mut found = found(&tree.sys(), &tree.proc(), &mut reader);
    Counters::new(found.counters).read(&mut found.targets);
    (found.targets, reader.take_remarks())
}

/// The targets of a tree in which nothing is odd.
fn targets(tree: &Tree) -> Vec<Target> {
    let (targets, remarks) = read(tree);
    assert_eq!(remarks, []);
    targets
}

fn session(initiator: &str, addresses: &[&str], written: &[(u64, u64)]) -> Session {
    Session {
        initiator: initiator.to_owned(),
        addresses: addresses.iter().map(|text| text.parse().unwrap()).collect(),
        written: written.iter().copied().collect(),
    }
}

#[test]
fn a_target_is_found_with_its_portals_luns_and_sessions() {
    let portals = ["10.9.0.1:3260", "[fd00::1]:3260"].map(|text| text.parse::<SocketAddr>().unwrap());
    let target = Target {
        framework: Framework::Lio,
        name: IQN.to_owned(),
        portals: portals.into(),
        luns: [(0, NULLB), (7, DM)].into(),
        sessions: vec![session("iqn.i:1", &["10.9.0.11"], &[(7, 3 << 20), (0, 0)])],
        out_of_reach: None,
    };
    assert_eq!(targets(&whole_tree()), [target]);
}

#[test]
fn nothing_is_found_where_there_is_no_target() {
    assert_eq!(targets(&Tree::new()), []);
    let tree = whole_tree();
    tree.write(&format!("{}/enable", group(IQN, 1)), "0\n");
    assert_eq!(targets(&tree), []);
}

#[test]
fn several_groups_of_an_iqn_are_told_apart_by_their_tags() {
    let tree = whole_tree();
    tree.group(IQN, 2, &["10.9.0.2:3260"], &[(0, "vol")]);
    let names: Vec<_> = targets(&tree).into_iter().map(|target| target.name).collect();
    assert_eq!(names, [format!("{IQN},1"), format!("{IQN},2")]);
}

#[test]
fn sessions_without_an_entry_have_a_name_and_no_address() {
    let tree = whole_tree();
    tree.write(&format!("{}/dynamic_sessions", group(IQN, 1)), "iqn.i:3\0iqn.i:4\0");
    tree.sessions(IQN, 3);
    let [target] = &targets(&tree)[..] else { panic!() };
    assert_eq!(target.sessions[1..], [session("iqn.i:3", &[], &[]), session("iqn.i:4", &[], &[])]);
}

#[test]
fn a_name_that_is_no_text_hides_no_other_session() {
    let tree = whole_tree();
    tree.write(&format!("{}/dynamic_sessions", group(IQN, 1)), b"iqn.i:3\0iqn.\xff\0iqn.i:4\0");
    tree.sessions(IQN, 4);
    let (targets, remarks) = read(&tree);
    let names: Vec<_> = targets[0].sessions.iter().map(|session| &*session.initiator).collect();
    assert_eq!(names, ["iqn.i:1", "iqn.i:3", "iqn.\\xff", "iqn.i:4"]);
    assert_eq!(remarks.len(), 1, "{remarks:?}");
}

#[test]
fn an_alias_that_is_no_text_hides_no_address() {
    let tree = whole_tree();
    let path = format!("{}/acls/iqn.i:1/info", group(IQN, 1));
    let info = std::fs::read_to_string(tree.at(&path)).unwrap();
    let (head, rest) = info.split_once('\n').unwrap();
    tree.write(&path, [head.as_bytes(), b"\nInitiatorAlias: \xff\n", rest.as_bytes()].concat());
    assert_eq!(targets(&tree), targets(&whole_tree()));
}

#[test]
fn a_second_session_of_the_only_initiator_is_its_own() {
    let tree = whole_tree();
    tree.sessions(IQN, 2);
    let [target] = &targets(&tree)[..] else { panic!() };
    let written = [(7, 3 << 20), (0, 0)];
    let expected = [session("iqn.i:1", &["10.9.0.11"], &written), session("iqn.i:1", &[], &written)];
    assert_eq!(target.sessions, expected);
}

#[test]
fn a_session_that_is_not_listed_could_be_anybodys_of_several() {
    let tree = whole_tree();
    tree.entry(IQN, "iqn.i:2", &["10.9.0.12"], &[(0, 0, 5)]);
    tree.sessions(IQN, 3);
    let [target] = &targets(&tree)[..] else { panic!() };
    assert_eq!(target.sessions[2], session("", &[], &[]));
    tree.sessions(IQN, 2);
    assert_eq!(targets(&tree)[0].sessions.len(), 2);
}

#[test]
fn a_target_with_a_portal_of_iser_is_out_of_reach() {
    let tree = whole_tree();
    tree.write(&format!("{}/np/10.9.0.1:3260/iser", group(IQN, 1)), "1\n");
    let why = targets(&tree).remove(0).out_of_reach.unwrap();
    assert!(why.starts_with("iSER"), "{why}");
}

#[test]
fn a_file_as_backstore_is_on_the_device_of_its_file_system() {
    use std::os::unix::fs::MetadataExt;
    let tree = whole_tree();
    tree.write("disk  image", "");
    let device = std::fs::metadata(tree.at("disk  image")).unwrap().dev();
    let number = DeviceNumber { major: rustix::fs::major(device), minor: rustix::fs::minor(device) };
    let info = format!(
        "TCM FILEIO ID: 0        File: {}  Size: 1  Mode: O_DSYNC\n",
        tree.at("disk  image").display()
    );
    tree.write("sys/kernel/config/target/core/fileio_1/f/info", info);
    let core = "../../../../../../target/core";
    tree.link(&format!("{}/lun/lun_9/f", group(IQN, 1)), format!("{core}/fileio_1/f"));
    tree.write("sys/kernel/config/target/core/rd_mcp_1/ram/info", "RAMDISK\n");
    tree.link(&format!("{}/lun/lun_8/ram", group(IQN, 1)), format!("{core}/rd_mcp_1/ram"));
    tree.write("proc/self/mountinfo", "1 0 0:9 / / rw - tmpfs tmpfs rw\n");
    assert_eq!(targets(&tree)[0].luns, [(0, NULLB), (7, DM)].into(), "a file system without a device");
    tree.folder(&format!("sys/dev/block/{}:{}", number.major, number.minor));
    assert_eq!(targets(&tree)[0].luns, [(0, NULLB), (7, DM), (9, number)].into());
}

#[test]
fn what_is_odd_is_left_out_and_told_and_the_rest_is_found() {
    let tree = whole_tree();
    let group = group(IQN, 1);
    tree.write(&format!("{group}/np/anywhere/iser"), "0\n");
    tree.write("sys/kernel/config/target/core/iblock_0/nullb0/info", "Major: x Minor: y\n");
    tree.write(&format!("{group}/acls/iqn.i:2/info"), [0xff; 40]);
    tree.write(&format!("{group}/acls/iqn.i:9/info"), "hello\n");
    tree.write(&format!("{group}/dynamic_sessions"), "iqn.i:3\0a\nb\0");
    tree.write(&format!("{group}/acls/iqn.i:1/lun_1/statistics/scsi_auth_intr/write_mbytes"), "many\n");
    tree.folder(&format!("{group}/lun/lun_x"));
    tree.folder("sys/kernel/config/target/iscsi/discovery_auth");
    let (targets, remarks) = read(&tree);
    let [target] = &targets[..] else { panic!("{targets:?}") };
    assert_eq!(target.portals.len(), 2);
    assert_eq!(target.luns, [(7, DM)].into());
    let known = session("iqn.i:1", &["10.9.0.11"], &[(7, 3 << 20)]);
    assert_eq!(target.sessions, [known, session("iqn.i:3", &[], &[]), session("a\\nb", &[], &[])]);
    let told: Vec<_> = remarks.iter().map(ToString::to_string).collect();
    for path in ["np/anywhere", "iblock_0/nullb0/info", "iqn.i:2/info", "iqn.i:9/info", "dynamic_sessions"] {
        assert!(told.iter().any(|line| line.contains(path)), "{path}: {told:?}");
    }
    assert_eq!(told.len(), 5);
}

/// Each file and folder of a target is taken away, one after the other, as an administrator or the kernel
/// would.
#[test]
fn a_target_that_is_half_removed_is_read_without_a_remark() {
    let parts = [
        "enable",
        "np",
        "np/10.9.0.1:3260",
        "np/10.9.0.1:3260/iser",
        "lun",
        "lun/lun_0",
        "lun/lun_0/nullb0",
        "acls",
        "acls/iqn.i:1",
        "acls/iqn.i:1/info",
        "acls/iqn.i:1/lun_0",
        "acls/iqn.i:1/lun_0/default",
        "acls/iqn.i:1/lun_0/statistics",
        "dynamic_sessions",
        "",
        "../fabric_statistics",
        "..",
        "../../../core/iblock_0/nullb0",
        "../../../core/iblock_0/nullb0/info",
        "../../../core",
    ];
    for part in parts {
        let tree = whole_tree();
        tree.remove(&format!("{}/{part}", group(IQN, 1)));
        let whole = targets(&whole_tree());
        let left = targets(&tree);
        assert!(left.len() <= 1, "{part}");
        if !["dynamic_sessions", "../fabric_statistics", "np/10.9.0.1:3260/iser"].contains(&part) {
            assert_ne!(left, whole, "{part}");
        }
    }
}

#[test]
fn whoever_comes_changes_the_attendance_and_whatever_is_added_the_outline() {
    let tree = whole_tree();
    let seen = |tree: &Tree| outline(&tree.sys(), &mut tree.reader());
    let before = (attendance(&tree.sys(), &mut tree.reader()), seen(&tree));
    assert_eq!((attendance(&tree.sys(), &mut tree.reader()), seen(&tree)), before);
    tree.sessions(IQN, 0);
    assert_ne!(attendance(&tree.sys(), &mut tree.reader()), before.0);
    tree.folder(&format!("{}/lun/lun_8", group(IQN, 1)));
    let lun = seen(&tree);
    assert_ne!(lun, before.1);
    tree.folder(&format!("{}/np/10.9.0.3:3260", group(IQN, 1)));
    let portal = seen(&tree);
    assert_ne!(portal, lun);
    tree.write(&format!("{}/enable", group(IQN, 1)), "0\n");
    assert_ne!(seen(&tree), portal);
}
