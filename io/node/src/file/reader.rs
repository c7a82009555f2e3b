//! Bytes from a file: one thread reads, a few pieces ahead of the caller.

use std::collections::VecDeque;
use std::fs::File;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use rustix::fs::{Advice, fadvise};
use rustix::io::{Errno, pread};
use tokio::sync::mpsc;

use crate::error::{ErrorKind, NodeError, PATIENCE, within};
use crate::passed::Passed;

/// The bytes of a piece.
const PIECE: usize = 1 << 20;
/// The most bytes that are read at a time, so that those of a slow disk are counted as they come.
const AT_ONCE: usize = 128 << 10;
/// How many pieces the thread reads ahead.
const AHEAD: usize = 4;

/// How many pieces are kept to be used again: those of this thread, and those that a writer holds.
const KEPT: usize = 12;

/// A file that is being read.
pub(crate) struct Reader {
    what: String,
    size: u64,
    pieces: mpsc::Receiver<Result<Bytes, NodeError>>,
    arrived: Passed,
}

impl Reader {
    /// Starts a thread that reads the bytes of `file` from `from` to `size`.
    pub(super) fn start(what: String, file: Arc<File>, from: u64, size: u64) -> Result<Self, NodeError> {
        if from > size {
            return Err(NodeError::beyond(what, from, size));
        }
        let (sender, pieces) = mpsc::channel(AHEAD);
        let title = what.clone();
        let arrived = Passed::default();
        let count = arrived.clone();
        let run = move || {
            let _ = fadvise(&file, from, None, Advice::Sequential); // only an advice
            let (mut at, mut kept) = (from, Pieces::default());
            while at < size {
                let piece = kept.read(&file, at, size, &title, &count);
                let length = piece.as_ref().map_or(0, Bytes::len) as u64;
                at += length;
                // An error is the last thing to say, and the caller may have gone.
                if sender.blocking_send(piece).is_err() || length == 0 {
                    return;
                }
            }
        };
        std::thread::Builder::new().spawn(run).map_err(|error| NodeError::io(&what, &error))?;
        Ok(Self { what, size, pieces, arrived })
    }

    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    pub(crate) fn arrived(&self) -> Passed {
        self.arrived.clone()
    }

    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, NodeError> {
        within(PATIENCE, &self.what, async { self.pieces.recv().await.transpose() }).await
    }
}

/// Pieces that have been handed out. A piece that nobody else holds any more is used again: the kernel clears
/// each page of new memory, which takes about as long as to copy it.
#[derive(Default)]
struct Pieces(VecDeque<Bytes>);

impl Pieces {
    /// Memory for the next piece of `length` bytes.
    fn take(&mut self, length: usize) -> BytesMut {
        let is_free = |piece: &Bytes| piece.is_unique() && piece.len() == length;
        let reused = if self.0.front().is_some_and(is_free) { self.0.pop_front() } else { None };
        let reused = reused.and_then(|piece| piece.try_into_mut().ok());
        reused.unwrap_or_else(|| BytesMut::zeroed(length))
    }

    /// Keeps a piece for later, and forgets the oldest if there are too many.
    fn hand_out(&mut self, piece: BytesMut) -> Bytes {
        let piece = piece.freeze();
        if self.0.len() == KEPT {
            self.0.pop_front();
        }
        self.0.push_back(piece.clone());
        piece
    }

    /// The bytes at `at`: at least one, and none at `size` or behind it.
    fn read(
        &mut self,
        file: &File,
        at: u64,
        size: u64,
        what: &str,
        arrived: &Passed,
    ) -> Result<Bytes, NodeError> {
        let length = usize::try_from(size - at).unwrap_or(PIECE).min(PIECE);
        let mut piece = self.take(length);
        let (mut rest, mut next) = (&mut *piece, at);
        while !rest.is_empty() {
            let most = rest.len().min(AT_ONCE);
            match pread(file, rest.get_mut(..most).unwrap_or_default(), next) {
                Ok(0) => {
                    let accepted = format_args!("{size}, the size at the beginning");
                    return Err(NodeError::new(
                        ErrorKind::Other,
                        what,
                        format_args!("{next} bytes"),
                        accepted,
                    ));
                }
                Ok(count) => {
                    next += count as u64;
                    arrived.add(count as u64);
                    rest = rest.get_mut(count..).unwrap_or_default();
                }
                Err(Errno::INTR) => {}
                Err(error) => return Err(NodeError::io(what, &error.into())),
            }
        }
        Ok(self.hand_out(piece))
    }
}
