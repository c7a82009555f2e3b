//! The initiators' loads, by clients that everybody has.
//!
//! `qemu-img bench` keeps a number of requests outstanding, one after the other through the volume. fio reads
//! at random and at a pace, through `qemu-nbd`, because Debian's fio speaks NBD and not iSCSI. Each is an
//! iSCSI session of the initiator's host.

use std::fs;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use weir_model::{Iops, Span};

use crate::bed::{Framework, Host};
use crate::shell::{program, program_at};

const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(50);
/// More requests than any stream gets done.
const ENDLESS: &str = "2000000000";

/// Reads or writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Read,
    Write,
}

/// A process that is killed when this goes.
#[derive(Debug)]
struct Process {
    child: Child,
    name: &'static str,
}

impl Process {
    fn start(command: &mut Command, name: &'static str) -> anyhow::Result<Self> {
        let child = command.stdin(Stdio::null()).spawn().context(name)?;
        Ok(Self { child, name })
    }

    fn signal(&mut self, signal: Signal) -> anyhow::Result<()> {
        if let Some(status) = self.child.try_wait()? {
            bail!("{} has ended: {status}", self.name);
        }
        Ok(kill_process(Pid::from_child(&self.child), signal)?)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An initiator that keeps some requests outstanding until this goes. In a pause its session stays, as that
/// of a host whose programs have nothing to write.
#[derive(Debug)]
pub(crate) struct Stream {
    process: Process,
}

impl Stream {
    /// Starts it, and lets it go on at once.
    pub(crate) fn start(
        host: &Host,
        framework: Framework,
        kind: Kind,
        depth: u32,
        bytes: u64,
    ) -> anyhow::Result<Self> {
        let mut bench = bench(host, framework, kind, depth, bytes);
        bench.args(["-c", ENDLESS]).stdout(Stdio::null());
        Ok(Self { process: Process::start(&mut bench, "qemu-img")? })
    }

    /// Sends no request until it is resumed.
    pub(crate) fn pause(&mut self) -> anyhow::Result<()> {
        self.process.signal(Signal::STOP)
    }

    /// Goes on.
    pub(crate) fn resume(&mut self) -> anyhow::Result<()> {
        self.process.signal(Signal::CONT)
    }
}

/// A client that keeps `depth` requests outstanding. It is not said yet how many it does in all.
fn bench(host: &Host, framework: Framework, kind: Kind, depth: u32, bytes: u64) -> Command {
    let mut bench = program_at(&host.space(), "qemu-img");
    bench.args(["bench", "-t", "none", "-d", &depth.to_string(), "-s", &bytes.to_string()]);
    if kind == Kind::Write {
        bench.arg("-w");
    }
    bench.args(["--image-opts", &host.image(framework)]);
    bench
}

/// A session of an initiator that fio can use: it speaks NBD.
#[derive(Debug)]
pub(crate) struct Session {
    _process: Process,
    socket: PathBuf,
}

impl Session {
    /// Logs in.
    pub(crate) fn start(host: &Host, framework: Framework) -> anyhow::Result<Self> {
        let socket = PathBuf::from(format!("/run/{}.sock", host.space()));
        let _ = fs::remove_file(&socket); // of an earlier session
        let mut server = program_at(&host.space(), "qemu-nbd");
        server.args(["--persistent", "--shared=8", "--cache=none", "--socket"]).arg(&socket);
        server.args(["--image-opts", &host.image(framework)]);
        let mut process = Process::start(&mut server, "qemu-nbd")?;
        for _ in 0..PATIENCE.as_millis() / PAUSE.as_millis() {
            if socket.exists() {
                return Ok(Self { _process: process, socket });
            }
            if let Some(status) = process.child.try_wait()? {
                bail!("qemu-nbd has ended: {status}");
            }
            thread::sleep(PAUSE);
        }
        bail!("qemu-nbd does not listen")
    }

    /// Reads at random, at this pace if there is one, until the reader goes.
    pub(crate) fn read_at_random(self, pace: Option<Iops>, depth: u32, bytes: u64) -> anyhow::Result<Reader> {
        let mut fio = self.fio("randread", depth, bytes);
        fio.args(["--time_based", "--runtime=1h"]).stdout(Stdio::null());
        if let Some(pace) = pace {
            // As bytes, because fio takes whole numbers only.
            fio.arg(format!("--rate={:.0}", pace.get() * f64::from(u32::try_from(bytes)?)));
        }
        Ok(Reader { _process: Process::start(&mut fio, "fio")?, _session: self })
    }

    fn fio(&self, rw: &str, depth: u32, bytes: u64) -> Command {
        let mut fio = program("fio");
        // A job that is a process of its own would outlive fio, and keep a processor busy with a dead server.
        fio.args(["--thread", "--eta=never"]);
        fio.args(["--name=load", "--ioengine=nbd", "--size=60m", &format!("--rw={rw}")]);
        fio.args([format!("--bs={bytes}"), format!("--iodepth={depth}")]);
        fio.arg(format!("--uri=nbd+unix:///?socket={}", self.socket.display()));
        fio.stderr(Stdio::null());
        fio
    }
}

/// An initiator that reads at random until this goes.
#[derive(Debug)]
pub(crate) struct Reader {
    _process: Process,
    _session: Session,
}

/// A job that is being done.
#[derive(Debug)]
pub(crate) struct Job {
    process: Process,
}

impl Job {
    /// Starts a job of this many requests, one after the other through the volume.
    pub(crate) fn begin(
        host: &Host,
        framework: Framework,
        kind: Kind,
        depth: u32,
        bytes: u64,
        requests: u64,
    ) -> anyhow::Result<Self> {
        let mut bench = bench(host, framework, kind, depth, bytes);
        bench.args(["-c", &requests.to_string()]).stdout(Stdio::piped());
        Ok(Self { process: Process::start(&mut bench, "qemu-img")? })
    }

    /// How long the client says that the job took, once it is done.
    pub(crate) fn took(&mut self) -> anyhow::Result<Option<Span>> {
        let Some(status) = self.process.child.try_wait()? else { return Ok(None) };
        let mut said = String::new();
        self.process.child.stdout.as_mut().context("qemu-img")?.read_to_string(&mut said)?;
        ensure!(status.success(), "qemu-img bench: {status}");
        let seconds =
            said.split("Run completed in ").nth(1).and_then(|rest| rest.split(' ').next()?.parse().ok());
        Ok(Some(Span::from_secs_f64(seconds.context("qemu-img says no time")?)))
    }
}
