//! A directory of a host that ssh can reach, as a node: SFTP version 3, as OpenSSH speaks it.
//!
//! A partial is a file in `.weir-partial`, below the root. When it is whole, it is made durable, and then
//! renamed to its name.
//!
//! - OpenSSH's server does not rename a file over something else. Other servers may, so the driver looks
//!   first. Two writers that finish at the same moment may then both succeed.
//! - The protocol has no locks. Only the id of a partial keeps its writers apart.
//! - Each operation starts a `ssh`, which takes some tenths of a second.
//! - Where links of the root lead is for the server to decide, within what this user may do there.
//!
//! | file | what it does |
//! |---|---|
//! | `session` | the program ssh, and requests over its pipes |
//! | `writer`, `reader` | bytes to a file and from it, several requests at a time |

mod reader;
mod session;
mod writer;

use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use russh_sftp::protocol::OpenFlags;

use crate::error::{ErrorKind, NodeError, within};
use crate::name::{Note, ObjectName, PARTIALS, PartialId};

pub(crate) use reader::Reader;
use session::Session;
pub(crate) use writer::Writer;

/// How long a host may take to say that it is there: ssh connects, and then both sides prove who they are.
const PROBE_PATIENCE: Duration = Duration::from_secs(8);

/// A directory of another host, in which objects are.
pub(crate) struct Host {
    /// The program to run for ssh.
    pub(crate) program: OsString,
    pub(crate) user: Option<String>,
    pub(crate) host: String,
    pub(crate) port: Option<u16>,
    /// The directory, without a slash at its end.
    pub(crate) root: String,
}

impl Host {
    pub(crate) async fn probe(&self) -> Result<(), NodeError> {
        let what = format!("root {}/", self.root);
        let probed = async {
            let session = self.session().await?;
            match session.stat(&what, &format!("{}/", self.root)).await? {
                Some(found) if found.is_dir() => Ok(()),
                _ => {
                    let accepted = "a directory that exists";
                    Err(NodeError::new(ErrorKind::Unreachable, &what, "no directory", accepted))
                }
            }
        };
        within(PROBE_PATIENCE, &what, probed).await.map_err(|error| match error.kind() {
            ErrorKind::Stalled => {
                NodeError::new(ErrorKind::Unreachable, &what, "no answer", "one within 8 seconds")
            }
            _ => error,
        })
    }

    pub(crate) async fn size(&self, name: &ObjectName) -> Result<Option<u64>, NodeError> {
        let what = format!("object {name}");
        let Some(found) = self.session().await?.stat(&what, &self.path(name)).await? else { return Ok(None) };
        session::size_of(&what, &found).map(Some)
    }

    pub(crate) async fn begin(&self, name: &ObjectName, id: &PartialId) -> Result<Writer, NodeError> {
        let (what, session) = (format!("partial {id}"), self.session().await?);
        let folder = format!("{}/{PARTIALS}", self.root);
        if session.stat(&what, &folder).await?.is_none() {
            session.make(&what, &folder).await?;
        }
        let (path, flags) = (self.partial(id), OpenFlags::READ | OpenFlags::WRITE);
        let handle = match session.open(&what, &path, flags | OpenFlags::CREATE | OpenFlags::EXCLUDE).await {
            // The protocol has no word for a file that exists already.
            Err(error) if error.kind() == ErrorKind::Other && session.stat(&what, &path).await?.is_some() => {
                let (found, accepted) = ("a partial with this id", "an id not in use");
                return Err(NodeError::new(ErrorKind::Exists, &what, found, accepted));
            }
            handle => handle?,
        };
        Ok(Writer::new(session, handle, 0, self.writing(name, id), vec![Note::file(id)]))
    }

    pub(crate) async fn resume(&self, name: &ObjectName, notes: &[Note]) -> Result<Writer, NodeError> {
        let id = Note::file_id(notes).ok_or_else(|| NodeError::gone("partial", "no note of one"))?;
        let (what, session) = (format!("partial {id}"), self.session().await?);
        let flags = OpenFlags::READ | OpenFlags::WRITE;
        let handle =
            session.open(&what, &self.partial(&id), flags).await.map_err(|error| match error.kind() {
                ErrorKind::NotFound => NodeError::gone(&what, "no such file"),
                _ => error,
            })?;
        let size = session.size(&what, &handle).await?;
        // A server may do requests out of order, so the last ones before an end may have left gaps.
        let whole = size.saturating_sub(session.window());
        Ok(Writer::new(session, handle, whole, self.writing(name, &id), Vec::new()))
    }

    pub(crate) async fn read(&self, name: &ObjectName, from: u64) -> Result<Reader, NodeError> {
        let (what, session) = (format!("object {name}"), self.session().await?);
        let handle = session.open(&what, &self.path(name), OpenFlags::READ).await;
        let handle = handle.map_err(|error| match error.kind() {
            ErrorKind::NotFound => NodeError::missing(&what),
            _ => error,
        })?;
        let size = session.size(&what, &handle).await?;
        Reader::new(what, session, handle, from, size)
    }

    pub(crate) async fn remove(&self, name: &ObjectName) -> Result<(), NodeError> {
        self.session().await?.remove(&format!("object {name}"), &self.path(name)).await.map(drop)
    }

    pub(crate) async fn make_durable(&self, name: &ObjectName) -> Result<(), NodeError> {
        let (session, what, path) = (self.session().await?, format!("object {name}"), self.path(name));
        let handle = session.open(&what, &path, OpenFlags::READ).await?;
        session.sync(&what, &handle).await?;
        session.close(&what, &handle).await?;
        session
            .sync_folder(match path.rsplit_once('/') {
                Some((folder, _)) if !folder.is_empty() => folder,
                _ => "/",
            })
            .await;
        Ok(())
    }

    pub(crate) async fn discard(&self, notes: &[Note]) -> Result<bool, NodeError> {
        let Some(id) = Note::file_id(notes) else { return Ok(false) };
        self.session().await?.remove(&format!("partial {id}"), &self.partial(&id)).await
    }

    async fn session(&self) -> Result<Arc<Session>, NodeError> {
        Session::connect(self).await.map(Arc::new)
    }

    fn writing(&self, name: &ObjectName, id: &PartialId) -> writer::Paths {
        let (partial, object) = (self.partial(id), self.path(name));
        let folders = name.folders().map(|folder| format!("{}/{folder}", self.root)).collect();
        writer::Paths {
            what: format!("object {name}"),
            root: format!("{}/", self.root),
            partial,
            object,
            folders,
        }
    }

    fn path(&self, name: &ObjectName) -> String {
        format!("{}/{name}", self.root)
    }

    fn partial(&self, id: &PartialId) -> String {
        format!("{}/{PARTIALS}/{id}", self.root)
    }
}
