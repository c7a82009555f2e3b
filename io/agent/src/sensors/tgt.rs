//! The targets of tgtd, the target daemon in user space, by its own tool `tgtadm`.
//!
//! tgtd's socket takes a structure of C that differs between versions, and `tgtadm` of the same version knows
//! it. A tgtd that hangs must not hold the agent up: the tool has one second and 4 MiB for an answer.
//!
//! tgtd answers root only (`SO_PEERCRED`). It counts nothing for a session, so the writes of a LUN's device
//! count for each of the LUN's sessions.

use std::collections::BTreeSet;
use std::io::Read;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use weir_clock::Clock;
use weir_model::{Instant, Span};
use weir_throttle::{Framework, Session, Target};

use super::backing::device_of;
use super::reading::{Reader, Remark, is_gone};
use super::text::Unfit;
use super::text::tgt::{TgtTarget, portals, targets};
use super::written::MOST_SESSIONS;

/// How long an answer may take.
const PATIENCE: Span = Span::from_secs(1);

/// The most bytes of an answer: of some 8,000 LUNs.
const MOST_BYTES: usize = 4 << 20;

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

/// The targets of all daemons that run.
pub(super) fn found(places: Places<'_>, reader: &mut Reader) -> Vec<Target> {
    let mut found = Vec::new();
    for daemon in daemons(places.run, reader) {
        let Some(text) = ask(places, daemon, "target", reader) else { continue };
        let Some(targets) = reader.fit(places.tgtadm, targets(&text)) else { continue };
        if targets.is_empty() {
            continue;
        }
        let Some(text) = ask(places, daemon, "portal", reader) else { continue };
        let Some(portals) = reader.fit(places.tgtadm, portals(&text)) else { continue };
        found.extend(targets.into_iter().map(|target| of(target, &portals, places, reader)));
    }
    found
}

fn of(shown: TgtTarget, portals: &BTreeSet<SocketAddr>, places: Places<'_>, reader: &mut Reader) -> Target {
    let luns = shown.luns.iter().filter_map(|(number, path)| {
        Some((*number, device_of(places.sys, places.proc, Path::new(path), reader)?))
    });
    let luns = luns.collect();
    let sessions = shown.sessions.into_iter().take(MOST_SESSIONS);
    Target {
        framework: Framework::Tgt,
        name: shown.name,
        portals: portals.clone(),
        luns,
        sessions: sessions
            .map(|(initiator, addresses)| Session { initiator, addresses, written: Default::default() })
            .collect(),
        out_of_reach: match &*shown.driver {
            "iscsi" => None,
            other => Some(format!("{other}: its packets pass no queue of this host")),
        },
    }
}

/// What `tgtadm` says; nothing if the daemon does not run.
fn ask(places: Places<'_>, daemon: u64, mode: &str, reader: &mut Reader) -> Option<String> {
    let mut command = Command::new(places.tgtadm);
    command.args(["--lld", "iscsi", "--op", "show", "--mode", mode]);
    command.args(["--control-port", &daemon.to_string()]);
    match answer(&mut command) {
        Ok(text) => Some(text),
        Err(_) if !runs(&places.run.join(format!("tgtd/socket.{daemon}"))) => None,
        Err(remark) => {
            reader.remark(remark.at(places.tgtadm));
            None
        }
    }
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
    NoText,
    Failed(std::process::ExitStatus),
}

impl NoAnswer {
    fn at(&self, program: &Path) -> Remark {
        let accepted = "an answer in UTF-8 of at most 4 MiB";
        let path = PathBuf::from(program);
        let answer = match self {
            Self::TooLong => return Remark::Unfit { path, unfit: Unfit::new("a longer answer", accepted) },
            Self::NoText => return Remark::Unfit { path, unfit: Unfit::new("other bytes", accepted) },
            Self::NotStarted(error) => format!("cannot be run: {error}"),
            Self::TooLate => "no answer within a second".to_owned(),
            Self::Failed(status) => format!("{status} (tgtd answers root only)"),
        };
        Remark::NoAnswer { what: "tgtadm, while tgtd runs", answer }
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
    String::from_utf8(output).map_err(|_| NoAnswer::NoText)
}

/// What the child writes until it has ended.
fn output(child: &mut Child, until: Instant) -> Result<Vec<u8>, NoAnswer> {
    let mut output = Vec::new();
    let Some(mut pipe) = child.stdout.take() else { return Ok(output) };
    let mut buffer = [0; 4096];
    loop {
        wait_for(pipe.as_fd(), until)?;
        match pipe.read(&mut buffer) {
            Ok(0) | Err(_) => break,
            Ok(length) => output.extend(buffer.iter().take(length)),
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
