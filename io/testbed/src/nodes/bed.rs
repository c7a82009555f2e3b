//! The nodes of a bed: a plain directory, a WebDAV server and an S3 server, each behind what makes it slow.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use tempfile::TempDir;
use weir_node::{Credentials, Node};
use weir_node_servers::Server;

use super::directory::Directory;
use super::relay;
use super::shaper::Shaper;

/// Three nodes that run until this is dropped, and a folder for everything else.
pub(super) struct Bed {
    pub(super) shaper: Shaper,
    directory: Directory,
    webdav: Server,
    s3: Server,
    relays: [SocketAddr; 2],
    /// The node that is down: a directory, unless it is not there.
    lost: PathBuf,
    /// In memory, so that no disk is part of the run.
    folder: TempDir,
}

/// What a node of a run really is, by its place.
pub(super) const PLACES: [&str; 4] = ["S3 (moto)", "directory", "WebDAV (wsgidav)", "directory that is away"];

impl Bed {
    /// Starts the nodes.
    ///
    /// # Errors
    /// If this machine lacks a part of them.
    pub(super) async fn start(shaper: Shaper) -> anyhow::Result<Self> {
        let folder = tempfile::Builder::new().prefix("weir-nodes-").tempdir_in("/dev/shm");
        let folder = folder.context("/dev/shm")?;
        let directory = Directory::mount(shaper.clone(), 1, folder.path())?;
        let found = |what: Result<Server, String>| what.map_err(|lacks| anyhow!("found {lacks}"));
        let (s3, webdav) = (found(Server::s3())?, found(Server::webdav())?);
        let relay = async |place, server: &Server| {
            let address = server.address().parse().context("the address of a server")?;
            relay::start(shaper.clone(), place, address).await
        };
        let relays = [relay(0, &s3).await?, relay(2, &webdav).await?];
        let lost = folder.path().join("away");
        Ok(Self { directory, webdav, s3, relays, lost, folder, shaper })
    }

    /// The nodes, by their places.
    ///
    /// # Errors
    /// If one cannot be used.
    pub(super) fn nodes(&self) -> anyhow::Result<[Node; 4]> {
        let file = |path: &Path| open(&format!("file://{}", path.display()), None);
        Ok([
            open(&through(&self.s3, self.relays[0]), self.s3.credentials())?,
            file(self.directory.path())?,
            open(&through(&self.webdav, self.relays[1]), self.webdav.credentials())?,
            file(&self.lost)?,
        ])
    }

    /// Makes the last node there or not.
    ///
    /// # Errors
    /// If its directory cannot be changed.
    pub(super) fn set_away(&self, is_away: bool) -> anyhow::Result<()> {
        let (from, to) = match is_away {
            true => (self.lost.clone(), self.lost.with_extension("kept")),
            false => (self.lost.with_extension("kept"), self.lost.clone()),
        };
        if from.exists() {
            std::fs::rename(&from, &to).context("the directory that is away")?;
        } else if !is_away {
            std::fs::create_dir_all(&to).context("the directory that is away")?;
        }
        Ok(())
    }

    /// A folder in memory.
    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }
}

fn through(server: &Server, relay: SocketAddr) -> String {
    server.location().replace(&server.address(), &relay.to_string())
}

fn open(location: &str, credentials: Option<PathBuf>) -> anyhow::Result<Node> {
    let read = |path: PathBuf| Credentials::read(&path).context("the credentials of a node");
    let credentials = credentials.map(read).transpose()?;
    let location = location.parse().with_context(|| format!("the location {location}"))?;
    Ok(Node::open(location, credentials.as_ref())?)
}
