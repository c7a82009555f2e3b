//! A network of its own, in which next to nothing waits in the kernel.
//!
//! What a client has handed to the kernel counts as sent. On a real network that is little beside an object.
//! The objects here are small, and the kernel would take a megabyte on the loopback device: a node that does
//! 20 MB/s would seem to do 100.

use anyhow::{Context, ensure};
use nix::sched::{CloneFlags, unshare};

use crate::shell::shell;

/// The least, the usual and the most bytes that the kernel takes of a connection.
const TAKEN: &str = "4096 16384 65536";

/// From now on, this thread and those that it starts have a network of their own.
///
/// # Errors
/// If the user is not root.
pub(super) fn have_its_own() -> anyhow::Result<()> {
    ensure!(rustix::process::geteuid().is_root(), "found an ordinary user; accepted: root");
    unshare(CloneFlags::CLONE_NEWNET).context("a network namespace")?;
    shell("ip link set lo up")?;
    // This file is that of the thread's network.
    std::fs::write("/proc/sys/net/ipv4/tcp_wmem", TAKEN).context("/proc/sys/net/ipv4/tcp_wmem")
}
