//! The targets of the Linux kernel (LIO), by configfs.
//!
//! Below `/sys/kernel/config/target/iscsi`, a target is `IQN/tpgt_TAG`. It has `np/ADDRESS:PORT` for each
//! portal, `lun/lun_N` with a link to a backstore, and `acls/INITIATOR` for each initiator that has an access
//! entry. Only with such an entry does the kernel tell the session's addresses and what it has written.
//!
//! **Sessions without a name.** The kernel counts the sessions of an IQN, but does not list all of them. An
//! entry tells only of the session that logged in last, although an initiator with two paths has two.
//! `dynamic_sessions` leaves out what has no room in a page. The missing ones become one [`Session`] without
//! addresses. It has the name and the counters of the only initiator that is listed; if several are listed,
//! it could be anybody's, and has none.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use weir_throttle::{DeviceNumber, Framework, Session, Target};

use super::backing::device_of;
use super::reading::Reader;
use super::text::{address, lio as text};
use super::written::{Counter, Found, MOST_SESSIONS};

/// Where LIO's targets are, below `/sys`.
const TARGETS: &str = "kernel/config/target/iscsi";
/// Where its backstores are.
const BACKSTORES: &str = "kernel/config/target/core";

/// What `write_mbytes` counts: MiB.
const MEBIBYTES: u32 = 20;

/// Who comes and goes, seen at little cost: the targets, and how many sessions each has.
pub(super) fn attendance(sys: &Path, reader: &mut Reader) -> Vec<String> {
    let iqns = iqns(sys, reader).into_iter();
    iqns.map(|(iqn, target)| format!("{iqn} {:?}", sessions_of(&target, reader))).collect()
}

/// What the administrator changes: the portals and the LUNs of each group.
pub(super) fn outline(sys: &Path, reader: &mut Reader) -> Vec<String> {
    let mut outline = Vec::new();
    for (iqn, target) in iqns(sys, reader) {
        outline.push(iqn);
        for (_, group) in reader.numbered(&target, "tpgt_") {
            outline.push(reader.text(&group.join("enable")).unwrap_or_default());
            outline.extend(reader.names(&group.join("np")));
            outline.extend(reader.names(&group.join("lun")));
        }
    }
    outline
}

/// All enabled portal groups.
pub(super) fn found(sys: &Path, proc: &Path, reader: &mut Reader) -> Found {
    let mut found = Found::default();
    let mut backstores = Backstores { sys, proc, known: BTreeMap::new() };
    for (iqn, folder) in iqns(sys, reader) {
        let groups = reader.numbered(&folder, "tpgt_");
        let first = found.targets.len();
        for (tag, group) in &groups {
            if !reader.is_set(&group.join("enable")) {
                continue;
            }
            let name = if groups.len() > 1 { format!("{iqn},{tag}") } else { iqn.clone() };
            let mut target = Target {
                framework: Framework::Lio,
                name,
                portals: Default::default(),
                luns: luns(group, &mut backstores, reader),
                sessions: Vec::new(),
                out_of_reach: None,
            };
            portals(group, &mut target, reader);
            sessions(group, &mut target, found.targets.len(), &mut found.counters, reader);
            found.targets.push(target);
        }
        add_unlisted(&mut found, first, sessions_of(&folder, reader));
        if found.targets.iter().map(|target| target.sessions.len()).sum::<usize>() > MOST_SESSIONS {
            break;
        }
    }
    found
}

/// The IQNs, each with its folder. What else is there are the attributes of LIO.
fn iqns(sys: &Path, reader: &mut Reader) -> Vec<(String, PathBuf)> {
    let root = sys.join(TARGETS);
    let names = reader.names(&root);
    // RFC 7143, section 4.2.7.1: the three forms of a name.
    let named =
        names.into_iter().filter(|name| ["iqn.", "eui.", "naa."].iter().any(|form| name.starts_with(form)));
    named.map(|name| (name.clone(), root.join(name))).collect()
}

/// How many sessions an IQN has, in all its portal groups.
fn sessions_of(iqn: &Path, reader: &mut Reader) -> Option<usize> {
    reader.number(&iqn.join("fabric_statistics/iscsi_instance/sessions"))
}

fn portals(group: &Path, target: &mut Target, reader: &mut Reader) {
    let folder = group.join("np");
    for name in reader.names(&folder) {
        let path = folder.join(&name);
        let Some(portal) = reader.fit(&path, address::portal(&name)) else { continue };
        target.portals.insert(portal);
        for (file, why) in [
            ("iser", "iSER: its packets pass no queue of this host"),
            ("cxgbit", "offloaded to the network card: its packets pass no queue of this host"),
        ] {
            if reader.is_set(&path.join(file)) {
                target.out_of_reach = Some(why.to_owned());
            }
        }
    }
}

fn luns(group: &Path, backstores: &mut Backstores<'_>, reader: &mut Reader) -> BTreeMap<u64, DeviceNumber> {
    let mut luns = BTreeMap::new();
    for (number, lun) in reader.numbered(&group.join("lun"), "lun_") {
        let links = reader.links(&lun);
        let device = links.iter().find_map(|link| backstores.device(link, reader));
        luns.extend(device.map(|device| (number, device)));
    }
    luns
}

