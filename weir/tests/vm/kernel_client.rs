//! Linux's NBD client, file systems on its devices, and commands in the guest.

use std::path::PathBuf;
use std::process::{Command, Output};

use crate::harness::{Scene, Server, wait_until};

/// Connects the kernel to a server, and later to another one, which `nbd-client` of Debian 12 cannot do.
const NETLINK: &str = include_str!("netlink.py");

/// A device `/dev/nbdN` of the kernel's client. Each test has its own.
pub(super) struct Disk {
    pub(super) path: String,
    number: u32,
}

/// A mounted file system.
pub(super) struct Mounted {
    pub(super) directory: PathBuf,
}

/// Runs `script` in a shell, in the guest.
///
/// # Panics
/// Outside of the guest.
pub(super) fn attempt(script: &str) -> Output {
    assert!(std::path::Path::new("/run/vm").exists(), "this is for the guest of scripts/run-in-vm");
    Command::new("bash").args(["-c", &format!("set -e; {script}")]).output().expect("there is a shell")
}

/// The standard output of `script`.
///
/// # Panics
/// If it fails.
pub(super) fn shell(script: &str) -> String {
    let Output { status, stdout, stderr } = attempt(script);
    let (out, log) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{script}\n{status}\n{out}\n{log}\n{}", kernel_log());
    out.into_owned()
}

fn kernel_log() -> String {
    String::from_utf8_lossy(&attempt("dmesg | tail -20").stdout).into_owned()
}

impl Disk {
    /// Connects the kernel to export `v` by this number of connections, with `nbd-client`.
    pub(super) fn connect(server: &Server, number: u32, connections: u32) -> Self {
        let path = Self::prepare(number);
        shell(&format!("nbd-client -unix {} {path} -name v -connections {connections} >&2", server.socket));
        Self { path, number }
    }

    /// The same, but if all connections break, the kernel keeps unanswered requests for two minutes.
    pub(super) fn connect_patiently(server: &Server, number: u32, connections: u32) -> Self {
        let disk = Self { path: Self::prepare(number), number };
        disk.netlink("connect", server, connections);
        disk
    }

    /// Gives the kernel new connections for the broken ones.
    pub(super) fn reconnect(&self, server: &Server, connections: u32) {
        self.netlink("reconnect", server, connections);
    }

    /// Disconnects the device: requests under way fail. Without this the kernel waits 30 s for the answers of
    /// a server that is gone.
    pub(super) fn cut(&self) {
        shell(&format!("nbd-client -d {} >&2", self.path));
    }

    /// Waits until the kernel has released the device, after it was cut and its users have ended.
    pub(super) fn forget(self) {
        wait_until("the kernel has let go of the device", || {
            let size = std::fs::read_to_string(format!("/sys/block/nbd{}/size", self.number));
            !std::path::Path::new(&format!("/sys/block/nbd{}/pid", self.number)).exists()
                || size.is_ok_and(|size| size.trim() == "0")
        });
    }

    /// Disconnects the device. Its users must have ended.
    pub(super) fn disconnect(self) {
        self.cut();
        self.forget();
    }

    fn prepare(number: u32) -> String {
        let path = format!("/dev/nbd{number}");
        shell(&format!("modprobe nbd; udevadm settle || true; test -b {path}"));
        path
    }

    fn netlink(&self, what: &str, server: &Server, connections: u32) {
        let output = Command::new("/usr/bin/python3")
            .args(["-c", NETLINK, what, &server.socket, "v"])
            .args([self.number.to_string(), connections.to_string()])
            .output()
            .expect("there is a Python");
        assert!(output.status.success(), "{}\n{}", String::from_utf8_lossy(&output.stderr), kernel_log());
    }

    /// Mounts its file system.
    pub(super) fn mount(&self, scene: &Scene) -> Mounted {
        let directory = scene.file("mounted");
        shell(&format!("mkdir -p {0}; mount {1} {0}", directory.display(), self.path));
        Mounted { directory }
    }
}

impl Mounted {
    /// Unmounts it, even if its device is gone.
    pub(super) fn unmount(self) {
        shell(&format!("umount {}", self.directory.display()));
    }
}
