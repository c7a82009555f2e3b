//! Bytes from a file: one thread reads, a few pieces ahead of the caller.

use std::fs::File;
use std::sync::Arc;

use bytes::Bytes;
use rustix::buffer::spare_capacity;
use rustix::fs::{Advice, fadvise};
use rustix::io::{Errno, pread};
use tokio::sync::mpsc;

use crate::error::{ErrorKind, NodeError, PATIENCE, within};

/// The bytes of a piece.
const PIECE: usize = 1 << 20;
/// How many pieces the thread reads ahead.
const AHEAD: usize = 4;

/// A file that is being read.
pub(crate) struct Reader {
    what: String,
    size: u64,
    pieces: mpsc::Receiver<Result<Bytes, NodeError>>,
}

impl Reader {
    /// Starts a thread that reads the bytes of `file` from `from` to `size`.
    pub(super) fn start(what: String, file: Arc<File>, from: u64, size: u64) -> Result<Self, NodeError> {
        if from > size {
            return Err(NodeError::beyond(what, from, size));
        }
        let (sender, pieces) = mpsc::channel(AHEAD);
        let title = what.clone();
        let run = move || {
            let _ = fadvise(&file, from, None, Advice::Sequential); // only an advice
            let mut at = from;
            while at < size {
                let piece = read(&file, at, size, &title);
                let length = piece.as_ref().map_or(0, Bytes::len) as u64;
                at += length;
                // An error is the last thing to say, and the caller may have gone.
                if sender.blocking_send(piece).is_err() || length == 0 {
                    return;
                }
            }
        };
        std::thread::Builder::new().spawn(run).map_err(|error| NodeError::io(&what, &error))?;
        Ok(Self { what, size, pieces })
    }

    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, NodeError> {
        within(PATIENCE, &self.what, async { self.pieces.recv().await.transpose() }).await
    }
}

/// The bytes at `at`: at least one, and none at `size` or behind it.
fn read(file: &File, at: u64, size: u64, what: &str) -> Result<Bytes, NodeError> {
    let length = usize::try_from(size - at).unwrap_or(PIECE).min(PIECE);
    let mut piece = Vec::with_capacity(length);
    while piece.len() < length {
        let next = at + piece.len() as u64;
        match pread(file, spare_capacity(&mut piece), next) {
            Ok(0) => {
                let accepted = format_args!("{size}, the size at the beginning");
                return Err(NodeError::new(ErrorKind::Other, what, format_args!("{next} bytes"), accepted));
            }
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(NodeError::io(what, &error.into())),
        }
    }
    piece.truncate(length);
    Ok(piece.into())
}
