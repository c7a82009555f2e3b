//! Which changes may be lost though they were answered, and which client does not know yet.
//!
//! A client may take a change for durable once a flush has succeeded that it sent after the answer. So when
//! changes may be lost, a flush has to fail. The obvious way, to fail the flush that found the loss, tells
//! one client only: the kernel reports a failed writeback once for each open file, and all clients of a
//! volume share weir's. The next flush of another client would succeed, though its data is gone. So losses
//! are counted here, as the kernel counts them for its own processes (`errseq_t`), and one rule covers
//! devices and other servers:
//!
//! 1. A **loss** is an event of the volume: a flush or a write with FUA failed at the device, or another
//!    server went away with changes that were answered and not flushed.
//! 2. A flush **fails** if, when it was sent, its connection had not been told of every loss that has
//!    happened by the time the flush ends. It does not matter what the device says: a flush that succeeds
//!    after a failed one proves nothing.
//! 3. A connection **is told** when the socket has taken the last byte of such a reply, and not before.
//! 4. A new connection starts where the volume is: the first flush after a loss that nobody was told of
//!    fails, whoever sends it.
//! 5. A client may reconnect, and nobody can tell it from others. So a connection that ends untold leaves an
//!    **orphan**, and so does each that had ended with unflushed changes when the loss came. While there are
//!    orphans, new connections are told, too; each that was told takes one orphan away.
//!
//! Rule 5 errs on the safe side: a client that had nothing to lose may be told instead. Example: A and B
//! write, B ends, a flush of A fails, A knows. Without the rule B's next connection would start where A is,
//! and its flush would succeed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The losses of one volume. Each number below counts up and is compared only with others of the same volume.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Losses {
    happened: u64,
    /// Up to which loss a client was told.
    told: u64,
    /// Connections that ended, and whose clients may come back without knowing of a loss.
    orphans: u64,
    /// Flushes that were sent.
    sent: u64,
    /// The last flush, by the order of sending, that succeeded at the device.
    flushed: u64,
    /// Connections that ended after unflushed changes, the last of which was answered when `departed_at`
    /// flushes had been sent.
    departed: u64,
    departed_at: u64,
}

/// What one connection knows of its volume's losses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Witness {
    /// Up to which loss it was told.
    seen: u64,
    /// How many losses had happened when it came.
    joined: u64,
    /// It may be the new connection of a client that was not told.
    heir: bool,
    /// How many flushes had been sent when the last change was answered to it.
    changed_at: Option<u64>,
}

/// A flush under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flush {
    /// Up to which loss its connection had been told when it was sent.
    seen: u64,
    number: u64,
}

impl Losses {
    /// A connection comes.
    pub(crate) fn join(&self) -> Witness {
        let heir = self.orphans > 0;
        let before_the_last = self.happened.saturating_sub(1);
        let seen = if heir { self.told.min(before_the_last) } else { self.told };
        Witness { seen, joined: self.happened, heir, changed_at: None }
    }

    /// A connection ends; what its client was not told is left to those that come.
    pub(crate) fn leave(&mut self, witness: Witness) {
        if witness.seen < self.happened && witness.joined < self.happened {
            self.orphans += 1;
            return;
        }
        // It only passed on what it was given. Counted as an orphan, each client that looks in would add one.
        self.told = self.told.min(witness.seen);
        if let Some(at) = witness.changed_at.filter(|at| *at >= self.flushed) {
            self.departed += 1;
            self.departed_at = self.departed_at.max(at);
        }
    }

    /// Changes that were answered may be lost.
    pub(crate) fn happen(&mut self) {
        self.happened += 1;
        self.orphans += std::mem::take(&mut self.departed);
    }

    /// How often that happened.
    pub(crate) fn happened(&self) -> u64 {
        self.happened
    }

    /// A change was answered that only a flush makes durable.
    pub(crate) fn answer(&self, witness: &mut Witness) {
        witness.changed_at = Some(self.sent);
    }

    /// A flush was sent.
    pub(crate) fn send_flush(&mut self, witness: &Witness) -> Flush {
        self.sent += 1;
        Flush { seen: witness.seen, number: self.sent }
    }

    /// The device says that the flush has succeeded. That says nothing of changes that were lost before.
    pub(crate) fn end_flush(&mut self, flush: Flush) {
        self.flushed = self.flushed.max(flush.number);
        if self.departed_at < self.flushed {
            self.departed = 0;
        }
    }

    /// Up to which loss the reply to this flush tells, if it must fail.
    pub(crate) fn untold(&self, flush: Flush) -> Option<u64> {
        (flush.seen < self.happened).then_some(self.happened)
    }

    /// The socket has taken the last byte of a reply that tells of the losses up to this one.
    pub(crate) fn tell(&mut self, witness: &mut Witness, up_to: u64) {
        witness.seen = witness.seen.max(up_to);
        self.told = self.told.max(up_to);
        if std::mem::take(&mut witness.heir) {
            self.orphans = self.orphans.saturating_sub(1);
        }
    }

    /// Whether there is a loss that some client was not told of; true of a volume without connections.
    fn is_owed(&self) -> bool {
        self.told < self.happened || self.orphans > 0
    }
}

/// What was owed when a volume was removed, for a volume of that name which is served later. Volumes are
/// removed and added by the operator only, so that it holds no more names than the operator's files had.
#[derive(Clone, Default, Debug)]
pub(crate) struct Estate(Arc<Mutex<BTreeMap<String, Losses>>>);

impl Estate {
    /// The volume has ended, and with it all connections to it. True if a client was not told of a loss.
    pub(crate) fn leave(&self, volume: &str, losses: Losses) -> bool {
        if losses.is_owed() {
            // Its last flush has covered what the departed had written, or has made orphans of them.
            let losses = Losses { departed: 0, ..losses };
            self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(volume.to_owned(), losses);
        }
        losses.is_owed()
    }

    /// A volume of this name is served.
    pub(crate) fn take(&self, volume: &str) -> Losses {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(volume).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
