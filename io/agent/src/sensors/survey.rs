//! Puts together what all sensors see, and finds out at little cost whether anything has changed.
//!
//! To read everything takes some 100 system calls for each session. So once a second the [`Surveyor`] reads
//! only what changes when somebody comes or goes: the connections at the portals, the kernel's count of
//! sessions, and every few seconds the names of portals and LUNs. If these are as before, only the counters
//! of written bytes are read. After a change everything is read, and once more a second later, because a
//! login that has just begun is a connection before it is a session.
//!
//! To list some connections, the kernel goes through all that it has. So the surveyor asks for the list only
//! if the kernel's counters of TCP say that a connection has come or gone.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use weir_model::{Instant, Span};
use weir_throttle::{Survey, Target};

use super::connections::{ConnectionSensor, Connections};
use super::interfaces::Interfaces;
use super::netlink::InquiryError;
use super::reading::{MOST_REMARKS, Reader, Remark};
use super::text::Unfit;
use super::text::tcp::{Openings, openings};
use super::written::{Counters, MOST_SESSIONS};
use super::{devices, lio, scst, tgt};

/// Everything is read again after this time at the latest. It bounds how long a change stays unseen that
/// leaves the outline as it was, such as a LUN that was replaced within a second.
const LATEST: Span = Span::from_secs(60);

/// The names of portals and LUNs are read again after this time: an administrator's change is not urgent, as
/// long as nobody logs in. So is the list of connections, whatever the counters of TCP say.
const LATEST_OF_OUTLINE: Span = Span::from_secs(5);

/// tgtd is asked again after this time at the latest, because nothing but its answer tells of a new LUN.
const LATEST_OF_TGT: Span = Span::from_secs(10);

/// Where to look. Tests have trees of files instead.
#[derive(Clone, Debug)]
pub struct Roots {
    /// `/sys`, with configfs in `kernel/config`.
    pub sys: PathBuf,
    /// `/proc`.
    pub proc: PathBuf,
    /// `/run`, with the sockets of tgtd.
    pub run: PathBuf,
    /// The program `tgtadm`.
    pub tgtadm: PathBuf,
}

impl Default for Roots {
    fn default() -> Self {
        Self { sys: "/sys".into(), proc: "/proc".into(), run: "/run".into(), tgtadm: "tgtadm".into() }
    }
}

/// Looks at the host's targets, and remembers what it saw.
///
/// A look is synchronous. It takes milliseconds, but a second where tgtd hangs, and as long as the kernel
/// wants where the kernel does: LIO answers nothing about a target while it takes it down.
pub struct Surveyor {
    roots: Roots,
    reader: Reader,
    sensor: ConnectionSensor,
    routes: Interfaces,
    /// Who was there at the last look.
    attendance: Vec<String>,
    /// What the administrator had set up, and when that was read.
    outline: Vec<String>,
    outlined_at: Option<Instant>,
    portals: BTreeSet<SocketAddr>,
    bound: Connections,
    /// The counters of TCP before the connections were listed; none if they are to be listed again.
    openings: Option<Openings>,
    /// The targets of tgtd, and when it was asked.
    of_tgt: Vec<Target>,
    tgt_asked: Option<Instant>,
    read_at: Option<Instant>,
    /// Whether the next look reads everything in any case.
    again: bool,
    counters: Counters,
    survey: Survey,
    remarks: Vec<Remark>,
}

impl Surveyor {
    /// Has seen nothing yet.
    ///
    /// # Errors
    /// If the kernel refuses the netlink sockets.
    pub fn new(roots: Roots) -> Result<Self, Remark> {
        let refused = |error: InquiryError| no_answer("the kernel's netlink sockets", &error);
        Ok(Self {
            roots,
            reader: Reader::new(),
            sensor: ConnectionSensor::new().map_err(refused)?,
            routes: Interfaces::new().map_err(refused)?,
            attendance: Vec::new(),
            outline: Vec::new(),
            outlined_at: None,
            portals: BTreeSet::new(),
            bound: Connections::new(),
            openings: None,
            of_tgt: Vec::new(),
            tgt_asked: None,
            read_at: None,
            again: true,
            counters: Counters::default(),
            survey: Survey::default(),
            remarks: Vec::new(),
        })
    }

    /// Everything that was there at the last look.
    pub const fn survey(&self) -> &Survey {
        &self.survey
    }

    /// What was odd when everything was read the last time, and since.
    pub fn remarks(&self) -> &[Remark] {
        &self.remarks
    }

    /// Makes the next look read everything: for instance because a device has vanished.
    pub const fn read_again(&mut self) {
        self.again = true;
    }

