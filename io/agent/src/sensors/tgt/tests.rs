//! tgtd behind a program of the test's, which takes the place of `tgtadm`.

use std::os::unix::net::UnixListener;
use std::process::Command;

use weir_throttle::Connection;

use super::super::tree::Tree;
use super::*;

const SHOWN: &str = "Target 1: iqn.2026-01.example:a
    System information:
        Driver: iscsi
    I_T nexus information:
        I_T nexus: 2
            Initiator: iqn.i:1 alias: none
            Connection: 0
                IP Address: 10.9.0.11
    LUN information:
        LUN: 1
            Backing store path: /dev/null
Target 2: iqn.2026-01.example:b
    System information:
        Driver: iser
";

const CONNECTIONS: &str = "Session: 2
    Connection: 0
        Initiator: iqn.i:1
        IP Address: 10.9.0.11
Session: 2
    Connection: 1
        Initiator: iqn.i:1
        IP Address: 10.9.0.12
";

/// A tree with a socket of tgtd, at which somebody listens as long as the listener is there.
fn tree(script: &str) -> (Tree, UnixListener) {
    let tree = Tree::new();
    tree.folder("run/tgtd");
    tree.write("run/tgtd/socket.0.lock", "");
    let listener = UnixListener::bind(tree.at("run/tgtd/socket.0")).unwrap();
    // Another process writes the script: if this one did, a child of another test could have it open.
    let path = tree.at("tgtadm");
    let write = "printf '#!/bin/sh\\n%s\\n' \"$1\" >\"$0\"; chmod +x \"$0\"";
    let written = Command::new("sh").args(["-c", write]).arg(&path).arg(script).status().unwrap();
    assert!(written.success());
    (tree, listener)
}

fn told(tree: &Tree) -> (Told, Vec<Remark>) {
    let mut reader = tree.reader();
    let (sys, proc, run, tgtadm) = (tree.sys(), tree.proc(), tree.at("run"), tree.at("tgtadm"));
    let told = found(Places { sys: &sys, proc: &proc, run: &run, tgtadm: &tgtadm }, &mut reader);
    (told, reader.take_remarks())
}

fn read(tree: &Tree) -> (Vec<Target>, Vec<Remark>) {
    let (told, remarks) = told(tree);
    (told.targets, remarks)
}

/// A script that answers as tgtadm does. Only target 1 is there.
fn answers_with(shown: &str, connections: &str) -> String {
    format!(
        "case \"$*\" in\n*'--control-port 0') ;; *) exit 9;; esac\ncase \"$*\" in\n\
         *'mode target'*) cat <<'X'\n{shown}X\n;;\n*'mode conn --tid 1 '*) cat <<'X'\n{connections}X\n;;\n\
         *'mode portal'*) echo 'Portal: 0.0.0.0:3260,1'; echo 'Portal: [::]:3260,1';;\n*) exit 22;;\nesac"
    )
}

fn answers() -> String {
    answers_with(SHOWN, CONNECTIONS)
}

fn addresses(texts: &[&str]) -> BTreeSet<IpAddr> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

/// A connection of `peer` at the portal of iSCSI.
fn connection(peer: &str) -> (Connection, u32) {
    (Connection { local: "10.9.0.1:3260".parse().unwrap(), peer: peer.parse().unwrap() }, 0)
}

#[test]
fn targets_of_tgtd_are_found() {
    let (tree, _listener) = tree(&answers());
    let (targets, remarks) = read(&tree);
    assert_eq!(remarks, []);
    let [a, b] = &targets[..] else { panic!("{targets:?}") };
    assert_eq!((a.framework, &*a.name), (Framework::Tgt, "iqn.2026-01.example:a"));
    assert_eq!(a.portals.len(), 2);
    assert_eq!(a.luns, [].into(), "a file that is no block device, and on none");
    assert_eq!((a.sessions.len(), &*a.sessions[0].initiator), (1, "iqn.i:1"));
    assert_eq!(a.sessions[0].addresses, addresses(&["10.9.0.11", "10.9.0.12"]));
    assert_eq!(a.out_of_reach, None);
    assert!(b.out_of_reach.as_ref().is_some_and(|why| why.starts_with("iser")));
}

#[test]
fn where_no_tgtd_runs_nothing_is_asked_and_nothing_is_odd() {
    assert_eq!(read(&Tree::new()), (vec![], vec![]));
    let (tree, listener) = tree("exit 107");
    drop(listener); // the socket stays where it was
    assert_eq!(read(&tree), (vec![], vec![]));
}

