//! What `tgtadm` says about the targets of tgtd. Source: `tgt_target_show_all` in usr/target.c,
//! `iscsi_target_show_connections` and `iscsi_target_show_portals` in usr/iscsi/target.c, and
//! `session_create` in usr/iscsi/session.c of tgt 1.0.85 to 1.0.97.
//!
//! tgtd writes the name and the alias of an initiator into these texts as they came: any bytes but NUL, of
//! any length. So an initiator can write lines of its own. The list of targets has both, and tgtd cuts each
//! session's lines off after 1,023 bytes, also the line feed at their end. The list of a target's connections
//! has no alias and is not cut off. So the sessions are read from there. Of the list of targets, only the
//! last list of LUNs before the next target counts: an initiator can write above it, and not below.
//!
//! A line that does not fit is left out. The others count, because one initiator must not hide all others.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

use super::address::{address, portal};
use super::{Unfit, called, name};

/// The most unfit lines of an answer that are told.
const MOST_UNFIT: usize = 16;

/// A target.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct TgtTarget {
    /// Its number.
    pub number: u32,
    /// Its name.
    pub name: String,
    /// How it is reached: `iscsi`, `iser`, …
    pub driver: String,
    /// Whether an initiator is logged in.
    pub has_sessions: bool,
    /// The path behind each LUN that has one.
    pub luns: BTreeMap<u64, String>,
}

/// A connection of a session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TgtConnection {
    /// The session's number.
    pub session: u64,
    /// What the initiator calls itself. Characters that no name may have are escaped, as `\\n`.
    pub initiator: String,
    /// The initiator's address.
    pub address: IpAddr,
}

/// What was read of an answer, and the first lines that do not fit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answer<T> {
    /// What was read.
    pub read: Vec<T>,
    /// Lines that do not fit: at most 16.
    pub unfit: Vec<Unfit>,
}

impl<T> Answer<T> {
    const fn new() -> Self {
        Self { read: Vec::new(), unfit: Vec::new() }
    }

    /// The value, unless it is unfit.
    fn fit<V>(&mut self, parsed: Result<V, Unfit>) -> Option<V> {
        parsed.map_err(|unfit| self.tell(unfit)).ok()
    }

    fn tell(&mut self, unfit: Unfit) {
        if self.unfit.len() < MOST_UNFIT {
            self.unfit.push(unfit);
        }
    }
}

/// Where the lines of a target belong.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Section {
    System,
    Sessions,
    Luns,
    Other,
}

/// The title of a target's list of LUNs.
const LUNS: &str = "    LUN information:";

/// The targets in the answer to `--mode target --op show`, each number once. An alias may have lines that
/// pass for a target; tgtd knows which numbers are targets.
pub fn targets(text: &str) -> Answer<TgtTarget> {
    let mut answer = Answer::<TgtTarget>::new();
    let (mut section, mut lun, mut known) = (Section::Other, None, BTreeSet::new());
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        if let Some(rest) = line.strip_prefix("Target ") {
            if let Some(target) = answer.fit(heading(line, rest)) {
                if known.insert(target.number) {
                    answer.read.push(target);
                    section = Section::Other;
                } else {
                    answer.tell(Unfit::new(line, "each target once"));
                }
            }
            continue;
        }
        let Some(target) = answer.read.last_mut() else {
            answer.tell(Unfit::new(line, HEADING));
            return answer;
        };
        let (key, value) = line.trim().split_once(':').unwrap_or((line.trim(), ""));
        let value = value.trim();
        // Four spaces stand before the title of a section, and more before what it says. After a session that
        // was cut off, the title stands in the same line.
        let is_cut_off = section == Section::Sessions && line.ends_with(LUNS);
        if is_cut_off || line.starts_with("    ") && !line.starts_with("     ") {
            section = match key {
                _ if is_cut_off => Section::Luns,
                "System information" => Section::System,
                "I_T nexus information" => Section::Sessions,
                "LUN information" => Section::Luns,
                _ => Section::Other,
            };
            if section == Section::Luns {
                target.luns.clear(); // an initiator may have written a list above, but none below the last
            }
            lun = None;
            continue;
        }
        match (section, key) {
            // The first one: an initiator may have written another one below.
            (Section::System, "Driver") if target.driver.is_empty() => {
                let driver = name(value);
                target.driver = driver.clone().unwrap_or_default();
                let _: Option<String> = answer.fit(driver);
            }
            (Section::Sessions, "I_T nexus") => target.has_sessions = true,
            (Section::Luns, "LUN") => {
                let number = value.parse::<u64>().map_err(|_| Unfit::new(value, "the number of a LUN"));
                lun = answer.fit(number);
            }
            (Section::Luns, "Backing store path") if value.starts_with('/') => {
                target.luns.extend(lun.map(|lun| (lun, value.to_owned())));
            }
            _ => {}
        }
    }
    answer
}

/// The first line of a target.
const HEADING: &str = "Target NUMBER: NAME";

fn heading(line: &str, rest: &str) -> Result<TgtTarget, Unfit> {
    let unfit = || Unfit::new(line, HEADING);
    let (number, title) = rest.split_once(": ").ok_or_else(unfit)?;
    let number = number.parse::<u32>().map_err(|_| unfit())?;
    Ok(TgtTarget { number, name: name(title.trim_end())?, ..TgtTarget::default() })
}

/// The connections in the answer to `--mode conn --op show --tid NUMBER`.
///
/// A name that has line feeds can pass for several connections. All that stands in them is that initiator's
/// but the last address.
pub fn connections(text: &str) -> Answer<TgtConnection> {
    let mut answer = Answer::new();
    // The session, its initiator and its address, as far as they were read.
    let mut under_way: (Option<u64>, Option<String>, Option<IpAddr>) = (None, None, None);
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        if let Some(number) = line.strip_prefix("Session: ") {
            answer.read.extend(connection(std::mem::take(&mut under_way)));
            let number = number.parse().map_err(|_| Unfit::new(line, "Session: NUMBER"));
            under_way.0 = answer.fit(number);
            continue;
        }
        let (session, initiator, at) = &mut under_way;
        let value = |key| line.strip_prefix("        ").and_then(|line| line.strip_prefix(key));
        if session.is_none() {
            answer.tell(Unfit::new(line, "Session: NUMBER"));
        } else if let Some(text) = value("Initiator: ").filter(|_| initiator.is_none()) {
            let (name, unfit) = called(text.as_bytes());
            unfit.into_iter().for_each(|unfit| answer.tell(unfit));
            *initiator = Some(name);
        } else if let Some(text) = value("IP Address: ").or_else(|| value("RDMA IP Address: ")) {
            *at = answer.fit(address(text));
        } else if !line.starts_with("    Connection: ") {
            answer.tell(Unfit::new(line, "Connection, Initiator or IP Address"));
        }
    }
    answer.read.extend(connection(under_way));
    answer
}

fn connection(read: (Option<u64>, Option<String>, Option<IpAddr>)) -> Option<TgtConnection> {
    Some(TgtConnection { session: read.0?, initiator: read.1?, address: read.2? })
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
mod tests;
