//! SCST's targets, by sysfs: `/sys/kernel/scst_tgt/targets/iscsi`.
//!
//! Source: the READMEs and the sources of SCST 3 (scst/README, iscsi-scst/README, `iscsi_conn_ip_show`,
//! `scst_sess_sysfs_*`). **This file is tested on trees of files only**, which were made from these sources:
//! SCST is no part of Linux, and no distribution's kernel has it.
//!
//! An initiator is served the LUNs of its group (`ini_groups`), or the target's own if it is in none. Two
//! groups may have different devices as LUN 0, so each set of LUNs is a [`Target`] of its own here.
//!
//! sysfs does not tell on which addresses `iscsi-scstd` listens. The target is said to listen on the port of
//! iSCSI, 3260, at all addresses, as the daemon does unless it is told otherwise. A session counts what it
//! has written in sum. So its LUN has a counter only if it has a single LUN.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use weir_throttle::{DeviceNumber, Framework, Session, Target};

use super::backing::device_of;
use super::reading::Reader;
use super::text::{address, called};
use super::written::{Counter, Found, MOST_SESSIONS};

/// Where SCST's iSCSI targets are, below `/sys`.
const TARGETS: &str = "kernel/scst_tgt/targets/iscsi";

/// The port of iSCSI (RFC 7143, section 4.2.7.1).
const PORT: u16 = 3260;

/// What `write_io_count_kb` counts: KiB.
const KIBIBYTES: u32 = 10;

/// What can be seen at little cost of the targets and of who comes and goes.
pub(super) fn outline(sys: &Path, reader: &mut Reader) -> Vec<String> {
    let mut outline = Vec::new();
    for (name, target) in targets(sys, reader) {
        outline.push(name);
        outline.extend(shown(reader.entries(&target.join("sessions"))));
        for (name, luns) in lun_sets(&target, reader) {
            outline.push(name);
            outline.extend(reader.names(&luns));
        }
    }
    outline
}

/// All enabled targets, once for each set of LUNs.
pub(super) fn found(sys: &Path, proc: &Path, reader: &mut Reader) -> Found {
    let mut found = Found::default();
    for (iqn, folder) in targets(sys, reader) {
        if !reader.is_set(&folder.join("enabled")) {
            continue;
        }
        let mut sessions = sessions(&folder, reader);
        for (group, luns) in lun_sets(&folder, reader) {
            let mut target = Target {
                framework: Framework::Scst,
                name: if group.is_empty() { iqn.clone() } else { format!("{iqn},{group}") },
                portals: portals(),
                luns: devices(sys, proc, &luns, reader),
                sessions: Vec::new(),
                out_of_reach: None,
            };
            let lun_count = reader.numbered(&luns, "").len();
            let only = target.luns.keys().next().copied().filter(|_| lun_count == 1);
            for session in sessions.remove(&group).unwrap_or_default() {
                let place = (found.targets.len(), target.sessions.len());
                found.counters.extend(only.map(|lun| Counter {
                    target: place.0,
                    session: place.1,
                    lun,
                    path: session.folder.join("write_io_count_kb"),
                    unit: KIBIBYTES,
                }));
                if session.is_iser {
                    target.out_of_reach = Some("iSER: its packets pass no queue of this host".to_owned());
                }
                let (initiator, addresses) = (session.initiator, session.addresses);
                target.sessions.push(Session { initiator, addresses, written: BTreeMap::new() });
            }
            found.targets.push(target);
        }
    }
    found
}

/// Names of folders, to compare: a session's is what the initiator calls itself, so it may be no text.
fn shown(entries: Vec<OsString>) -> impl Iterator<Item = String> {
    entries.into_iter().map(|entry| called(entry.as_bytes()).0)
}

fn targets(sys: &Path, reader: &mut Reader) -> Vec<(String, PathBuf)> {
    let root = sys.join(TARGETS);
    let names = reader.names(&root);
    let folders = names.into_iter().map(|name| (name.clone(), root.join(name)));
    folders.filter(|(_, folder)| folder.join("sessions").is_dir()).collect()
}

/// The target's own set of LUNs, without a name, and that of each group.
fn lun_sets(target: &Path, reader: &mut Reader) -> Vec<(String, PathBuf)> {
    let groups = target.join("ini_groups");
    let names = reader.names(&groups).into_iter();
    let of_groups = names.map(|name| (name.clone(), groups.join(name).join("luns")));
    let own = (String::new(), target.join("luns"));
    [own].into_iter().chain(of_groups).filter(|(_, luns)| luns.is_dir()).collect()
}

fn portals() -> BTreeSet<SocketAddr> {
    [(Ipv4Addr::UNSPECIFIED, PORT).into(), (Ipv6Addr::UNSPECIFIED, PORT).into()].into()
}

/// The devices of a set: `luns/0/device` leads to the folder of SCST's device, which has a `filename`.
fn devices(sys: &Path, proc: &Path, luns: &Path, reader: &mut Reader) -> BTreeMap<u64, DeviceNumber> {
    let mut devices = BTreeMap::new();
    for (number, lun) in reader.numbered(luns, "") {
        let text = reader.text(&lun.join("device/filename")).unwrap_or_default();
        let path = text.lines().next().unwrap_or_default().trim();
        if path.starts_with('/') {
            let device = device_of(sys, proc, Path::new(path), reader);
            devices.extend(device.map(|device| (number, device)));
        }
    }
    devices
}

/// A session, with its folder.
struct Logged {
    folder: PathBuf,
    initiator: String,
    addresses: BTreeSet<std::net::IpAddr>,
    is_iser: bool,
}

/// The sessions of a target, by the name of the group whose LUNs they are served.
fn sessions(target: &Path, reader: &mut Reader) -> BTreeMap<String, Vec<Logged>> {
    let mut sessions = BTreeMap::<String, Vec<_>>::new();
    for entry in reader.entries(&target.join("sessions")).into_iter().take(MOST_SESSIONS) {
        let folder = target.join("sessions").join(&entry);
        let path = folder.join("initiator_name");
        let Some(bytes) = reader.bytes(&path) else { continue };
        let (initiator, unfit) = called(bytes.trim_ascii_end());
        unfit.into_iter().for_each(|unfit| reader.unfit(&path, unfit));
        let (mut addresses, mut is_iser) = (BTreeSet::new(), false);
        for connection in reader.names(&folder) {
            let connection = folder.join(connection);
            let path = connection.join("ip");
            if let Some(text) = connection.is_dir().then(|| reader.text(&path)).flatten() {
                addresses.extend(reader.fit(&path, address::address(&text)));
                let transport = reader.text(&connection.join("transport")).unwrap_or_default();
                is_iser |= transport.to_ascii_lowercase().contains("iser");
            }
        }
        if !addresses.is_empty() {
            let session = Logged { initiator, addresses, is_iser, folder };
            sessions.entry(group_of(&session.folder)).or_default().push(session);
        }
    }
    sessions
}

/// The group to whose LUNs the link `luns` leads: `../../ini_groups/GROUP/luns`. Empty for the target's own.
fn group_of(session: &Path) -> String {
    let link = std::fs::read_link(session.join("luns")).unwrap_or_default();
    let mut parts = link.components().rev().skip(1);
    let (group, parent) = (parts.next(), parts.next());
    let group = group.filter(|_| parent.is_some_and(|parent| parent.as_os_str() == "ini_groups"));
    group.map(|group| group.as_os_str().to_string_lossy().into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
