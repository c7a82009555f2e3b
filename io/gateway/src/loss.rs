//! Changes that may be lost though they were answered, and the clients that do not know of it yet.
//!
//! A client may take a change for durable once a flush has succeeded that the client sent after the answer.
//! So when changes may be lost, a flush has to fail. It is not enough to fail the flush that found the loss:
//! that tells one client only. The kernel reports a failed writeback once for each open file, and all clients
//! of a volume share weir's open file. The next flush of another client would succeed, though its data is
//! gone. So this file counts losses, as the kernel does for its own processes (`errseq_t`). One rule covers
//! devices and other servers:
//!
//! 1. A **loss** is an event of the volume. Either a flush or a write with FUA failed at the device, or
//!    another server went away with changes that were answered and not flushed.
//! 2. A flush **fails** if, when it was sent, its connection had not been told of every loss that has
//!    happened by the time the flush ends. It fails even if the device reports success: a flush that succeeds
//!    after a failed one proves nothing.
//! 3. A connection **is told** when the socket has taken the last byte of such a reply, and not before.
//! 4. A new connection starts where the volume is. If no client was told of a loss, the first flush after it
//!    fails, whichever client sends it.
//! 5. A client may reconnect, and weir cannot tell it from other clients. So a connection that ends untold
//!    leaves an **orphan**. When a loss comes, each connection that had ended with unflushed changes also
//!    leaves one. While there are orphans, new connections are told, too. Each connection that was told takes
//!    one orphan away.
//!
//! Rule 5 errs on the safe side: a client that had nothing to lose may be told instead. Example: A and B
//! write, B ends, a flush of A fails, so A knows. Without rule 5, B's next connection would start where A is,
//! and B's flush would succeed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The losses of one volume. Each number below counts up and is compared only with others of the same volume.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Losses {
    happened: u64,
    /// The number of the last loss of which some client was told.
    told: u64,
    /// Connections that ended, and whose clients may come back without knowledge of a loss.
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

/// The losses of its volume that a connection was told of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Witness {
    /// The number of the last loss that the connection was told of.
    seen: u64,
    /// How many losses had happened when the connection came.
    joined: u64,
    /// Whether the connection may be the new connection of a client that was not told.
    heir: bool,
    /// How many flushes of the volume had been sent when this connection's last change was answered.
    changed_at: Option<u64>,
}

/// A flush under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flush {
    /// The number of the last loss that its connection had been told of when the flush was sent.
    seen: u64,
    number: u64,
}

impl Losses {
    /// Begins a connection.
    pub(crate) fn join(&self) -> Witness {
        let heir = self.orphans > 0;
        let before_the_last = self.happened.saturating_sub(1);
        let seen = if heir { self.told.min(before_the_last) } else { self.told };
        Witness { seen, joined: self.happened, heir, changed_at: None }
    }

    /// Ends a connection. If its client was not told of a loss, later connections will be told.
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

    /// Counts a loss: changes that were answered may be lost.
    pub(crate) fn happen(&mut self) {
        self.happened += 1;
        self.orphans += std::mem::take(&mut self.departed);
    }

    /// How many losses have happened.
    pub(crate) fn happened(&self) -> u64 {
        self.happened
    }

    /// Notes that a change was answered that only a flush makes durable.
    pub(crate) fn answer(&self, witness: &mut Witness) {
        witness.changed_at = Some(self.sent);
    }

    /// Notes that a flush was sent.
    pub(crate) fn send_flush(&mut self, witness: &Witness) -> Flush {
        self.sent += 1;
        Flush { seen: witness.seen, number: self.sent }
    }

    /// Notes that the device reports the flush as successful. That proves nothing about changes that were
    /// lost before.
    pub(crate) fn end_flush(&mut self, flush: Flush) {
        self.flushed = self.flushed.max(flush.number);
        if self.departed_at < self.flushed {
            self.departed = 0;
        }
    }

    /// If the reply to this flush has to tell of losses, the number of the last one. The flush must then
    /// fail.
    pub(crate) fn untold(&self, flush: Flush) -> Option<u64> {
        (flush.seen < self.happened).then_some(self.happened)
    }

    /// Notes that the socket has taken the last byte of a reply that tells of the losses up to this number.
    pub(crate) fn tell(&mut self, witness: &mut Witness, up_to: u64) {
        witness.seen = witness.seen.max(up_to);
        self.told = self.told.max(up_to);
        if std::mem::take(&mut witness.heir) {
            self.orphans = self.orphans.saturating_sub(1);
        }
    }

    /// Whether some client was not told of a loss. Correct only for a volume without connections.
    fn is_owed(&self) -> bool {
        self.told < self.happened || self.orphans > 0
    }
}

/// The losses of removed volumes of which clients are still to be told, for a later volume of the same name.
/// Only the operator adds and removes volumes, so there are no more names than in the operator's files.
#[derive(Clone, Default, Debug)]
pub(crate) struct Estate(Arc<Mutex<BTreeMap<String, Losses>>>);

impl Estate {
    /// Keeps the losses of a volume that has ended, as have all its connections. True if a client was not
    /// told of a loss.
    pub(crate) fn leave(&self, volume: &str, losses: Losses) -> bool {
        if losses.is_owed() {
            // Its last flush has covered what the departed had written, or has made orphans of them.
            let losses = Losses { departed: 0, ..losses };
            self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(volume.to_owned(), losses);
        }
        losses.is_owed()
    }

    /// Takes out the losses for a volume of this name that is now served.
    pub(crate) fn take(&self, volume: &str) -> Losses {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(volume).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
