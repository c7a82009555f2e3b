//! What `tgtadm` says about the targets of tgtd. Source: `tgt_target_show_all` in usr/target.c and
//! `iscsi_target_show_portals` in usr/iscsi/target.c of tgt 1.0.85 to 1.0.97.
//!
//! tgtd writes what an initiator calls itself into the same text, unchanged. So an initiator that has logged
//! in can make up further sessions in it, and there is nothing in the text by which to tell them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

use super::address::{address, portal};
use super::{Unfit, name};

/// A target.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct TgtTarget {
    /// Its name.
    pub name: String,
    /// How it is reached: `iscsi`, `iser`, …
    pub driver: String,
    /// Its sessions: initiator and addresses.
    pub sessions: Vec<(String, BTreeSet<IpAddr>)>,
    /// The path behind each LUN that has one.
    pub luns: BTreeMap<u64, String>,
}

/// Where the lines of a target belong.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Section {
    System,
    Sessions,
    Luns,
    Other,
}

/// The targets in the answer to `--mode target --op show`.
///
/// # Errors
/// If the text does not begin with a target, or has an address, a name or a number that is none.
pub fn targets(text: &str) -> Result<Vec<TgtTarget>, Unfit> {
    let mut targets: Vec<TgtTarget> = Vec::new();
    let (mut section, mut lun) = (Section::Other, None);
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        if let Some(rest) = line.strip_prefix("Target ") {
            let unfit = || Unfit::new(line, "Target NUMBER: NAME");
            let (number, title) = rest.split_once(": ").ok_or_else(unfit)?;
            number.parse::<u32>().map_err(|_| unfit())?;
            targets.push(TgtTarget { name: name(title.trim_end())?, ..TgtTarget::default() });
            section = Section::Other;
            continue;
        }
        let target = targets.last_mut().ok_or_else(|| Unfit::new(line, "Target NUMBER: NAME"))?;
        let (key, value) = line.trim().split_once(':').unwrap_or((line.trim(), ""));
        let value = value.trim();
        // Four spaces stand before the title of a section, and more before what it says.
        if line.starts_with("    ") && !line.starts_with("     ") {
            section = match key {
                "System information" => Section::System,
                "I_T nexus information" => Section::Sessions,
                "LUN information" => Section::Luns,
                _ => Section::Other,
            };
            lun = None;
            continue;
        }
        match (section, key) {
            (Section::System, "Driver") => target.driver = name(value)?,
            (Section::Sessions, "I_T nexus") => target.sessions.push(Default::default()),
            (Section::Sessions, "Initiator") => {
                let initiator = value.rsplit_once(" alias: ").map_or(value, |(initiator, _alias)| initiator);
                session(target, line)?.0 = name(initiator)?;
            }
            (Section::Sessions, "IP Address" | "RDMA IP Address") => {
                session(target, line)?.1.insert(address(value)?);
            }
            (Section::Luns, "LUN") => {
                lun = Some(value.parse::<u64>().map_err(|_| Unfit::new(value, "the number of a LUN"))?);
            }
            (Section::Luns, "Backing store path") if value.starts_with('/') => {
                let lun = lun.ok_or_else(|| Unfit::new(line, "LUN: NUMBER"))?;
                target.luns.insert(lun, value.to_owned());
            }
            _ => {}
        }
    }
    Ok(targets)
}

/// The session that the lines are about.
fn session<'t>(target: &'t mut TgtTarget, line: &str) -> Result<&'t mut (String, BTreeSet<IpAddr>), Unfit> {
    target.sessions.last_mut().ok_or_else(|| Unfit::new(line, "I_T nexus: NUMBER"))
}

/// The portals in the answer to `--mode portal --op show`: of all targets.
///
/// # Errors
/// If a line is no portal.
pub fn portals(text: &str) -> Result<BTreeSet<SocketAddr>, Unfit> {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    lines
        .map(|line| {
            // "Portal: [::]:3260,1": the group's tag is the last word.
            let unfit = || Unfit::new(line, "Portal: ADDRESS:PORT,TAG");
            let (at, _tag) =
                line.strip_prefix("Portal: ").and_then(|rest| rest.rsplit_once(',')).ok_or_else(unfit)?;
            portal(at)
        })
        .collect()
}

#[cfg(test)]
mod tests {
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
        I_T nexus: 4
            Initiator: iqn.2026-01.example:i2 alias: none
            Connection: 1
                IP Address: fd00::2
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

    #[test]
    fn targets_sessions_and_paths_are_read() {
        let targets = targets(SHOWN).unwrap();
        let [a, b] = &targets[..] else { panic!("{targets:?}") };
        assert_eq!((&*a.name, &*a.driver), ("iqn.2026-01.example:a", "iscsi"));
        let sessions: Vec<_> = a.sessions.iter().map(|(name, at)| (&**name, format!("{at:?}"))).collect();
        let expected = [("iqn.2026-01.example:i1", "{10.9.0.11}"), ("iqn.2026-01.example:i2", "{fd00::2}")];
        assert_eq!(sessions, expected.map(|(name, at)| (name, at.to_owned())));
        assert_eq!(a.luns, BTreeMap::from([(1, "/dev/vg/a".to_owned())]));
        assert_eq!((&*b.driver, b.sessions.len(), b.luns.len()), ("iser", 0, 0));
        assert_eq!(super::targets(""), Ok(vec![]));
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
    fn odd_answers_are_refused() {
        for text in ["hello", "    System information:", "Target x: y", "Target 1", "Target 1: "] {
            assert!(targets(text).is_err(), "{text}");
        }
        assert!(targets(&SHOWN.replace("10.9.0.11", "everywhere")).is_err());
        assert!(targets(&SHOWN.replace("LUN: 1", "LUN: one")).is_err());
        assert!(targets(&SHOWN.replace("        I_T nexus: 2\n", "")).is_err());
    }
}
