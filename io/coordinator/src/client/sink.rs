//! Where the data of an object goes to on the client's side.
//!
//! A thread writes while the task reads and hashes the next piece.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use rustix::fs::{Advice, CWD, RenameFlags, fadvise, renameat_with};
use rustix::io::Errno;
use tokio::sync::{mpsc, oneshot};

use super::ClientError;
use super::source::{AHEAD, PIECE};

/// A place for the data of one object.
#[derive(Debug)]
pub(super) struct Sink {
    pieces: mpsc::Sender<Bytes>,
    /// How many bytes it has, those from before included.
    taken: u64,
    hasher: blake3::Hasher,
    end: oneshot::Receiver<io::Result<()>>,
    path: PathBuf,
}

/// A file that does not exist yet, and the partial file beside it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct FileTarget {
    path: PathBuf,
}

impl FileTarget {
    /// A file of which there is none yet.
    ///
    /// # Errors
    /// If there is something of that name.
    pub(super) fn new(path: PathBuf) -> Result<Self, ClientError> {
        if path.symlink_metadata().is_ok() {
            return Err(ClientError::Wrong(format!(
                "{}: found a file of that name; accepted: another one (--output PATH), or - for standard output",
                path.display()
            )));
        }
        if path.file_name().is_none() {
            return Err(ClientError::Wrong(format!("{}: accepted: the name of a file", path.display())));
        }
        Ok(Self { path })
    }

    /// The partial file of the object with this checksum: data of another object is never continued.
    fn partial(&self, checksum: &blake3::Hash) -> PathBuf {
        let mut name = std::ffi::OsString::from(".");
        name.push(self.path.file_name().expect("checked when it was made"));
        name.push(format!(".weir-{}", &checksum.to_hex()[..16]));
        self.path.with_file_name(name)
    }

    /// Opens the partial file, and goes on behind what it has.
    pub(super) async fn open(&self, checksum: &blake3::Hash, bytes: u64) -> Result<Sink, ClientError> {
        let path = self.partial(checksum);
        let here = path.clone();
        let opened = tokio::task::spawn_blocking(move || {
            let mut file =
                OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&here)?;
            let flags = rustix::fs::FlockOperation::NonBlockingLockExclusive;
            rustix::fs::flock(&file, flags).map_err(|_| {
                io::Error::other("found another transfer that writes it; accepted: one at a time")
            })?;
            let mut hasher = blake3::Hasher::new();
            let mut offset = hash(&mut file, &mut hasher)?;
            if offset > bytes {
                file.set_len(0)?;
                file.rewind()?;
                (offset, hasher) = (0, blake3::Hasher::new());
            }
            Ok((file, hasher, offset))
        });
        let wrong = |source| ClientError::File { path: path.clone(), source };
        let opened: io::Result<_> = opened.await.unwrap_or_else(|error| Err(io::Error::other(error)));
        let (file, hasher, offset) = opened.map_err(wrong)?;
        let file = FlushedFile { file, written: offset, flushed: offset };
        Ok(Sink::of(file, hasher, offset, path))
    }

    /// Gives the complete partial file its name, durably.
    pub(super) async fn finish(&self, checksum: &blake3::Hash) -> Result<(), ClientError> {
        let (partial, path) = (self.partial(checksum), self.path.clone());
        let wrong = |source| ClientError::File { path: self.path.clone(), source };
        let finished = tokio::task::spawn_blocking(move || {
            File::open(&partial)?.sync_all()?;
            match renameat_with(CWD, &partial, CWD, &path, RenameFlags::NOREPLACE) {
                Ok(()) => {}
                // A file system that cannot, such as NFS: a link does not replace anything either.
                Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                    fs::hard_link(&partial, &path)?;
                    fs::remove_file(&partial)?;
                }
                Err(error) => return Err(error.into()),
            }
            let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
            File::open(parent.unwrap_or_else(|| Path::new(".")))?.sync_all()
        });
        finished.await.unwrap_or_else(|error| Err(io::Error::other(error))).map_err(wrong)
    }

    /// Removes the partial file: its data is not what was stored.
    pub(super) async fn discard(&self, checksum: &blake3::Hash) {
        let partial = self.partial(checksum);
        let _ = tokio::task::spawn_blocking(move || fs::remove_file(partial)).await; // it may be gone
    }
}

