//! The progress of a reader. A replay owns its reader, and the user still wants to see the progress.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::error::TraceError;

/// How many of the broken lines are kept word by word; the others are only counted.
const KEPT: usize = 10;

/// The progress of a [`TraceReader`](super::TraceReader). All clones are about the same reader.
#[derive(Clone, Default, Debug)]
pub struct Account {
    shared: Arc<Shared>,
}

#[derive(Default, Debug)]
struct Shared {
    bytes: AtomicU64,
    remarks: Mutex<Remarks>,
}

/// The irregularities that a reader tolerated in a trace.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Remarks {
    /// Lines that were passed over because they were broken.
    pub broken: u64,
    /// The mistakes in the first ten broken lines, in words.
    pub first_broken: Vec<String>,
    /// Requests that stood behind later ones, by at most a second. Each gets the latest time before it.
    pub out_of_order: u64,
    /// Requests that are neither reads nor writes. The reader left them out.
    pub others: u64,
    /// Why the reading ended before the end of the trace, if it did.
    pub failure: Option<String>,
}

impl Account {
    /// Bytes of the file that were read; of the compressed file, if it is compressed.
    pub fn bytes_read(&self) -> u64 {
        self.shared.bytes.load(Ordering::Relaxed)
    }

    /// The irregularities so far.
    pub fn remarks(&self) -> Remarks {
        self.lock().clone()
    }

    pub(super) fn add_bytes(&self, count: u64) {
        self.shared.bytes.fetch_add(count, Ordering::Relaxed);
    }

    pub(super) fn add_broken(&self, message: impl FnOnce() -> String) {
        let mut remarks = self.lock();
        remarks.broken += 1;
        if remarks.first_broken.len() < KEPT {
            remarks.first_broken.push(message());
        }
    }

    pub(super) fn add_out_of_order(&self) {
        self.lock().out_of_order += 1;
    }

    pub(super) fn add_other(&self) {
        self.lock().others += 1;
    }

    pub(super) fn fail(&self, error: &TraceError) {
        self.lock().failure = Some(error.to_string());
    }

    /// A poisoned lock is taken all the same: the counts are consistent after each step, also after a panic.
    fn lock(&self) -> MutexGuard<'_, Remarks> {
        self.shared.remarks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
