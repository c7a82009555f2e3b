//! A coordinator, its node, and the commands that a case runs.

use std::ffi::OsStr;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

use super::s3::S3;
use crate::bed::{TestBed, output_of};
use crate::cores::{Cores, End};
use crate::servers::{Server, free_port};

/// What a case does with an object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Direction {
    Put,
    Get,
}

/// Where the node of a case is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    /// A directory of this machine.
    Local,
    /// A bucket of a server on this machine.
    S3,
}

/// The policy of a coordinator.
#[derive(Clone, Copy, Debug)]
pub(super) enum Policy {
    /// What most have.
    Default,
    /// No more than a node's peak is ever promised.
    Static,
}

/// A coordinator that serves until it is dropped.
pub(super) struct Coordinator {
    server: Server,
    state: PathBuf,
    file: PathBuf,
}

impl Coordinator {
    /// A coordinator with these nodes, as tables of its file. `name` names its files.
    ///
    /// # Errors
    /// If it does not start.
    pub(super) fn start(bed: &TestBed, name: &str, policy: Policy, nodes: &str) -> anyhow::Result<Self> {
        let (state, metrics) = (bed.scratch(&format!("{name}-state")), free_port()?);
        let policy = match policy {
            Policy::Default => "",
            Policy::Static => "policy = \"static\"\n",
        };
        let text =
            format!("[transfers]\nstate = \"{}\"\nmetrics = \"{metrics}\"\n{policy}{nodes}", state.display());
        let mut command = bed.cores().command(End::Server, bed.weir());
        command.args(["transfers", "serve"]);
        let server = Server::of_file(bed, name, command, &text, metrics)?;
        Ok(Self { server, state, file: bed.scratch(&format!("{name}.toml")) })
    }

    /// Its socket for clients of this machine.
    pub(super) fn socket(&self) -> PathBuf {
        self.state.join("coordinator.sock")
    }

    /// Where it tells its state.
    ///
    /// # Errors
    /// Never: it has an address.
    pub(super) fn metrics(&self) -> anyhow::Result<SocketAddr> {
        self.server.metrics().context("a coordinator with a status")
    }

    /// Its process.
    pub(super) fn pid(&self) -> u32 {
        self.server.pid()
    }
}

/// A node with its coordinator, and the files of a case.
pub(super) struct Site {
    weir: PathBuf,
    coordinator: Coordinator,
    /// The folder of what is made, on the disk with the served files. It is removed in the end.
    folder: tempfile::TempDir,
    s3: Option<S3>,
    cores: Cores,
}

impl Site {
    /// The site of the case of this name, or why there can be none on this machine.
    ///
    /// # Errors
    /// If a server does not start.
    pub(super) fn start(bed: &TestBed, name: &str, place: Place) -> anyhow::Result<Result<Self, String>> {
        let folder = tempfile::Builder::new().prefix("transfers.").tempdir_in(bed.images());
        let folder = folder.with_context(|| bed.images().display().to_string())?;
        let (s3, node) = match place {
            Place::Local => {
                let root = folder.path().join("node");
                fs::create_dir(&root).with_context(|| root.display().to_string())?;
                (None, format!("url = \"file://{}\"\n", root.display()))
            }
            Place::S3 => match S3::start(bed)? {
                Ok(s3) => {
                    let (url, credentials) = (s3.url(), s3.credentials().display().to_string());
                    (Some(s3), format!("url = \"{url}\"\ncredentials = \"{credentials}\"\n"))
                }
                Err(why) => return Ok(Err(why)),
            },
        };
        let coordinator = Coordinator::start(bed, name, Policy::Default, &format!("[node.n]\n{node}"))?;
        Ok(Ok(Self { weir: bed.weir().to_owned(), coordinator, folder, s3, cores: bed.cores() }))
    }

    /// The folder of the case's files.
    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The file of an object on a node in a directory.
    pub(super) fn object(&self, name: &str) -> PathBuf {
        self.folder().join("node").join(name)
    }

    /// `weir VERB` with these arguments.
    pub(super) fn weir(&self, verb: &str, arguments: &[&str]) -> Command {
        let mut command = self.client(&self.weir);
        command.arg(verb).args(arguments).arg("--server").arg(&self.coordinator.file);
        command
    }

    /// The server of S3, if the node is there.
    pub(super) const fn s3(&self) -> Option<&S3> {
        self.s3.as_ref()
    }

    /// A client, on the core for clients if there is a server on the other one.
    pub(super) fn client(&self, program: impl AsRef<OsStr>) -> Command {
        match self.s3 {
            Some(_) => self.cores.command(End::Client, program),
            None => Command::new(program),
        }
    }
}

/// Runs a command that must succeed.
///
/// # Errors
/// If it does not.
pub(super) fn run(command: &mut Command) -> anyhow::Result<()> {
    let line = format!("{command:?}");
    output_of(command, &line).map(drop)
}

/// Reads a file once, so that it is in the page cache.
///
/// # Errors
/// If it has another size.
pub(super) fn warm(file: &Path, bytes: u64) -> anyhow::Result<()> {
    let mut open = fs::File::open(file).with_context(|| file.display().to_string())?;
    let read = std::io::copy(&mut open, &mut std::io::sink()).with_context(|| file.display().to_string())?;
    ensure!(read == bytes, "{}: found {read} bytes; accepted: {bytes}", file.display());
    Ok(())
}
