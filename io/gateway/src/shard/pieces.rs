//! Requests without data that a client may make as long as it likes: the engine and the device get them in
//! pieces.
//!
//! A write has at most 32 MiB, because its data has to be in memory. A trim, a range of zeroes or a range to
//! be cached takes a client 28 bytes and covers up to 4 GiB. As one piece, such a request would be one huge
//! operation, and all other requests at the device would wait for it. At its volume's rate gate it would be a
//! debt of an hour, or would pass without a limit. So a piece is no longer than the largest write. The next
//! piece goes to the engine when the one before has finished. So a request has one entry in each table,
//! however long it is.
//!
//! - To the scheduler, the rate gate, the sensors, recordings and counters each piece is a request.
//! - The client gets one reply: after the last piece, or after the first error. Under `control = "pid"` that
//!   one may be held; a piece before it is not. The pieces before the error stay done. The protocol leaves
//!   that open for any request that fails. Example: a later piece of a fast zero cannot be fast; the zeroes
//!   of the earlier pieces stay.
//! - Every piece has the flags of its command: with FUA, all of the range is durable when the last piece has
//!   finished.
//! - If the client has left, the rest of its request is not begun. If the time of a shutdown is up, the rest
//!   is refused with `ESHUTDOWN`.
//!
//! Pieces end at multiples of 32 MiB on the volume. So a range with odd ends has whole blocks in between.

use weir_model::Instant;
use weir_nbd::{Command, CommandKind, NbdError};

use super::Shard;
use super::pool::Pending;
use crate::exports::LARGEST_REQUEST;
use crate::output::Reply;
use crate::reply;

/// A part of a command that is one request to the engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Piece {
    pub(super) offset: u64,
    pub(super) length: u32,
    /// Bytes of the command behind this piece.
    pub(super) left: u32,
}

impl Piece {
    /// The first piece of a command.
    pub(super) fn first(command: &Command) -> Self {
        let Command { kind, offset, length, .. } = *command;
        match kind {
            CommandKind::Trim | CommandKind::WriteZeroes | CommandKind::Cache => Self::of(offset, length),
            // Of the rest only block status may be long. Its answer is short, and ends where it likes.
            _ => Self { offset, length, left: 0 },
        }
    }

    /// The next piece of a command whose last `left` bytes have not begun.
    pub(super) fn behind(command: &Command, left: u32) -> Option<Self> {
        let begun = u64::from(command.length.saturating_sub(left));
        (left > 0).then(|| Self::of(command.offset + begun, left))
    }

    fn of(offset: u64, length: u32) -> Self {
        let largest = u64::from(LARGEST_REQUEST);
        let to_boundary = u32::try_from(largest - offset % largest).unwrap_or(LARGEST_REQUEST);
        let first = length.min(to_boundary);
        Self { offset, length: first, left: length - first }
    }
}

/// A request with a piece that has succeeded and more to come. The engine does not count that piece as
/// answered yet, so that the volume cannot end in between.
pub(super) struct Unfinished {
    pub(super) pool: usize,
    pub(super) pending: Pending,
    pub(super) next: Piece,
}

impl Shard {
    /// Begins the next piece of each unfinished request whose client is still there.
    pub(super) fn begin_next_pieces(&mut self, now: Instant) {
        while let Some(Unfinished { pending, next, .. }) = self.pools.next_unfinished(now) {
            let Pending { connection, command, charge, .. } = pending;
            match self.clients.get(connection) {
                None => self.memory.give_back(charge),
                Some(connection) if self.gives_up => {
                    let ends = Reply { charge: Some(charge), ..Reply::default() };
                    let (output, session) = (&mut connection.output, &connection.session);
                    reply::push_error(output, session, command.cookie, NbdError::Shutdown, ends);
                    self.driver.touch(connection);
                }
                Some(connection) => {
                    self.pools.submit(now, connection, command, next, None, charge);
                    self.driver.wake();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u32 = 1 << 20;

    fn pieces(kind: CommandKind, offset: u64, length: u32) -> Vec<(u64, u32)> {
        let command = Command::new(kind, 1, offset, length);
        let next = |piece: &Piece| Piece::behind(&command, piece.left);
        std::iter::successors(Some(Piece::first(&command)), next).map(|p| (p.offset, p.length)).collect()
    }

    #[test]
    fn the_pieces_of_a_long_request_are_all_of_it_and_none_is_longer_than_the_largest_write() {
        for kind in [CommandKind::Trim, CommandKind::WriteZeroes, CommandKind::Cache] {
            for (offset, length) in
                [(0, u32::MAX), (512, u32::MAX), (1 << 40, 1), (7, 96 * MIB), (0, 32 * MIB)]
            {
                let pieces = pieces(kind, offset, length);
                let mut end = offset;
                for (at, length) in &pieces {
                    assert!(*at == end && *length <= 32 * MIB && *length > 0, "{pieces:?}");
                    end = at + u64::from(*length);
                }
                assert_eq!(end, offset + u64::from(length));
            }
        }
    }

    #[test]
    fn pieces_end_at_multiples_of_their_length_so_that_only_the_ends_are_odd() {
        let found = pieces(CommandKind::WriteZeroes, 1_000, 64 * MIB);
        let largest = u64::from(32 * MIB);
        let first = 32 * MIB - 1_000;
        assert_eq!(found, [(1_000, first), (largest, 32 * MIB), (2 * largest, 1_000)]);
    }

    #[test]
    fn what_carries_data_and_what_is_answered_shortly_is_one_piece() {
        for kind in [CommandKind::Read, CommandKind::Write, CommandKind::BlockStatus] {
            assert_eq!(pieces(kind, 5, 32 * MIB), [(5, 32 * MIB)]);
        }
        assert_eq!(pieces(CommandKind::BlockStatus, 0, u32::MAX), [(0, u32::MAX)]);
        assert_eq!(pieces(CommandKind::Flush, 0, 0), [(0, 0)]);
    }
}