/// The backstores, of which several LUNs may share one.
struct Backstores<'p> {
    sys: &'p Path,
    proc: &'p Path,
    known: BTreeMap<PathBuf, Option<DeviceNumber>>,
}

impl Backstores<'_> {
    /// The device behind the backstore to which a link leads: `…/target/core/iblock_0/disk`. Memory, tape and
    /// programs (`rd_mcp`, `user`) have none.
    fn device(&mut self, link: &Path, reader: &mut Reader) -> Option<DeviceNumber> {
        let mut parts = link.components().rev();
        let (name, plugin, parent) = (parts.next()?, parts.next()?, parts.next()?);
        if parent.as_os_str() != "core" {
            return None;
        }
        let folder = self.sys.join(BACKSTORES).join(plugin).join(name);
        if let Some(device) = self.known.get(&folder) {
            return *device;
        }
        let plugin = plugin.as_os_str().to_string_lossy();
        let device = if plugin.starts_with("iblock_") {
            self.iblock(&folder, reader)
        } else if plugin.starts_with("fileio_") {
            let info = reader.text(&folder.join("info"))?;
            text::fileio(&info).and_then(|path| device_of(self.sys, self.proc, Path::new(path), reader))
        } else if plugin.starts_with("pscsi_") {
            self.at_udev_path(&folder, reader)
        } else {
            None
        };
        self.known.insert(folder, device);
        device
    }

    fn iblock(&self, folder: &Path, reader: &mut Reader) -> Option<DeviceNumber> {
        let path = folder.join("info");
        let info = reader.text(&path)?;
        let number = reader.fit(&path, text::iblock(&info)).flatten();
        number.or_else(|| self.at_udev_path(folder, reader))
    }

    /// The device at the path that the administrator's tool left there.
    fn at_udev_path(&self, folder: &Path, reader: &mut Reader) -> Option<DeviceNumber> {
        let path = reader.text(&folder.join("udev_path"))?;
        let path = path.trim();
        path.starts_with('/').then(|| device_of(self.sys, self.proc, Path::new(path), reader)).flatten()
    }
}

/// The sessions that the kernel lists, and where their counters are.
fn sessions(
    group: &Path,
    target: &mut Target,
    place: usize,
    counters: &mut Vec<Counter>,
    reader: &mut Reader,
) {
    for initiator in reader.names(&group.join("acls")) {
        let entry = group.join("acls").join(&initiator);
        let path = entry.join("info");
        let Some(info) = reader.text(&path) else { continue };
        let addresses = reader.fit(&path, text::session(&info)).flatten().unwrap_or_default();
        if addresses.is_empty() || target.sessions.len() == MOST_SESSIONS {
            continue; // no session, or one that has lost its connections
        }
        let session = target.sessions.len();
        target.sessions.push(Session { initiator, addresses, written: BTreeMap::new() });
        for (_, mapped) in reader.numbered(&entry, "lun_") {
            // The initiator's own number may be another than the target's, to which the link leads.
            let links = reader.links(&mapped);
            let lun =
                links.iter().find_map(|link| link.file_name()?.to_str()?.strip_prefix("lun_")?.parse().ok());
            let path = mapped.join("statistics/scsi_auth_intr/write_mbytes");
            counters.extend(lun.map(|lun| Counter { target: place, session, lun, path, unit: MEBIBYTES }));
        }
    }
    let path = group.join("dynamic_sessions");
    let (names, unfit) = text::dynamic_sessions(reader.bytes(&path).unwrap_or_default());
    if let Some(unfit) = unfit {
        reader.unfit(&path, unfit);
    }
    let room = MOST_SESSIONS.saturating_sub(target.sessions.len());
    target.sessions.extend(names.into_iter().take(room).map(|initiator| Session {
        initiator,
        addresses: Default::default(),
        written: BTreeMap::new(),
    }));
}

/// Adds a session for those that the kernel counts and does not list, to the groups from `first` on.
fn add_unlisted(found: &mut Found, first: usize, counted: Option<usize>) {
    let groups = found.targets.get(first..).unwrap_or_default();
    let listed: usize = groups.iter().map(|target| target.sessions.len()).sum();
    if counted.unwrap_or(0) <= listed {
        return;
    }
    let with_sessions = groups.iter().position(|target| !target.sessions.is_empty()).unwrap_or(0);
    let place = first + with_sessions;
    let Some(target) = found.targets.get_mut(place) else { return };
    let only = if let ([only], 1) = (target.sessions.as_slice(), listed) {
        only.initiator.clone()
    } else {
        String::new()
    };
    let session = target.sessions.len();
    if !only.is_empty() {
        let own = found.counters.iter().filter(|counter| counter.target == place);
        let copies: Vec<_> = own.map(|counter| Counter { session, ..counter.clone() }).collect();
        found.counters.extend(copies);
    }
    target.sessions.push(Session {
        initiator: only,
        addresses: Default::default(),
        written: BTreeMap::new(),
    });
}

#[cfg(test)]
mod tests;
