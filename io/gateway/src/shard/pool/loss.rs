//! Changes that were answered and may be lost: how a device's answers reveal them, and how the clients are
//! told. The rule is `crate::loss`.

use std::fmt::Display;
use std::num::NonZeroU64;

use weir_backend::{BlockError, BlockErrorKind, Errno, Finished};
use weir_model::{Instant, IoKind};
use weir_nbd::{Command, CommandKind};

use super::{ERROR_LOG_PERIOD, Pending, Pool, Volume};
use crate::connection::Connection;
use crate::loss::{Flush, Witness};

/// The reply to a flush that succeeded at the device, if its client does not know of a loss.
const UNTOLD: BlockError =
    BlockError { kind: BlockErrorKind::Io, op: IoKind::Flush, offset: 0, length: 0, errno: Errno::IO };

/// The reason that is logged for a loss at another server. The link to the server logs the details.
pub(super) const UPSTREAM_LOST: &str =
    "the server behind the volume was lost with writes that were not flushed";

impl Pool {
    /// The entry for a flush of this connection, if the command is a flush.
    pub(super) fn note_flush(&mut self, connection: &Connection, command: &Command) -> Option<Box<Flush>> {
        if command.kind != CommandKind::Flush {
            return None;
        }
        let witness = connection.witness.as_ref()?;
        Some(Box::new(self.volume(connection.volume).losses.send_flush(witness)))
    }

    /// Notes that the client has taken the last byte of a reply that tells of the losses up to this number.
    pub(in crate::shard) fn note_told(&mut self, connection: &mut Connection, up_to: NonZeroU64) {
        let Some(witness) = &mut connection.witness else { return };
        let volume = self.volume(connection.volume);
        volume.losses.tell(witness, up_to.get());
        tracing::debug!(volume = volume.name, peer = connection.peer, "told a client of a loss");
    }
}

impl Volume {
    /// Notes what a finished request reveals about changes that were answered before. `witness` is that of
    /// the request's connection, unless the connection has gone. A flush fails here if its client does not
    /// know of a loss. Returns the number of the last loss that the reply tells of.
    pub(super) fn weigh(
        &mut self,
        now: Instant,
        witness: Option<&mut Witness>,
        pending: &Pending,
        done: &mut Finished,
    ) -> Option<NonZeroU64> {
        let command = &pending.command;
        match &done.result {
            Err(error) if may_lose(command, error) => self.note_loss(now, error),
            Ok(()) if changes(command.kind) && !command.fua => {
                if let Some(witness) = witness {
                    self.losses.answer(witness);
                }
            }
            _ => {}
        }
        let flush = **pending.flush.as_ref()?;
        if done.result.is_ok() {
            self.losses.end_flush(flush);
            self.unflushed.note_flushed(pending.id.slot);
        }
        let tells = self.losses.untold(flush)?;
        if done.result.is_ok() {
            done.result = Err(UNTOLD);
        }
        NonZeroU64::new(tells)
    }

    /// Notes a loss: changes that were answered may be lost.
    pub(super) fn note_loss(&mut self, now: Instant, reason: &(impl Display + ?Sized)) {
        self.losses.happen();
        if self.loss_logged.is_none_or(|last| now.saturating_since(last) >= ERROR_LOG_PERIOD) {
            self.loss_logged = Some(now);
            let losses = self.losses.happened();
            // No peer: a device or a server causes it, at most once a second for each volume.
            tracing::error!(
                volume = self.name, %reason, losses,
                "writes that were answered and not flushed may be lost: the next flush of each client fails, once; \
                 check the storage behind the volume, and then the file systems and databases on it"
            );
        }
    }
}

/// Whether the failure of this request may be the failure of changes that were answered before. The kernel
/// reports a failed change once, to the next flush or durable write. A request that the device refuses
/// outright has met no such change. A request that was given up because its client has left reveals nothing.
fn may_lose(command: &Command, error: &BlockError) -> bool {
    if error.errno == Errno::CANCELED {
        return false;
    }
    let refused = matches!(
        error.kind,
        BlockErrorKind::Invalid | BlockErrorKind::NotSupported | BlockErrorKind::Permission
    );
    command.kind == CommandKind::Flush || changes(command.kind) && command.fua && !refused
}

fn changes(kind: CommandKind) -> bool {
    matches!(kind, CommandKind::Write | CommandKind::WriteZeroes | CommandKind::Trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_given_up_as_its_client_left_is_no_loss_and_what_fails_at_the_device_is_one() {
        let error = |errno| BlockError { errno, ..UNTOLD };
        let flush = Command::new(CommandKind::Flush, 1, 0, 0);
        let durable = Command { fua: true, ..Command::new(CommandKind::WriteZeroes, 1, 0, 512) };
        for command in [flush, durable] {
            assert!(may_lose(&command, &error(Errno::IO)));
            assert!(!may_lose(&command, &error(Errno::CANCELED)));
        }
        assert!(!may_lose(&Command::new(CommandKind::Write, 1, 0, 512), &error(Errno::IO)));
    }
}
