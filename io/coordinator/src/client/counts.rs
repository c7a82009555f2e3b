//! The bytes of a task, which it raises while others read them.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use weir_node::Sent;

/// The bytes of a task.
#[derive(Default, Debug)]
pub(super) struct Counts {
    /// Those that were there before it began.
    before: AtomicU64,
    /// Those that it has read.
    read: AtomicU64,
    /// For a task that writes: what has left for the node, those from before included.
    sent: OnceLock<Sent>,
    /// Whether its replica may become visible at any moment.
    finishes: AtomicBool,
}

impl Counts {
    /// The bytes that were there before the task began.
    pub(super) fn before(&self) -> u64 {
        self.before.load(Ordering::Relaxed)
    }

    /// The bytes that it has moved.
    pub(super) fn moved(&self) -> u64 {
        match self.sent.get() {
            Some(sent) => sent.get().saturating_sub(self.before()),
            None => self.read.load(Ordering::Relaxed),
        }
    }

    /// From now on, what a writer has sent counts. What it takes may wait in this process for long.
    pub(super) fn follow(&self, sent: Sent) {
        self.before.store(sent.get(), Ordering::Relaxed);
        let _ = self.sent.set(sent); // a task has one writer
    }

    /// A reader begins behind so many bytes.
    pub(super) fn begin_behind(&self, bytes: u64) {
        self.before.store(bytes, Ordering::Relaxed);
    }

    /// So many bytes were read.
    pub(super) fn add_read(&self, bytes: u64) {
        self.read.fetch_add(bytes, Ordering::Relaxed);
    }

    /// From now on, the task makes its replica visible.
    pub(super) fn finish(&self) {
        self.finishes.store(true, Ordering::Relaxed);
    }

    /// Whether its replica may become visible at any moment.
    pub(super) fn finishes(&self) -> bool {
        self.finishes.load(Ordering::Relaxed)
    }
}
