//! Answers of a real tgtd 1.0.85, to ordinary initiators and to those that write lines of their own.

use super::*;

const SHOWN: &str = "Target 1: iqn.2026-01.example:a
    System information:
        Driver: iscsi
        State: ready
    I_T nexus information:
        I_T nexus: 2
            Initiator: iqn.2026-01.example:i1 alias: host one
            Connection: 0
                IP Address: 10.9.0.11
    LUN information:
        LUN: 0
            Type: controller
            SCSI ID: IET     00010000
            Size: 0 MB, Block size: 1
            Backing store type: null
            Backing store path: None
            Backing store flags: 
        LUN: 1
            Type: disk
            Backing store type: rdwr
            Backing store path: /dev/vg/a
            Backing store flags: 
    Account information:
    ACL information:
        ALL
Target 2: iqn.2026-01.example:b
    System information:
        Driver: iser
        State: ready
    I_T nexus information:
    LUN information:
    Account information:
    ACL information:
";

const CONNECTIONS: &str = "Session: 2
    Connection: 0
        Initiator: iqn.i:2
        IP Address: fd00::2
Session: 2
    Connection: 1
        Initiator: iqn.i:2
        IP Address: 10.9.0.12
Session: 1
    Connection: 0
        Initiator: iqn.i:1
        IP Address: 10.9.0.11
";

/// The sessions, as text.
fn said(text: &str) -> (Vec<String>, usize) {
    let Answer { read, unfit } = connections(text);
    let said = read.iter().map(|of| format!("{} {} {}", of.session, of.initiator, of.address));
    (said.collect(), unfit.len())
}

fn lun_1(path: &str) -> BTreeMap<u64, String> {
    BTreeMap::from([(1, path.to_owned())])
}

#[test]
fn targets_and_paths_are_read() {
    let Answer { read, unfit } = targets(SHOWN);
    let [a, b] = &read[..] else { panic!("{read:?}") };
    assert_eq!((a.number, &*a.name, &*a.driver), (1, "iqn.2026-01.example:a", "iscsi"));
    assert_eq!((a.has_sessions, &a.luns), (true, &lun_1("/dev/vg/a")));
    assert_eq!((b.number, &*b.driver, b.has_sessions, b.luns.len()), (2, "iser", false, 0));
    assert_eq!((unfit.len(), targets("")), (0, Answer::new()));
}

#[test]
fn connections_are_read() {
    let expected = ["2 iqn.i:2 fd00::2", "2 iqn.i:2 10.9.0.12", "1 iqn.i:1 10.9.0.11"];
    assert_eq!(said(CONNECTIONS), (expected.map(str::to_owned).into(), 0));
    assert_eq!(said(""), (vec![], 0));
}

#[test]
fn portals_are_read() {
    let shown = portals("Portal: 0.0.0.0:3260,1\nPortal: [::]:3260,1\n").unwrap();
    assert_eq!(shown, ["0.0.0.0:3260", "[::]:3260"].map(|at| at.parse().unwrap()).into());
    assert_eq!(portals(""), Ok(BTreeSet::new()));
    for text in ["hello", "Portal: ", "Portal: 1.2.3.4,1", "Portal: x:3260,1"] {
        assert!(portals(text).is_err(), "{text}");
    }
}

#[test]
fn a_line_that_does_not_fit_costs_no_more_than_itself() {
    for text in ["hello", "    System information:", "Target x: y", "Target 1", "Target 1: "] {
        let Answer { read, unfit } = targets(text);
        assert_eq!((read.len(), unfit.len()), (0, 1), "{text}");
    }
    let Answer { read, unfit } = targets(&SHOWN.replace("LUN: 0", "LUN: none"));
    assert_eq!((read.len(), &read[0].luns, unfit.len()), (2, &lun_1("/dev/vg/a"), 1));
    let (read, unfit) = said(&CONNECTIONS.replace("10.9.0.12", "everywhere"));
    assert_eq!((read.len(), unfit), (2, 1));
    let (read, unfit) = said(&CONNECTIONS.replace("Session: 1", "Session: one"));
    assert_eq!((read.len(), unfit), (2, 4), "its session is not known");
    assert_eq!(targets(&"x\n".repeat(99)).unfit.len(), 1);
    assert_eq!(connections(&"x\n".repeat(99)).unfit.len(), MOST_UNFIT);
}

#[test]
fn a_name_that_is_none_is_escaped_and_its_session_known() {
    for (odd, shown) in [("i\u{1b}[31m", "i\\u{1b}[31m"), ("", "(no name)"), ("i\u{fffd}", "i\u{fffd}")] {
        let (read, unfit) = said(&CONNECTIONS.replace("iqn.i:1", odd));
        assert_eq!((&*read[2], read.len()), (&*format!("1 {shown} 10.9.0.11"), 3));
        assert_eq!(unfit, usize::from(odd != "i\u{fffd}"), "{odd:?}");
    }
    let answer = connections(&CONNECTIONS.replace("iqn.i:1", &"\u{7f}z".repeat(2000)));
    assert!(answer.read.iter().all(|connection| name(&connection.initiator).is_ok()));
    assert_eq!((answer.read.len(), answer.unfit.len()), (3, 1));
}

#[test]
fn an_alias_changes_no_lun_whether_it_is_cut_off_or_has_lines_of_its_own() {
    let luns = "    LUN information:";
    let cut_off =
        SHOWN.replace("host one\n            Connection: 0\n                IP Address: 10.9.0.11\n", "aaa");
    assert!(cut_off.contains(&format!("alias: aaa{luns}")), "as tgtd writes it");
    let list = format!("x\n{luns}\n        LUN: 1\n            Backing store path: /dev/other");
    let target = format!("{list}\nTarget 1: x\n    System information:\n        Driver: iser");
    for text in [cut_off, SHOWN.replace("host one", &list), SHOWN.replace("host one", &target)] {
        let Answer { read, .. } = targets(&text);
        assert_eq!(read.len(), 2, "{text}");
        assert_eq!((read[0].number, read[1].number, &read[0].luns), (1, 2, &lun_1("/dev/vg/a")), "{text}");
        assert_eq!(read[0].driver, "iscsi", "{text}");
    }
}

#[test]
fn of_a_name_with_lines_of_its_own_the_last_address_counts() {
    let (read, unfit) = said(&CONNECTIONS.replace("iqn.i:1", "x\n        IP Address: 10.9.0.99"));
    assert_eq!((&*read[2], read.len(), unfit), ("1 x 10.9.0.11", 3, 0));
    let (read, unfit) = said(&CONNECTIONS.replace("iqn.i:1", "x\nodd"));
    assert_eq!((&*read[2], read.len(), unfit), ("1 x 10.9.0.11", 3, 1));
}
