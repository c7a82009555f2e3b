//! Linux's NBD client, file systems on its devices, and commands in the guest.

use std::path::PathBuf;
use std::process::{Command, Output};

use crate::harness::{Scene, Server, wait_until};

/// Connects the kernel to a server, and again to another one: `nbd-client` of Debian 12 cannot do the second.
const NETLINK: &str = include_str!("netlink.py");

/// A device `/dev/nbdN` that the kernel's client serves. Each test has its own.
pub(super) struct Disk {
    pub(super) path: String,
    number: u32,
}

/// A mounted file system.
pub(super) struct Mounted {
    pub(super) directory: PathBuf,
}

/// What a shell makes of `script`, in the guest.
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
    /// Connects the kernel to export `v` by so many connections, with `nbd-client`.
    pub(super) fn connect(server: &Server, number: u32, connections: u32) -> Self {
        let path = Self::prepare(number);
        shell(&format!("nbd-client -unix {} {path} -name v -connections {connections} >&2", server.socket));
        Self { path, number }
    }

    /// The same, but the kernel keeps what is not answered for two minutes if all connections break.
    pub(super) fn connect_patiently(server: &Server, number: u32, connections: u32) -> Self {
        let disk = Self { path: Self::prepare(number), number };
        disk.netlink("connect", server, connections);
        disk
    }

    /// Gives the kernel new connections for those that broke.
    pub(super) fn reconnect(&self, server: &Server, connections: u32) {
        self.netlink("reconnect", server, connections);
    }

    /// Disconnects it: what is under way fails. Without this the kernel waits 30 s for the answers of a
    /// server that is gone.
    pub(super) fn cut(&self) {
        shell(&format!("nbd-client -d {} >&2", self.path));
    }

    /// Waits until the kernel has let go of it, after it was cut and what used it has ended.
    pub(super) fn forget(self) {
        wait_until("the kernel has let go of the device", || {
            let size = std::fs::read_to_string(format!("/sys/block/nbd{}/size", self.number));
            !std::path::Path::new(&format!("/sys/block/nbd{}/pid", self.number)).exists()
                || size.is_ok_and(|size| size.trim() == "0")
        });
    }

    /// Disconnects it. What used it has ended.
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
    /// Unmounts it, also if its device is gone.
    pub(super) fn unmount(self) {
        shell(&format!("umount {}", self.directory.display()));
    }
}