    /// Looks, once a second. Says whether anything but the counters of written bytes may be different.
    pub fn look(&mut self, now: Instant) -> bool {
        let is_late = |at: Option<Instant>, latest| at.is_none_or(|at| now.saturating_since(at) >= latest);
        let sys = &self.roots.sys;
        let mut attendance = lio::attendance(sys, &mut self.reader);
        attendance.extend(scst::outline(sys, &mut self.reader));
        let daemons = tgt::daemons(&self.roots.run, &mut self.reader);
        attendance.extend(daemons.iter().map(|number| format!("tgtd {number}")));
        let is_outline_late = is_late(self.outlined_at, LATEST_OF_OUTLINE);
        if is_outline_late {
            self.openings = None;
        }
        let mut connections = self.connections();
        let mut differs = attendance != self.attendance || connections != self.bound;
        self.attendance = attendance;
        if is_outline_late {
            let outline = lio::outline(&self.roots.sys, &mut self.reader);
            differs |= outline != self.outline;
            (self.outline, self.outlined_at) = (outline, Some(now));
        }

        let ask_tgt =
            differs || self.again || (!daemons.is_empty() && is_late(self.tgt_asked, LATEST_OF_TGT));
        let everything = ask_tgt || is_late(self.read_at, LATEST);
        if everything {
            if ask_tgt {
                self.ask_tgt(&connections);
                self.tgt_asked = Some(now);
            }
            self.read_everything();
            self.read_at = Some(now);
            self.again = differs;
            let portals =
                self.survey.targets.iter().flat_map(|target| target.portals.iter().copied()).collect();
            if portals != self.portals {
                (self.portals, self.openings) = (portals, None);
                connections = self.connections();
            }
        }
        let rerouted = self.routes.have_changed();
        if rerouted || connections != self.bound {
            match self.routes.of(&connections) {
                Ok(interfaces) => self.survey.interfaces = interfaces,
                Err(error) => self.reader.remark(no_answer("the kernel's routes (NETLINK_ROUTE)", &error)),
            }
            self.survey.connections = connections.keys().copied().collect();
            self.bound = connections;
        }
        // A counter that was there a second ago is of a session or a LUN that is no more.
        let vanished = self.counters.read(&mut self.survey.targets);
        self.again |= vanished && !everything;
        self.keep_remarks(everything);
        everything || rerouted
    }

    /// The connections at the portals of the last look. If the kernel does not tell, those of the last look.
    fn connections(&mut self) -> Connections {
        // Counters of before the list: what comes while the kernel lists makes them differ the next time.
        let counters = self.roots.proc.join("thread-self/net/snmp");
        let text = self.reader.text(&counters);
        let openings = text.and_then(|text| self.reader.fit(&counters, openings(&text)));
        if openings.is_some() && openings == self.openings {
            return self.bound.clone();
        }
        match self.sensor.read(&self.portals) {
            Ok(connections) => {
                self.openings = openings;
                connections
            }
            Err(error) => {
                let what = "the kernel's list of sockets (NETLINK_SOCK_DIAG, module tcp_diag)";
                self.reader.remark(no_answer(what, &error));
                self.bound.clone()
            }
        }
    }

    /// Asks the daemons. `before`: the connections before that.
    fn ask_tgt(&mut self, before: &Connections) {
        let Roots { sys, proc, run, tgtadm } = &self.roots;
        let places = tgt::Places { sys, proc, run, tgtadm };
        let mut told = tgt::found(places, &mut self.reader);
        let portals = told.targets.iter().flat_map(|target| &target.portals).copied().collect();
        // Somebody may have come or gone meanwhile. If the kernel does not tell, what tgtd tells has to do.
        if let Ok(mut connections) = self.sensor.read(&portals) {
            connections.extend(before.iter().map(|(connection, interface)| (*connection, *interface)));
            tgt::leave_out_surplus(&mut told, &connections, &mut self.reader);
        }
        self.of_tgt = told.targets;
    }

    fn read_everything(&mut self) {
        let Roots { sys, proc, .. } = &self.roots;
        let mut found = lio::found(sys, proc, &mut self.reader);
        found.append(scst::found(sys, proc, &mut self.reader));
        found.targets.extend(self.of_tgt.iter().cloned());
        let mut room = MOST_SESSIONS;
        for target in &mut found.targets {
            if target.sessions.len() > room {
                let unfit = Unfit::new("more sessions", "at most 4096 sessions of all targets");
                self.reader.unfit(Path::new(&target.name), unfit);
                target.sessions.truncate(room);
            }
            room -= target.sessions.len();
        }
        let uppermost = found.targets.iter().flat_map(|target| target.luns.values().copied());
        self.survey.devices = devices::below(sys, uppermost, &mut self.reader);
        self.survey.targets = found.targets;
        self.counters = Counters::new(found.counters);
    }

    /// Keeps the remarks of this look; those of the looks before too, unless everything was read anew.
    fn keep_remarks(&mut self, everything: bool) {
        if everything {
            self.remarks.clear();
        }
        for remark in self.reader.take_remarks() {
            if self.remarks.len() < MOST_REMARKS && !self.remarks.contains(&remark) {
                self.remarks.push(remark);
            }
        }
    }
}

fn no_answer(what: &'static str, error: &InquiryError) -> Remark {
    Remark::NoAnswer { what, answer: error.to_string() }
}

#[cfg(test)]
mod tests;
