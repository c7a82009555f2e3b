//! Bytes to a partial: one thread writes, while the caller fetches the next pieces.

use std::fs::File;
use std::num::NonZeroU64;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use rustix::fs::{Advice, fadvise};
use tokio::sync::{mpsc, oneshot};

use super::Reader;
use super::beneath::Root;
use crate::error::{NodeError, PATIENCE, patience, while_sending};
use crate::name::{Note, ObjectName, PartialId};
use crate::passed::Passed;

/// How many pieces may wait for the thread.
const AHEAD: usize = 4;

/// The most bytes that are taken to be in the kernel's cache when a file is made durable.
pub(super) const CACHED: u64 = 1 << 30;

/// How many bytes are written at once.
const AT_ONCE: usize = 128 << 10;

/// How many bytes the kernel gathers before the disk begins with them.
const FLUSHED: u64 = 16 << 20;

/// A partial that is being written.
pub(crate) struct Writer {
    what: String,
    file: Arc<File>,
    orders: mpsc::Sender<Order>,
    outcome: oneshot::Receiver<Result<(), NodeError>>,
    written: Passed,
    notes: Vec<Note>,
}

/// What the thread is to do next.
enum Order {
    Write(Bytes),
    Finish,
}

impl Writer {
    /// Starts a thread that writes to `file` from byte `from`.
    pub(super) fn start(
        root: Arc<PathBuf>,
        name: ObjectName,
        id: PartialId,
        file: File,
        from: u64,
        notes: Vec<Note>,
    ) -> Result<Self, NodeError> {
        let (orders, queue) = mpsc::channel(AHEAD);
        let (sender, outcome) = oneshot::channel();
        let (what, file) = (format!("partial {id}"), Arc::new(file));
        let written = Passed::new(from);
        let task = Task { root, name, id, file: file.clone(), written: written.clone() };
        let run = move || {
            let _ = sender.send(task.run(queue)); // the writer may have been dropped
        };
        std::thread::Builder::new().spawn(run).map_err(|error| NodeError::io(&what, &error))?;
        Ok(Self { what, file, orders, outcome, written, notes })
    }

    pub(crate) fn offset(&self) -> u64 {
        self.written.get()
    }

    pub(crate) fn sent(&self) -> Passed {
        self.written.clone()
    }

    pub(crate) fn take_notes(&mut self) -> Vec<Note> {
        std::mem::take(&mut self.notes)
    }

    pub(crate) fn read_back(&self, from: u64) -> Result<Reader, NodeError> {
        Reader::start(self.what.clone(), self.file.clone(), from, self.offset())
    }

    pub(crate) async fn write(&mut self, data: Bytes) -> Result<(), NodeError> {
        self.order(Order::Write(data)).await
    }

    pub(crate) async fn finish(mut self) -> Result<(), NodeError> {
        self.order(Order::Finish).await?;
        let limit = patience(self.offset().min(CACHED));
        let (what, outcome) = (self.what, self.outcome);
        // The last pieces may be on their way yet, to a slow disk.
        while_sending(limit, &self.written, &what, async {
            outcome.await.unwrap_or_else(|_| Err(NodeError::ended(&what)))
        })
        .await
    }

    /// Hands an order to the thread, or says why the thread has ended.
    async fn order(&mut self, order: Order) -> Result<(), NodeError> {
        let sent = async { Ok(self.orders.send(order).await.is_ok()) };
        if while_sending(PATIENCE, &self.written, &self.what, sent).await? {
            return Ok(());
        }
        // The thread says why it ends just after it has closed its queue.
        match (&mut self.outcome).await {
            Ok(Err(error)) => Err(error),
            _ => Err(self.ended()),
        }
    }

    fn ended(&self) -> NodeError {
        NodeError::ended(&self.what)
    }
}

/// What the thread knows.
struct Task {
    root: Arc<PathBuf>,
    name: ObjectName,
    id: PartialId,
    file: Arc<File>,
    written: Passed,
}

impl Task {
    /// Does the orders until one fails, the last one is done, or the writer is dropped.
    fn run(&self, mut queue: mpsc::Receiver<Order>) -> Result<(), NodeError> {
        let wrong = |error| NodeError::io(format_args!("partial {}", self.id), &error);
        let mut flushed = self.written.get();
        while let Some(order) = queue.blocking_recv() {
            match order {
                Order::Write(data) => {
                    self.write(&data).map_err(wrong)?;
                    self.begin_to_flush(&mut flushed);
                }
                Order::Finish => {
                    self.file.sync_all().map_err(wrong)?;
                    return Root::open(&self.root)?.publish(&self.id, &self.name);
                }
            }
        }
        Ok(())
    }

    /// Has the disk begin with what was written since the last time, if that is much. The sync at the end,
    /// for which everything waits, so finds little to do.
    fn begin_to_flush(&self, flushed: &mut u64) {
        let written = self.written.get();
        if written - *flushed >= FLUSHED {
            // What the kernel still has to write stays in its cache; the advice makes it begin to.
            let _ = fadvise(&self.file, *flushed, NonZeroU64::new(written - *flushed), Advice::DontNeed);
            *flushed = written;
        }
    }

    fn write(&self, mut data: &[u8]) -> std::io::Result<()> {
        while !data.is_empty() {
            let at = self.written.get();
            // A slow disk shows that it works before it has a whole piece.
            match self.file.write_at(data.get(..AT_ONCE).unwrap_or(data), at) {
                Ok(0) => return Err(std::io::ErrorKind::WriteZero.into()),
                Ok(count) => {
                    self.written.set(at + count as u64);
                    data = data.get(count..).unwrap_or_default();
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
