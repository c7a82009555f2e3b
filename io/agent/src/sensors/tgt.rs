//! The targets of tgtd, the target daemon in user space, by its own tool `tgtadm`.
//!
//! tgtd's socket takes a structure of C that differs between versions, and `tgtadm` of the same version knows
//! it. A tgtd that hangs must not hold the agent up: the tool has one second and 4 MiB for an answer.
//!
//! **What initiators write.** tgtd repeats their names as they came, and a name may have lines that pass for
//! connections of other hosts. The kernel knows how many connections there really are. So if tgtd names more
//! connections of an address than the kernel has, [`leave_out_surplus`] leaves that address out: rather an
//! initiator that is not delayed than one that is delayed for another one.
//!
//! tgtd answers root only (`SO_PEERCRED`). It counts nothing for a session, so the writes of a LUN's device
//! count for each of the LUN's sessions.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{ErrorKind, Read};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use rustix::process::{Pid, PidfdFlags, geteuid, pidfd_open};
use weir_clock::Clock;
use weir_model::{Instant, Span};
use weir_throttle::{DeviceNumber, Framework, Session, Target};

use super::backing::device_of;
use super::connections::Connections;
use super::reading::{Reader, Remark, is_gone};
use super::text::Unfit;
use super::text::address::is_at;
use super::text::tgt::{Answer, TgtConnection, TgtTarget, connections, portals, targets};
use super::written::MOST_SESSIONS;

/// How long an answer may take.
const PATIENCE: Span = Span::from_secs(1);

/// The most bytes of an answer: of some 8,000 LUNs.
const MOST_BYTES: usize = 4 << 20;

/// The size of a read: what a pipe holds.
const READ_BYTES: usize = 64 << 10;

/// The most targets whose connections are asked for, and how long that may take in sum. Each takes a process.
const MOST_QUESTIONS: usize = 256;
const PATIENCE_FOR_ALL: Span = Span::from_secs(3);

/// The most daemons on a host. Each has a number, which is that of its socket.
const MOST_DAEMONS: usize = 16;

/// Where to find tgtd.
#[derive(Clone, Copy, Debug)]
pub(super) struct Places<'p> {
    pub(super) sys: &'p Path,
    pub(super) proc: &'p Path,
    pub(super) run: &'p Path,
    pub(super) tgtadm: &'p Path,
}

/// The daemons' numbers: of their sockets.
pub(super) fn daemons(run: &Path, reader: &mut Reader) -> Vec<u64> {
    let sockets = reader.numbered(&run.join("tgtd"), "socket.");
    sockets.into_iter().map(|(number, _)| number).take(MOST_DAEMONS).collect()
}

/// What the daemons tell.
#[derive(Default, Debug)]
pub(super) struct Told {
    pub(super) targets: Vec<Target>,
    /// How many connections they name from each address, of all targets together.
    pub(super) named: BTreeMap<IpAddr, usize>,
}

/// The targets of all daemons that run.
pub(super) fn found(places: Places<'_>, reader: &mut Reader) -> Told {
    let mut told = Told::default();
    let until = Clock::new().now() + PATIENCE_FOR_ALL;
    let mut questions = MOST_QUESTIONS;
    for daemon in daemons(places.run, reader) {
        let Ok(text) = ask(places, daemon, &["target"], reader) else { continue };
        let shown = targets(&text);
        tell(places, shown.unfit, reader);
        if shown.read.is_empty() {
            continue;
        }
        let Ok(text) = ask(places, daemon, &["portal"], reader) else { continue };
        let Some(portals) = reader.fit(places.tgtadm, portals(&text)) else { continue };
        let mut connections = ask_for_connections(places, daemon, &shown.read, &mut questions, until, reader);
        let first = told.targets.len();
        for target in shown.read {
            let Some(connections) = connections.remove(&target.number) else {
                // There is no such target: it has gone, or an alias of the one before has its lines.
                if let Some(last) = told.targets.get_mut(first..).and_then(|new| new.last_mut()) {
                    last.luns = luns(&target, places, reader);
                }
                continue;
            };
            connections.iter().for_each(|of| *told.named.entry(of.address).or_default() += 1);
            told.targets.push(of(target, connections, &portals, places, reader));
        }
    }
    told
}

