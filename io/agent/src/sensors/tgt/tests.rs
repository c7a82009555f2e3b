//! tgtd behind a program of the test's, which takes the place of `tgtadm`.

use std::os::unix::net::UnixListener;
use std::process::Command;

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

fn read(tree: &Tree) -> (Vec<Target>, Vec<Remark>) {
    let mut reader = tree.reader();
    let (sys, proc, run, tgtadm) = (tree.sys(), tree.proc(), tree.at("run"), tree.at("tgtadm"));
    let found = found(Places { sys: &sys, proc: &proc, run: &run, tgtadm: &tgtadm }, &mut reader);
    (found, reader.take_remarks())
}

/// A script that answers as tgtadm does.
fn answers() -> String {
    format!(
        "case \"$*\" in\n*'--control-port 0') ;; *) exit 9;; esac\ncase \"$*\" in\n*'mode target'*) cat <<'X'\n{SHOWN}X\n;;\n\
         *'mode portal'*) echo 'Portal: 0.0.0.0:3260,1'; echo 'Portal: [::]:3260,1';;\nesac"
    )
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
    assert_eq!(a.sessions[0].initiator, "iqn.i:1");
    assert_eq!(a.sessions[0].addresses, ["10.9.0.11".parse().unwrap()].into());
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
        ("exec yes", "longer answer"),
        ("printf '\\377'", "other bytes"),
        ("echo hello", "hello"),
    ] {
        let (tree, _listener) = tree(script);
        let (targets, remarks) = read(&tree);
        assert_eq!((targets.len(), remarks.len()), (0, 1), "{script}");
        assert!(remarks[0].to_string().contains(why), "{script}: {}", remarks[0]);
    }
    let (tree, _listener) = tree("");
    tree.remove("tgtadm");
    assert!(read(&tree).1[0].to_string().contains("cannot be run"));
}
