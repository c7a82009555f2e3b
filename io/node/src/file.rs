//! A directory of this host as a node.
//!
//! A partial is a file in `.weir-partial`, below the root and so on the same file system. When it is whole,
//! it is made durable, and then renamed to its name. The kernel refuses to rename it over something else.
//!
//! | file | what it does |
//! |---|---|
//! | `beneath` | paths that cannot leave the root |
//! | `writer`, `reader` | bytes to a file and from it, on a thread, a few pieces ahead |

mod beneath;
mod reader;
mod writer;

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{FlockOperation, OFlags, flock, fstat};
use rustix::io::Errno;

use crate::error::{ErrorKind, NodeError, PATIENCE, PROBE_PATIENCE, patience};
use crate::name::{Note, ObjectName, PartialId};
use crate::thread::{OneAtATime, on_thread};

use beneath::Root;
pub(crate) use reader::Reader;
pub(crate) use writer::Writer;

/// How long to wait for the lock of a partial. A writer that was dropped may still write a few pieces.
const LOCK_PATIENCE: Duration = Duration::from_secs(2);

/// A directory in which objects are.
pub(crate) struct Directory {
    root: Arc<PathBuf>,
    probes: OneAtATime<()>,
}

impl Directory {
    pub(crate) fn new(root: PathBuf) -> Self {
        Self { root: Arc::new(root), probes: OneAtATime::default() }
    }

    pub(crate) async fn probe(&self) -> Result<(), NodeError> {
        let (root, what) = (self.root.clone(), format!("root {}", self.root.display()));
        let probed = self.probes.call(PROBE_PATIENCE, &what, move || Root::open(&root)?.check()).await;
        probed.map_err(|error| match error.kind() {
            ErrorKind::Stalled => {
                let found = "no answer, as of a mount whose server is gone";
                NodeError::new(ErrorKind::Unreachable, what, found, "one within 5 seconds")
            }
            _ => error,
        })
    }

    pub(crate) async fn size(&self, name: &ObjectName) -> Result<Option<u64>, NodeError> {
        let (what, name) = (format!("object {name}"), name.clone());
        self.on_root(&what.clone(), move |root| match root.beneath(name.as_str(), OFlags::PATH) {
            Ok(object) => size_of(&what, &File::from(object)).map(Some),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            Err(error) => Err(NodeError::io(&what, &error.into())),
        })
        .await
    }

    pub(crate) async fn begin(&self, name: &ObjectName, id: &PartialId) -> Result<Writer, NodeError> {
        let (what, id) = (format!("partial {id}"), id.clone());
        let (title, opened) = (what.clone(), id.clone());
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
        let file = self.on_root(&what, move |root| root.partial(&opened, flags, &title)).await?;
        let file = self.locked(&what, file, &id).await?;
        Writer::start(self.root.clone(), name.clone(), id.clone(), file, 0, vec![Note::file(&id)])
    }

    pub(crate) async fn resume(&self, name: &ObjectName, notes: &[Note]) -> Result<Writer, NodeError> {
        let id = Note::file_id(notes).ok_or_else(|| NodeError::gone("partial", "no note of one"))?;
        let (what, opened) = (format!("partial {id}"), id.clone());
        let title = what.clone();
        let open = move |root: &Root| root.partial(&opened, OFlags::RDWR, &title);
        let missing = |error: NodeError| match error.kind() {
            ErrorKind::NotFound => NodeError::gone(&what, "no such file"),
            _ => error,
        };
        let file = self.on_root(&what, open).await.map_err(missing)?;
        let file = self.locked(&what, file, &id).await?;
        let size = size_of(&what, &file)?;
        Writer::start(self.root.clone(), name.clone(), id, file, size, Vec::new())
    }

    pub(crate) async fn read(&self, name: &ObjectName, from: u64) -> Result<Reader, NodeError> {
        let (what, name) = (format!("object {name}"), name.clone());
        let title = what.clone();
        // Without NONBLOCK, opening a pipe would wait for its writer.
        let open = move |root: &Root| match root.beneath(name.as_str(), OFlags::RDONLY | OFlags::NONBLOCK) {
            Ok(object) => {
                let object = File::from(object);
                size_of(&title, &object).map(|size| (object, size))
            }
            Err(Errno::NOENT | Errno::NOTDIR) => Err(NodeError::missing(&title)),
            Err(error) => Err(NodeError::io(&title, &error.into())),
        };
        let (object, size) = self.on_root(&what, open).await?;
        Reader::start(what, Arc::new(object), from, size)
    }

    pub(crate) async fn remove(&self, name: &ObjectName) -> Result<(), NodeError> {
        let name = name.clone();
        self.on_root(&format!("object {name}"), move |root| root.remove(&name)).await
    }

    pub(crate) async fn make_durable(&self, name: &ObjectName) -> Result<(), NodeError> {
        let (root, what, name) = (self.root.clone(), format!("object {name}"), name.clone());
        on_thread(patience(writer::CACHED), &what, move || Root::open(&root)?.make_durable(&name)).await
    }

    pub(crate) async fn discard(&self, notes: &[Note]) -> Result<bool, NodeError> {
        let Some(id) = Note::file_id(notes) else { return Ok(false) };
        self.on_root(&format!("partial {id}"), move |root| root.discard(&id)).await
    }

    /// Runs `work` on a thread, in the root.
    async fn on_root<T: Send + 'static>(
        &self,
        what: &str,
        work: impl FnOnce(&Root) -> Result<T, NodeError> + Send + 'static,
    ) -> Result<T, NodeError> {
        let root = self.root.clone();
        on_thread(PATIENCE, what, move || work(&Root::open(&root)?)).await
    }

    /// The open partial, which no other writer has. It is still the partial: another writer may have finished
    /// it between our opening it and our lock, and then the file is an object that must not change.
    async fn locked(&self, what: &str, file: File, id: &PartialId) -> Result<File, NodeError> {
        let (root, id, title) = (self.root.clone(), id.clone(), what.to_owned());
        let lock = move || {
            flock(&file, FlockOperation::LockExclusive)
                .map_err(|error| NodeError::io(&title, &error.into()))?;
            let is_partial = Root::open(&root)?.is_partial(&id, &file);
            is_partial.then_some(file).ok_or_else(|| NodeError::gone(&title, "a partial that was finished"))
        };
        on_thread(LOCK_PATIENCE, what, lock).await.map_err(|error| match error.kind() {
            ErrorKind::Stalled => {
                NodeError::new(ErrorKind::Other, what, "another writer", "one writer of a partial at a time")
            }
            _ => error,
        })
    }
}

/// The size of a regular file, in bytes.
fn size_of(what: &str, file: &File) -> Result<u64, NodeError> {
    let metadata = fstat(file).map_err(|error| NodeError::io(what, &error.into()))?;
    if !rustix::fs::FileType::from_raw_mode(metadata.st_mode).is_file() {
        let found = "something that is no regular file";
        return Err(NodeError::new(ErrorKind::Other, what, found, "a regular file"));
    }
    Ok(u64::try_from(metadata.st_size).unwrap_or_default())
}