/// The connections of each target that there is, by its number. Small numbers come first: administrators
/// count from 1, so numbers that an alias makes up are asked for when the real targets had their questions.
fn ask_for_connections(
    places: Places<'_>,
    daemon: u64,
    shown: &[TgtTarget],
    questions: &mut usize,
    until: Instant,
    reader: &mut Reader,
) -> BTreeMap<u32, Vec<TgtConnection>> {
    let is_used = shown.iter().any(|target| target.has_sessions);
    let mut numbers: Vec<_> = shown.iter().map(|target| (target.number, target.driver == "iscsi")).collect();
    numbers.sort_unstable();
    let mut answers = BTreeMap::new();
    for (number, is_iscsi) in numbers {
        if !is_used || !is_iscsi {
            answers.insert(number, Vec::new());
        } else if *questions == 0 || Clock::new().now() >= until {
            reader.unfit(places.tgtadm, Unfit::new("more targets", "256 targets, all asked within 3 s"));
            answers.insert(number, Vec::new());
        } else {
            *questions -= 1;
            match ask(places, daemon, &["conn", "--tid", &number.to_string()], reader) {
                Ok(text) => {
                    let Answer { read, unfit } = connections(&text);
                    tell(places, unfit, reader);
                    answers.insert(number, read);
                }
                Err(NoAnswer::Failed(_)) => {} // tgtd has no such target
                Err(_) => drop(answers.insert(number, Vec::new())),
            }
        }
    }
    answers
}

/// Leaves out the addresses of which more connections are named than the kernel has at the targets' portals.
/// `connections` are those before and after the daemons were asked.
pub(super) fn leave_out_surplus(told: &mut Told, connections: &Connections, reader: &mut Reader) {
    let portals: BTreeSet<_> = told.targets.iter().flat_map(|target| &target.portals).copied().collect();
    let mut present = BTreeMap::<IpAddr, usize>::new();
    for connection in connections.keys() {
        if portals.iter().any(|portal| is_at(connection.local, *portal)) {
            *present.entry(connection.peer.ip()).or_default() += 1;
        }
    }
    // Without a connection nobody is delayed.
    let more = |(address, named): (&IpAddr, &usize)| {
        let present = present.get(address).copied().filter(|present| named > present)?;
        Some((*address, *named, present))
    };
    let surplus: Vec<_> = told.named.iter().filter_map(more).collect();
    for (address, named, present) in surplus {
        let answer = format!(
            "names {named} connections of {address}, and the kernel has {present}: an initiator gives itself a \
             name with line feeds. No connection of {address} to tgt is delayed"
        );
        reader.remark(Remark::NoAnswer { what: "tgtadm", answer });
        for target in &mut told.targets {
            let had = |session: &Session| session.addresses.contains(&address);
            // Without any address it would pass for a session with any connection.
            target.sessions.retain(|session| !had(session) || session.addresses.len() > 1);
            for session in &mut target.sessions {
                session.addresses.remove(&address);
            }
        }
    }
}

fn tell(places: Places<'_>, unfit: Vec<Unfit>, reader: &mut Reader) {
    unfit.into_iter().for_each(|unfit| reader.unfit(places.tgtadm, unfit));
}

fn luns(shown: &TgtTarget, places: Places<'_>, reader: &mut Reader) -> BTreeMap<u64, DeviceNumber> {
    let luns = shown.luns.iter().filter_map(|(number, path)| {
        Some((*number, device_of(places.sys, places.proc, Path::new(path), reader)?))
    });
    luns.collect()
}

fn of(
    shown: TgtTarget,
    connections: Vec<TgtConnection>,
    portals: &BTreeSet<SocketAddr>,
    places: Places<'_>,
    reader: &mut Reader,
) -> Target {
    let mut sessions = BTreeMap::new();
    for connection in connections {
        let TgtConnection { session, initiator, address } = connection;
        let new = || Session { initiator, addresses: BTreeSet::new(), written: BTreeMap::new() };
        sessions.entry(session).or_insert_with(new).addresses.insert(address);
    }
    Target {
        framework: Framework::Tgt,
        luns: luns(&shown, places, reader),
        name: shown.name,
        portals: portals.clone(),
        sessions: sessions.into_values().take(MOST_SESSIONS).collect(),
        out_of_reach: match &*shown.driver {
            "iscsi" => None,
            other => Some(format!("{other}: its packets pass no queue of this host")),
        },
    }
}

