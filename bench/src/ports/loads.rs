//! The clients on the hosts: fio's loads, and writers that remember what was flushed.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use anyhow::{Context, ensure};

use super::network::on_host;

/// A load on a volume from one host, until it is dropped.
#[derive(Debug)]
pub(super) struct Load {
    child: Child,
}

impl Load {
    /// `light` and `heavy` of the paper: 16 KiB at random, 90 % reads, with `threads` requests outstanding.
    ///
    /// # Errors
    /// If fio cannot be run.
    pub(super) fn start(host: usize, uri: &str, threads: u32) -> anyhow::Result<Self> {
        let mut command = on_host(host, "fio");
        command.args(["--name=load", "--ioengine=nbd", "--rw=randrw", "--rwmixread=90", "--bs=16k"]);
        // A thread of fio dies with its process. Its worker processes would not.
        command.args([
            "--thread",
            "--norandommap",
            "--randrepeat=0",
            "--time_based",
            "--runtime=1h",
            "--eta=never",
        ]);
        command.arg(format!("--uri={uri}")).arg(format!("--iodepth={threads}"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(Self { child: command.spawn().context("fio cannot be run")? })
    }

    /// # Errors
    /// If the load has ended, which happens only if a request failed.
    pub(super) fn check(&mut self) -> anyhow::Result<()> {
        let ended = self.child.try_wait()?;
        ensure!(ended.is_none(), "a client has ended: {ended:?}");
        Ok(())
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        let _ = self.child.kill().and_then(|()| self.child.wait()); // it has ended by itself
    }
}

/// Writes block after block of a part of a volume, and flushes. It goes on whatever happens to its gateway.
#[derive(Debug)]
pub(super) struct Writer {
    child: Child,
    flushed: Receiver<u64>,
    last: u64,
}

/// Debian's Python. Its libnbd package is for no other Python.
const PYTHON: &str = "/usr/bin/python3";

const WRITER: &str = include_str!("writer.py");

impl Writer {
    /// # Errors
    /// If Python cannot be run.
    pub(super) fn start(host: usize, uri: &str) -> anyhow::Result<Self> {
        let mut command = on_host(host, PYTHON);
        command.arg("-c").arg(script(&["write", uri, &host.to_string()]));
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().context("python3 cannot be run")?;
        let lines = BufReader::new(child.stdout.take().context("its output is a pipe")?).lines();
        let (sender, flushed) = channel();
        thread::spawn(move || {
            for number in lines.map_while(Result::ok).filter_map(|line| line.parse().ok()) {
                if sender.send(number).is_err() {
                    break;
                }
            }
        });
        Ok(Self { child, flushed, last: 0 })
    }

    /// The number of blocks that are flushed by now.
    ///
    /// # Errors
    /// If the writer has ended.
    pub(super) fn flushed(&mut self) -> anyhow::Result<u64> {
        let ended = self.child.try_wait()?;
        ensure!(ended.is_none(), "a writer has ended: {ended:?}");
        self.last = self.flushed.try_iter().last().unwrap_or(self.last);
        Ok(self.last)
    }

    /// Ends the writer, and returns the number of flushed blocks.
    ///
    /// # Errors
    /// If the writer has ended before.
    pub(super) fn end(mut self) -> anyhow::Result<u64> {
        self.flushed()?;
        self.child.kill()?;
        self.child.wait()?;
        self.last = self.flushed.iter().last().unwrap_or(self.last);
        Ok(self.last)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let _ = self.child.kill().and_then(|()| self.child.wait()); // it has ended by itself
    }
}

/// The script with its arguments, which are text without quotes.
fn script(arguments: &[&str]) -> String {
    format!("arguments = {arguments:?}\n{WRITER}")
}

/// Checks that the first `blocks` of a host's writer hold what it wrote.
///
/// # Errors
/// If they do not, or cannot be read.
pub(super) fn verify(uri: &str, host: usize, blocks: u64) -> anyhow::Result<()> {
    let mut child = Command::new(PYTHON)
        .arg("-c")
        .arg(script(&["verify", uri, &host.to_string(), &blocks.to_string()]))
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .context("python3 cannot be run")?;
    let mut said = String::new();
    child.stderr.take().context("its errors are a pipe")?.read_to_string(&mut said)?;
    ensure!(child.wait()?.success(), "of the {blocks} blocks that host {host} had flushed: {}", said.trim());
    Ok(())
}
