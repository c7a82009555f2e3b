//! SCST's sysfs as a tree of files, by the example at the end of iscsi-scst/README.

use std::ffi::OsStr;

use super::super::reading::Remark;
use super::super::tree::Tree;
use super::super::written::Counters;
use super::*;

const IQN: &str = "iqn.2006-10.net.vlnb:tgt1";

/// The folder of the target.
fn at(path: &str) -> String {
    format!("sys/{TARGETS}/{IQN}/{path}")
}

/// The number of the device on which the tree is.
fn own_device(tree: &Tree) -> DeviceNumber {
    use std::os::unix::fs::MetadataExt;
    let device = std::fs::metadata(tree.sys()).unwrap().dev();
    DeviceNumber { major: rustix::fs::major(device), minor: rustix::fs::minor(device) }
}

/// A target with LUNs of its own, a group, and a session in each.
fn whole_tree() -> Tree {
    let tree = Tree::new();
    tree.write("image", "");
    for device in ["disk2", "blockio"] {
        let file = tree.at("image");
        tree.write(
            &format!("sys/kernel/scst_tgt/devices/{device}/filename"),
            format!("{}\n[key]\n", file.display()),
        );
    }
    tree.folder("sys/kernel/scst_tgt/devices/nullio");
    tree.write(&format!("sys/{TARGETS}/enabled"), "1\n[key]\n");
    tree.write(&at("enabled"), "1\n[key]\n");
    tree.write(&at("luns/mgmt"), "");
    tree.write(&at("ini_groups/mgmt"), "");
    let devices = tree.at("sys/kernel/scst_tgt/devices");
    for (lun, device) in
        [("luns/0", "disk2"), ("luns/26", "nullio"), ("ini_groups/special_ini/luns/0", "blockio")]
    {
        tree.link(&at(&format!("{lun}/device")), devices.join(device));
    }
    for (initiator, ip, luns, kib) in [
        ("iqn.i:1", "10.170.75.2", "../../ini_groups/special_ini/luns", "77"),
        ("iqn.i:2", "[fd00::2]", "../../luns", "88"),
    ] {
        let session = at(&format!("sessions/{initiator}"));
        tree.write(&format!("{session}/initiator_name"), format!("{initiator}\n"));
        tree.write(&format!("{session}/write_io_count_kb"), format!("{kib}\n"));
        tree.write(&format!("{session}/{}/ip", ip.trim_matches(['[', ']'])), ip);
        tree.write(&format!("{session}/{}/transport", ip.trim_matches(['[', ']'])), "iSCSI-TCP\n");
        tree.link(&format!("{session}/luns"), luns);
    }
    let DeviceNumber { major, minor } = own_device(&tree);
    tree.folder(&format!("sys/dev/block/{major}:{minor}"));
    tree
}

fn read(tree: &Tree) -> (Vec<Target>, Vec<Remark>) {
    let mut reader = tree.reader();
    let mut found = found(&tree.sys(), &tree.proc(), &mut reader);
    Counters::new(found.counters).read(&mut found.targets);
    (found.targets, reader.take_remarks())
}

#[test]
fn each_set_of_luns_is_a_target_with_the_sessions_that_are_served_it() {
    let tree = whole_tree();
    let (targets, remarks) = read(&tree);
    assert_eq!(remarks, []);
    let [own, group] = &targets[..] else { panic!("{targets:?}") };
    assert_eq!((&*own.name, group.name.clone()), (IQN, format!("{IQN},special_ini")));
    assert_eq!(own.luns, [(0, own_device(&tree))].into(), "nullio has no device");
    assert_eq!(group.luns, [(0, own_device(&tree))].into());
    let session = |target: &Target| target.sessions[0].clone();
    assert_eq!(session(own).initiator, "iqn.i:2");
    assert_eq!(session(own).addresses, ["fd00::2".parse().unwrap()].into());
    assert_eq!(session(own).written, BTreeMap::new(), "it has two LUNs");
    assert_eq!(session(group).addresses, ["10.170.75.2".parse().unwrap()].into());
    assert_eq!(session(group).written, [(0, 77 << 10)].into());
    assert_eq!((own.portals.len(), &own.out_of_reach), (2, &None));
}

#[test]
fn an_initiator_with_a_name_that_is_no_text_is_known() {
    let tree = whole_tree();
    let before = outline(&tree.sys(), &mut tree.reader());
    let odd = OsStr::from_bytes(b"iqn.\xff");
    std::fs::rename(tree.at(&at("sessions/iqn.i:2")), tree.at(&at("sessions")).join(odd)).unwrap();
    let name = tree.at(&at("sessions")).join(odd).join("initiator_name");
    std::fs::write(name, b"iqn.\xff\n").unwrap();
    let (targets, remarks) = read(&tree);
    let session = &targets[0].sessions[0];
    assert_eq!((&*session.initiator, session.addresses.len()), ("iqn.\\xff", 1));
    assert_eq!(remarks.len(), 1, "{remarks:?}");
    assert_ne!(outline(&tree.sys(), &mut tree.reader()), before);
}

#[test]
fn what_is_off_or_of_iser_is_known() {
    let tree = whole_tree();
    tree.write(&at("sessions/iqn.i:1/10.170.75.2/transport"), "iSER\n");
    let (targets, _) = read(&tree);
    assert!(targets[0].out_of_reach.is_none() && targets[1].out_of_reach.is_some());
    tree.write(&at("enabled"), "0\n");
    assert_eq!(read(&tree), (vec![], vec![]));
}

#[test]
fn odd_content_is_told_and_half_removed_targets_are_read() {
    let tree = whole_tree();
    tree.write(&at("sessions/iqn.i:1/10.170.75.2/ip"), "Unknown family 9");
    tree.write(&at("sessions/iqn.i:2/initiator_name"), "\n");
    let (targets, remarks) = read(&tree);
    let [own, group] = &targets[..] else { panic!("{targets:?}") };
    assert_eq!((&*own.sessions[0].initiator, group.sessions.len()), ("(no name)", 0));
    assert_eq!(remarks.len(), 2, "{remarks:?}");
    let parts = [
        "enabled",
        "luns",
        "luns/0",
        "luns/0/device",
        "ini_groups",
        "ini_groups/special_ini",
        "sessions",
        "sessions/iqn.i:1",
        "sessions/iqn.i:1/initiator_name",
        "sessions/iqn.i:1/10.170.75.2/ip",
        "sessions/iqn.i:1/luns",
        "sessions/iqn.i:1/write_io_count_kb",
        "",
    ];
    for part in parts {
        let tree = whole_tree();
        let before = outline(&tree.sys(), &mut tree.reader());
        tree.remove(&at(part));
        assert_eq!(read(&tree).1, [], "{part}");
        if ["luns", "luns/0", "ini_groups", "sessions", "sessions/iqn.i:1", ""].contains(&part) {
            assert_ne!(outline(&tree.sys(), &mut tree.reader()), before, "{part}");
        }
    }
}