/// What `tgtadm` says. Why it says nothing is a remark, unless the daemon does not run.
fn ask(places: Places<'_>, daemon: u64, mode: &[&str], reader: &mut Reader) -> Result<String, NoAnswer> {
    let mut command = Command::new(places.tgtadm);
    command.args(["--lld", "iscsi", "--op", "show", "--mode"]).args(mode);
    command.args(["--control-port", &daemon.to_string()]);
    let answer = answer(&mut command);
    if let Err(none) = &answer
        && runs(&places.run.join(format!("tgtd/socket.{daemon}")))
    {
        reader.remark(none.at(places.tgtadm));
    }
    answer
}

/// Whether somebody listens at a socket. Without waiting: a daemon that hangs accepts nothing.
fn runs(socket: &Path) -> bool {
    let Ok(address) = SocketAddrUnix::new(socket) else { return false };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let connected = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
        .and_then(|client| connect(&client, &address));
    !connected.is_err_and(|error| error == Errno::CONNREFUSED || is_gone(error))
}

/// Why there is no answer.
enum NoAnswer {
    NotStarted(std::io::Error),
    TooLate,
    TooLong,
    Failed(std::process::ExitStatus),
}

impl NoAnswer {
    fn at(&self, program: &Path) -> Remark {
        let program = program.display();
        let answer = match self {
            Self::TooLong => format!("{program} writes more than the 4 MiB that are read"),
            Self::NotStarted(error) if error.kind() == ErrorKind::NotFound => {
                format!("there is no program {program}, which comes with tgtd")
            }
            Self::NotStarted(error) => format!("{program} cannot be run: {error}"),
            Self::TooLate => format!("{program} has not answered within a second"),
            Self::Failed(_) if !geteuid().is_root() => {
                "tgtd answers root only, and weir does not run as root".to_owned()
            }
            Self::Failed(status) => format!("{program} has failed: {status}"),
        };
        Remark::NoAnswer { what: "tgtd runs, and what is not known of its targets is not guarded", answer }
    }
}

/// The standard output of a program, within its bounds. The program has ended afterwards in any case.
fn answer(command: &mut Command) -> Result<String, NoAnswer> {
    let until = Clock::new().now() + PATIENCE;
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(NoAnswer::NotStarted)?;
    let output = output(&mut child, until);
    if output.is_err() {
        let _ = child.kill(); // it may have ended by itself
    }
    let status = child.wait().map_err(NoAnswer::NotStarted)?;
    let output = output?;
    if !status.success() {
        return Err(NoAnswer::Failed(status));
    }
    // Initiators choose a part of it: what is no text must not hide the rest.
    Ok(String::from_utf8_lossy(&output).into_owned())
}

/// What the child writes until it has ended.
fn output(child: &mut Child, until: Instant) -> Result<Vec<u8>, NoAnswer> {
    let mut output = Vec::new();
    let Some(mut pipe) = child.stdout.take() else { return Ok(output) };
    let mut buffer = vec![0; READ_BYTES];
    loop {
        wait_for(pipe.as_fd(), until)?;
        match pipe.read(&mut buffer) {
            Ok(0) | Err(_) => break,
            Ok(length) => output.extend_from_slice(buffer.get(..length).unwrap_or_default()),
        }
        if output.len() > MOST_BYTES {
            return Err(NoAnswer::TooLong);
        }
    }
    // It may go on after its output has ended.
    match pidfd_open(Pid::from_child(child), PidfdFlags::empty()) {
        Ok(ended) => wait_for(ended.as_fd(), until).map(|()| output),
        Err(_) => Ok(output),
    }
}

/// Waits until something can be read.
fn wait_for(from: BorrowedFd<'_>, until: Instant) -> Result<(), NoAnswer> {
    loop {
        let left = until.saturating_since(Clock::new().now());
        let left = Timespec::try_from(std::time::Duration::from_nanos(left.as_nanos())).ok();
        match poll(&mut [PollFd::from_borrowed_fd(from, PollFlags::IN)], left.as_ref()) {
            Ok(0) => return Err(NoAnswer::TooLate),
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(_) => return Err(NoAnswer::TooLate),
        }
    }
}

#[cfg(test)]
mod tests;
