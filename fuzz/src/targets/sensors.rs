//! What kernels and daemons say about iSCSI targets and block devices, with what initiators call themselves
//! in it: all parsers of the packet-delay agent's sensors read the same text.

use std::path::Path;

use weir_agent::sensors::text::{MOST_NAME_BYTES, Unfit, address, block, lio, mounts, name, tcp, tgt};

use super::Target;
use crate::script::Script;
use crate::seen::Seen;

pub(super) const TARGET: Target = Target {
    name: "sensors",
    run,
    seeds,
    words: &[
        b"InitiatorName: ",
        b"[iSCSI Connections]",
        b"   Address ",
        b" TCP ",
        b"Major: 8 Minor: 0",
        b"File: /",
        b"  Size: ",
        b"\0",
        b"Target 1: ",
        b"    I_T nexus information:\n",
        b"        I_T nexus: 1\n",
        b"            Initiator: ",
        b" alias: ",
        b"Session: 1\n",
        b"        Initiator: i\n",
        b"        IP Address: ",
        b"    LUN information:\n",
        b"        LUN: 1\n",
        b"Portal: ",
        b"[::]:3260",
        b"%eth0",
        b"::ffff:10.0.0.1",
        b"18446744073709551616",
        b" - ",
        b"\\040",
        b"Tcp: ActiveOpens ",
        b"PassiveOpens ",
        b"CurrEstab",
    ],
    must_reach: &[
        "no session",
        "session",
        "no info",
        "dynamic",
        "iblock",
        "fileio",
        "tgt",
        "tgt session",
        "tgt lun",
        "no tgt",
        "portals",
        "portal",
        "number",
        "counters",
        "totals",
        "in flight",
        "mount",
        "tcp",
    ],
};

/// The most characters of an odd text that a remark repeats.
const MOST_TOLD: usize = 60;

fn seeds() -> Vec<Script> {
    [
        "No active iSCSI Session for Initiator Endpoint: iqn.i:1\n",
        "InitiatorName: iqn.i:1\nInitiatorAlias: one\nLIO Session ID: 3   ISID: 0x80 12  TSIH: 3  SessionType: \
         Normal\nSession State: TARG_SESS_STATE_LOGGED_IN\n---[iSCSI Session Values]---\n 0x40   0x40\n\
         ---[iSCSI Connections]---\nCID: 0  Connection State: TARG_CONN_STATE_LOGGED_IN\n   Address 10.9.0.11 TCP  \
         StatSN: 0x1\n   Address fd00::2 TCP  StatSN: 0x2\n",
        "iqn.i:1\0iqn.i:2\0",
        "Status: ACTIVATED\n        iBlock device: dm-3  UDEV PATH: /dev/vg/a\n        Major: 253 Minor: 3  CLAIMED\n",
        "TCM FILEIO ID: 0        File: /srv/a.img  Size: 1048576  Mode: O_DSYNC\n",
        "Target 1: iqn.t:a\n    System information:\n        Driver: iscsi\n        State: ready\n    I_T nexus \
         information:\n        I_T nexus: 2\n            Initiator: iqn.i:1 alias: none\n            Connection: 0\n\
         \u{20}               IP Address: 10.9.0.11\n    LUN information:\n        LUN: 1\n            Backing store \
         path: /dev/vg/a\n    ACL information:\n        ALL\n",
        "Session: 2\n    Connection: 0\n        Initiator: iqn.i:1\n        IP Address: 10.9.0.11\n",
        "Portal: 0.0.0.0:3260,1\nPortal: [::]:3260,1\n",
        "10.9.0.1:3260",
        "253:3\n",
        "  446  216  21952  252  71  50  968  26  3  256  279  0  0  0  0  0  0\n",
        "       7        9\n",
        "36 35 0:33 /@ /srv rw,noatime shared:1 - btrfs /dev/sda2 rw\n",
        "Ip: Forwarding\nIp: 1\nTcp: ActiveOpens PassiveOpens CurrEstab\nTcp: 12 7 3\n",
    ]
    .into_iter()
    .map(Script::of_lines)
    .collect()
}

fn run(script: &Script, seen: &mut Seen) {
    let joined = script.joined();
    let text = String::from_utf8_lossy(&joined);
    script.pieces.iter().for_each(|_| seen.message());
    of_lio(&joined, &text, seen);
    of_tgt(&text, seen);
    if told(address::portal(&text)).is_some_and(|portal| portal.port() > 0) {
        seen.reach("portal");
    }
    if told(block::number(&text)).is_some() {
        seen.reach("number");
    }
    if told(block::stat(&text)).is_some() {
        seen.reach("counters");
    }
    if told(block::totals(&text)).is_some() {
        seen.reach("totals");
    }
    if told(block::reads_in_flight(&text)).is_some() {
        seen.reach("in flight");
    }
    if mounts::mounted_at(Path::new("/srv/a.img"), &text).is_some() {
        seen.reach("mount");
    }
    if told(tcp::openings(&text)).is_some() {
        seen.reach("tcp");
    }
}

fn of_lio(bytes: &[u8], text: &str, seen: &mut Seen) {
    match told(lio::session(text)) {
        Some(None) => seen.reach("no session"),
        Some(Some(addresses)) => {
            assert!(addresses.len() <= text.matches("Address").count());
            seen.reach("session");
        }
        None => seen.reach("no info"),
    }
    let (names, unfit) = lio::dynamic_sessions(bytes);
    names.iter().for_each(|text| assert_eq!(name(text).as_ref(), Ok(text)));
    if names.len() > 1 && unfit.is_none() {
        seen.reach("dynamic");
    }
    if told(lio::iblock(text)).flatten().is_some() {
        seen.reach("iblock");
    }
    if lio::fileio(text).is_some() {
        seen.reach("fileio");
    }
}

fn of_tgt(text: &str, seen: &mut Seen) {
    if told(tgt::portals(text)).is_some_and(|portals| !portals.is_empty()) {
        seen.reach("portals");
    }
    let connections = tgt::connections(text);
    connections.read.iter().for_each(|of| assert_eq!(name(&of.initiator).as_ref(), Ok(&of.initiator)));
    if !connections.read.is_empty() {
        seen.reach("tgt session");
    }
    let targets = tgt::targets(text);
    targets.unfit.iter().chain(&connections.unfit).for_each(bounded);
    if targets.read.is_empty() {
        seen.reach("no tgt");
    }
    for target in &targets.read {
        seen.reach("tgt");
        assert!((1..=MOST_NAME_BYTES).contains(&target.name.len()));
        if !target.luns.is_empty() {
            seen.reach("tgt lun");
        }
    }
}

/// The result. What an error repeats is bounded.
fn told<T>(result: Result<T, Unfit>) -> Option<T> {
    if let Err(unfit) = &result {
        bounded(unfit);
    }
    result.ok()
}

fn bounded(unfit: &Unfit) {
    assert!(unfit.found.chars().count() <= MOST_TOLD, "{unfit}");
}
