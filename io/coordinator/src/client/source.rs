//! Where the data of an object comes from: pieces, and at their end the checksum of all of them.
//!
//! A thread reads and hashes while the task sends the piece before. A source is read from its first byte on,
//! also if a transfer goes on in the middle: the checksum is that of the whole.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};

use super::ClientError;

/// How many bytes a piece has, but for the last.
pub(super) const PIECE: usize = 1 << 20;
/// How many pieces are read ahead.
pub(super) const AHEAD: usize = 4;

/// The pieces of a source.
pub(super) struct Pieces {
    pieces: mpsc::Receiver<Bytes>,
    end: oneshot::Receiver<Result<blake3::Hash, ClientError>>,
}

/// A file, as it was when a transfer of it was asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct FileSource {
    path: PathBuf,
    seen: Seen,
}

/// What tells whether a file is the same, and unchanged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Seen {
    device: u64,
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl FileSource {
    /// A regular file that can be read.
    pub(super) fn open(path: &Path) -> Result<Self, ClientError> {
        let (_, seen) = open(path)?;
        Ok(Self { path: path.to_owned(), seen })
    }

    /// Its size, in bytes.
    pub(super) const fn bytes(&self) -> u64 {
        self.seen.bytes
    }

    /// What names this very data: another run of the client goes on only with the same.
    pub(super) fn identity(&self) -> String {
        let Seen { device, inode, bytes, modified, changed } = self.seen;
        let [modified, changed] = [modified, changed].map(|(s, ns)| format!("{s}.{ns:09}"));
        format!("file {device:x}:{inode:x} {bytes} {modified} {changed}")
    }

    /// Its pieces. An error if it is not what it was, now or at the end.
    pub(super) fn pieces(&self) -> Pieces {
        let Self { path, seen } = self.clone();
        Pieces::of_thread(move |pieces| {
            let changed = || ClientError::Changed(path.clone());
            let (mut file, now) = open(&path)?;
            if now != seen {
                return Err(changed());
            }
            // A node would take more bytes than were announced for its own fault.
            let (hash, bytes) = hashed(&mut (&mut file).take(seen.bytes), &path, pieces)?;
            let after = file.metadata().map_err(|source| ClientError::File { path: path.clone(), source })?;
            if bytes != seen.bytes || Seen::of(&after) != seen {
                return Err(changed());
            }
            Ok(hash)
        })
    }
}

impl Seen {
    fn of(metadata: &std::fs::Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            bytes: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

impl Pieces {
    /// What a pipe has, until its end.
    pub(super) fn of_pipe(mut pipe: impl Read + Send + 'static) -> Self {
        let path = PathBuf::from("standard input");
        Self::of_thread(move |pieces| hashed(&mut pipe, &path, pieces).map(|(hash, _)| hash))
    }

    /// What another task sends. It sends the checksum at the end.
    pub(super) fn of_task(
        pieces: mpsc::Receiver<Bytes>,
        end: oneshot::Receiver<Result<blake3::Hash, ClientError>>,
    ) -> Self {
        Self { pieces, end }
    }

    fn of_thread(
        read: impl FnOnce(&mpsc::Sender<Bytes>) -> Result<blake3::Hash, ClientError> + Send + 'static,
    ) -> Self {
        let (sender, pieces) = mpsc::channel(AHEAD);
        let (end, ended) = oneshot::channel();
        tokio::task::spawn_blocking(move || {
            let done = read(&sender);
            let _ = end.send(done); // nobody wants it any more
        });
        Self { pieces, end: ended }
    }

    /// The next piece; `None` at the end, or if the source has failed: [`Pieces::checksum`] tells. The
    /// caller may drop the future and call again.
    pub(super) async fn next(&mut self) -> Option<Bytes> {
        self.pieces.recv().await
    }

    /// The checksum of all pieces.
    ///
    /// # Errors
    /// If the source could not be read to its end, or has changed.
    pub(super) async fn checksum(&mut self) -> Result<blake3::Hash, ClientError> {
        self.pieces.close();
        let gone = || ClientError::Corrupt("the source was given up before its end".to_owned());
        (&mut self.end).await.map_err(|_| gone())?
    }
}

/// Sends all pieces, and returns their checksum and their size.
fn hashed(
    from: &mut impl Read,
    path: &Path,
    to: &mpsc::Sender<Bytes>,
) -> Result<(blake3::Hash, u64), ClientError> {
    let wrong = |source| ClientError::File { path: path.to_owned(), source };
    let (mut hasher, mut bytes) = (blake3::Hasher::new(), 0);
    loop {
        let piece = piece(from).map_err(wrong)?;
        if piece.is_empty() {
            return Ok((hasher.finalize(), bytes));
        }
        hasher.update(&piece);
        bytes += piece.len() as u64;
        if to.blocking_send(piece).is_err() {
            return Err(wrong(io::Error::other("the transfer was given up")));
        }
    }
}

/// The next piece, whole unless it is the last.
fn piece(from: &mut impl Read) -> io::Result<Bytes> {
    let mut piece = Vec::with_capacity(PIECE);
    from.by_ref().take(PIECE as u64).read_to_end(&mut piece)?;
    Ok(piece.into())
}

fn open(path: &Path) -> Result<(File, Seen), ClientError> {
    let wrong = |source| ClientError::File { path: path.to_owned(), source };
    // A pipe's other end would otherwise be waited for.
    let file = rustix::fs::open(
        path,
        rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::NONBLOCK,
        rustix::fs::Mode::empty(),
    );
    let file = File::from(file.map_err(|error| wrong(error.into()))?);
    let metadata = file.metadata().map_err(wrong)?;
    if !metadata.is_file() {
        return Err(wrong(io::Error::other(
            "found something that is no regular file; accepted: a file, or - for a pipe",
        )));
    }
    Ok((file, Seen::of(&metadata)))
}
