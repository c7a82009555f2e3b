//! The bytes of a task, which it raises while others read them.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use weir_node::Passed;

/// The bytes of a task.
#[derive(Default, Debug)]
pub(super) struct Counts {
    /// Those that were there before it began.
    before: AtomicU64,
    /// For a task that reads: what has arrived for its earlier readers, and for the present one.
    arrived: Mutex<(u64, Passed)>,
    /// For a task that writes: what has left for the node, those from before included.
    sent: OnceLock<Passed>,
    /// Whether its replica may become visible at any moment.
    finishes: AtomicBool,
    /// Whether this task made it visible, and no other run.
    publishes: AtomicBool,
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
            None => {
                let arrived = self.arrived.lock().unwrap_or_else(PoisonError::into_inner);
                arrived.0 + arrived.1.get()
            }
        }
    }

    /// From now on, what a writer has sent counts. What it takes may wait in this process for long.
    pub(super) fn follow(&self, sent: Passed) {
        self.before.store(sent.get(), Ordering::Relaxed);
        let _ = self.sent.set(sent); // a task has one writer
    }

    /// A reader begins behind so many bytes.
    pub(super) fn begin_behind(&self, bytes: u64) {
        self.before.store(bytes, Ordering::Relaxed);
    }

    /// From now on, what arrives for this reader counts, too. It may be some MiB ahead of what the task has
    /// taken. If the task ends there, the next one reads these bytes again, and counts them again.
    pub(super) fn read_by(&self, reader: Passed) {
        let mut arrived = self.arrived.lock().unwrap_or_else(PoisonError::into_inner);
        *arrived = (arrived.0 + arrived.1.get(), reader);
    }

    /// From now on, the task makes its replica visible.
    pub(super) fn finish(&self) {
        self.finishes.store(true, Ordering::Relaxed);
    }

    /// The task has made its replica visible itself.
    pub(super) fn publish(&self) {
        self.publishes.store(true, Ordering::Relaxed);
    }

    /// Whether the task has made its replica visible itself.
    pub(super) fn has_published(&self) -> bool {
        self.publishes.load(Ordering::Relaxed)
    }

    /// Whether its replica may become visible at any moment.
    pub(super) fn finishes(&self) -> bool {
        self.finishes.load(Ordering::Relaxed)
    }
}