#[test]
fn a_tgtadm_that_fails_hangs_or_never_ends_its_answer_is_a_remark_within_its_time() {
    for (script, why) in [
        ("exit 1", "exit status: 1"),
        ("exec sleep 60", "within a second"),
        ("exec sleep 60 >&-", "within a second"),
        ("exec yes", "more than the 4 MiB"),
        ("printf '\\377'", "\u{fffd}"),
        ("echo hello", "hello"),
    ] {
        let (tree, _listener) = tree(script);
        let (targets, remarks) = read(&tree);
        assert_eq!((targets.len(), remarks.len()), (0, 1), "{script}");
        assert!(remarks[0].to_string().contains(why), "{script}: {}", remarks[0]);
    }
    let (tree, _listener) = tree("");
    tree.remove("tgtadm");
    assert!(read(&tree).1[0].to_string().contains("there is no program"));
}

#[test]
fn an_initiator_with_a_name_that_is_none_hides_no_target_and_is_known() {
    for name in ["i\\033\\377", &"z".repeat(3000)] {
        // printf writes the bytes.
        let shown = SHOWN.replace("iqn.i:1", "NAME").replace('\n', "\\n");
        let connections = CONNECTIONS.replace("iqn.i:1", "NAME").replace('\n', "\\n");
        let script = answers_with("SHOWN\n", "CONNECTIONS\n");
        let script =
            script.replace("cat <<'X'\nSHOWN\nX", &format!("printf '{}'", shown.replace("NAME", name)));
        let connections = format!("printf '{}'", connections.replace("NAME", name));
        let script = script.replace("cat <<'X'\nCONNECTIONS\nX", &connections);
        let (tree, _listener) = tree(&script);
        let (targets, remarks) = read(&tree);
        assert_eq!((targets.len(), remarks.len()), (2, 1), "{remarks:?}");
        assert_eq!(targets[0].sessions[0].addresses, addresses(&["10.9.0.11", "10.9.0.12"]));
        assert!(!remarks[0].to_string().contains(char::is_control), "{}", remarks[0]);
    }
}

#[test]
fn the_lines_of_an_alias_that_pass_for_a_target_are_the_target_befores() {
    let forged = "none\nTarget 9: iqn.x\n    System information:\n        Driver: iscsi";
    let (tree, _listener) = tree(&answers_with(&SHOWN.replace("none", forged), CONNECTIONS));
    let (targets, _) = read(&tree);
    let names: Vec<_> = targets.iter().map(|target| &*target.name).collect();
    assert_eq!(names, ["iqn.2026-01.example:a", "iqn.2026-01.example:b"]);
    assert_eq!(targets[0].sessions.len(), 1);
}

#[test]
fn an_address_of_which_more_connections_are_named_than_there_are_is_left_out() {
    let forged =
        "x\n        IP Address: 10.9.0.13\nSession: 9\n    Connection: 0\n        Initiator: iqn.i:2";
    let connections = CONNECTIONS.replacen("iqn.i:1", forged, 1);
    let (tree, _listener) = tree(&answers_with(SHOWN, &connections));
    let (mut told, remarks) = told(&tree);
    assert_eq!(remarks, [], "nothing is odd about the text");
    assert_eq!(told.named.values().copied().collect::<Vec<_>>(), [1, 1, 1]);
    let there = |peers: &[&str]| peers.iter().map(|peer| connection(peer)).collect::<Connections>();
    let of = |told: &Told| -> Vec<_> {
        told.targets[0].sessions.iter().map(|session| session.addresses.clone()).collect()
    };
    let before = of(&told);
    let mut reader = tree.reader();
    let all = ["10.9.0.11:40000", "10.9.0.12:40000", "10.9.0.13:40000"];
    leave_out_surplus(&mut told, &there(&all), &mut reader);
    assert_eq!((of(&told), reader.take_remarks()), (before, vec![]));
    // Two connections of one address are named, and one is there.
    *told.named.get_mut(&"10.9.0.13".parse().unwrap()).unwrap() = 2;
    leave_out_surplus(&mut told, &there(&all), &mut reader);
    let left = of(&told);
    assert!(left.iter().flatten().all(|address| address.to_string() != "10.9.0.13"));
    assert!(left.iter().all(|addresses| !addresses.is_empty()));
    let remarks = reader.take_remarks();
    assert!(remarks[0].to_string().contains("names 2 connections of 10.9.0.13, and the kernel has 1"));
}