impl Sink {
    /// Where the data is only hashed.
    pub(super) fn nowhere() -> Self {
        Self::of(io::sink(), blake3::Hasher::new(), 0, PathBuf::new())
    }

    /// Standard output.
    pub(super) fn stdout() -> Self {
        Self::of(io::stdout(), blake3::Hasher::new(), 0, PathBuf::from("standard output"))
    }

    /// Another task of this process.
    pub(super) fn task(to: mpsc::Sender<Bytes>) -> Self {
        Self::of(ToTask(to), blake3::Hasher::new(), 0, PathBuf::from("the other transfer"))
    }

    fn of(mut to: impl Write + Send + 'static, hasher: blake3::Hasher, taken: u64, path: PathBuf) -> Self {
        let (pieces, mut received) = mpsc::channel::<Bytes>(AHEAD);
        let (end, ended) = oneshot::channel();
        tokio::task::spawn_blocking(move || {
            let mut write = || {
                while let Some(piece) = received.blocking_recv() {
                    to.write_all(&piece)?;
                }
                to.flush()
            };
            let _ = end.send(write()); // nobody wants it any more
        });
        Self { pieces, taken, hasher, end: ended, path }
    }

    /// How many bytes it has.
    pub(super) const fn taken(&self) -> u64 {
        self.taken
    }

    /// Takes a piece. Says whether it was taken: if not, [`Sink::checksum`] says why. If the caller drops the
    /// future, the piece was not taken.
    pub(super) async fn take(&mut self, piece: Bytes) -> bool {
        let is_taken = self.pieces.send(piece.clone()).await.is_ok();
        if is_taken {
            self.hasher.update(&piece);
            self.taken += piece.len() as u64;
        }
        is_taken
    }

    /// The checksum of everything that is there.
    ///
    /// # Errors
    /// If it could not be written.
    pub(super) async fn checksum(self) -> Result<blake3::Hash, ClientError> {
        drop(self.pieces);
        let path = self.path;
        let ended = self.end.await.unwrap_or_else(|_| Err(io::Error::other("the thread has ended")));
        ended.map(|()| self.hasher.finalize()).map_err(|source| ClientError::File { path, source })
    }
}

/// How many bytes the kernel gathers before the disk begins with them.
const FLUSHED: u64 = 16 << 20;

/// A file whose data the disk begins with early, so that the sync at the end finds little to do.
struct FlushedFile {
    file: File,
    written: u64,
    flushed: u64,
}

impl Write for FlushedFile {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let count = self.file.write(data)?;
        self.written += count as u64;
        if self.written - self.flushed >= FLUSHED {
            let length = NonZeroU64::new(self.written - self.flushed);
            let _ = fadvise(&self.file, self.flushed, length, Advice::DontNeed); // the sync does it, too
            self.flushed = self.written;
        }
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// A channel to another task, as a writer.
struct ToTask(mpsc::Sender<Bytes>);

impl Write for ToTask {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let sent = self.0.blocking_send(Bytes::copy_from_slice(data));
        sent.map(|()| data.len()).map_err(|_| io::Error::other("it was given up"))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn hash(from: &mut File, hasher: &mut blake3::Hasher) -> io::Result<u64> {
    let mut bytes = 0;
    let mut piece = vec![0; PIECE];
    loop {
        match from.read(&mut piece)? {
            0 => return Ok(bytes),
            length => {
                hasher.update(&piece[..length]);
                bytes += length as u64;
            }
        }
    }
}
