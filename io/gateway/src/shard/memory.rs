//! The memory of a shard: buffers for data, empty queues for replies, and the budget, which says how much
//! each volume may hold.
//!
//! The memory counts each byte that a client makes the shard hold, for the client's volume. A request holds a
//! [`Charge`]. Bytes that were read from a socket and wait to be parsed are counted as *held*, without a
//! charge.

use std::io;

use weir_backend::{Buffer, BufferPool};
use weir_engine::{Control, VolumeConfig};
use weir_nbd::{Command, CommandKind};

use crate::budget::{Budget, Charge, LARGEST, OwnerId, Part, REQUEST_OVERHEAD};
use crate::connection::{Connection, Incoming};
use crate::memory::is_promised;
use crate::output::{Output, Reply, Spares};
use crate::spec::Limits;
use crate::stream::Stream;

/// Bytes read at a time while memory is used up, because bytes that cannot be let in have to be kept. Each
/// connection may keep this many beyond the budget.
const SCARCE_READ: usize = 4 * 1024;

/// The longest reply to a block status, in bytes: 512 extents, the most that a device reports at a time.
const BLOCK_STATUS_REPLY: u64 = 512 * 8;

/// The memory of a shard.
pub(super) struct Memory {
    budget: Budget,
    buffers: BufferPool,
    /// Queues of replies that are empty.
    spares: Spares,
    /// Bytes of data that one connection may have in flight.
    bytes_per_connection: u64,
}

/// Volumes and connections as owners of memory.
impl Memory {
    /// A shard's memory of `total` bytes.
    pub(super) fn new(limits: &Limits, total: u64) -> Self {
        Self {
            budget: Budget::new(total),
            buffers: BufferPool::new(),
            spares: Spares::default(),
            bytes_per_connection: limits.bytes_per_connection,
        }
    }

    /// Changes the limits; requests keep the bytes that they have.
    pub(super) fn set_limits(&mut self, limits: &Limits, total: u64) {
        self.bytes_per_connection = limits.bytes_per_connection;
        self.budget.set_total(total);
    }

    /// Adds a volume, in a pool with this control.
    pub(super) fn add_volume(&mut self, control: &Control, volume: &VolumeConfig) -> OwnerId {
        self.budget.add_owner(part(control, volume))
    }

    /// Fits the volume's part to a promise that may have changed.
    pub(super) fn set_volume(&mut self, owner: OwnerId, control: &Control, volume: &VolumeConfig) {
        self.budget.set_part(owner, part(control, volume));
    }

    /// Takes back the part of a volume that is being removed.
    pub(super) fn retire_volume(&mut self, owner: OwnerId) {
        self.budget.set_part(owner, Part::Nothing);
    }

    /// Removes a volume that has no request at its device any more.
    pub(super) fn remove_volume(&mut self, owner: OwnerId) {
        self.budget.remove_owner(owner);
    }

    /// Adds a connection to a volume. The connection has `backlog` bytes that were read and not parsed.
    pub(super) fn add_connection(&mut self, owner: OwnerId, key: usize, backlog: usize) {
        self.budget.hold(beyond_scarce(backlog));
        self.budget.join(owner, key);
    }

    /// Removes a connection, after all that its requests held was given back.
    pub(super) fn remove_connection(&mut self, connection: &Connection) {
        self.budget.release(beyond_scarce(connection.backlog.len()));
        self.budget.leave(connection.owner, connection.id.key);
    }

    /// The connections of a volume.
    pub(super) fn connections_of(&self, owner: OwnerId) -> Vec<usize> {
        self.budget.connections(owner).collect()
    }
}

/// Requests and their charges.
impl Memory {
    /// Takes room for a request of the connection, within its limits and those of its volume. `None` if there
    /// is none: [`Memory::poll_granted`] names the connection when its volume has room.
    pub(super) fn admit(&mut self, connection: &Connection, command: &Command) -> Option<Charge> {
        let data = match command.kind {
            CommandKind::Read | CommandKind::Write => BufferPool::footprint(command.length as usize) as u64,
            CommandKind::BlockStatus => BLOCK_STATUS_REPLY,
            _ => 0,
        };
        // The first request always fits: its connection would wait for ever otherwise.
        if connection.requests > 0 && connection.bytes + data > self.bytes_per_connection {
            return None;
        }
        let bytes = (data + REQUEST_OVERHEAD).min(LARGEST);
        self.budget.take(connection.owner, connection.id.key, bytes, connection.reserve_used)
    }

    /// The next connection whose waiting request gets room, and the charge for that request.
    pub(super) fn poll_granted(&mut self) -> Option<(usize, Charge)> {
        self.budget.poll_granted()
    }

    /// Whether a request waits for memory.
    #[inline]
    pub(super) fn is_waited_for(&self) -> bool {
        self.budget.is_waited_for()
    }

    /// Takes the connection's waiting request out of the line, if it has one.
    pub(super) fn forget(&mut self, key: usize) {
        self.budget.forget(key);
    }

    /// Ends a request of the connection that is answered, or refused, to its last byte.
    #[inline]
    pub(super) fn end_request(&mut self, connection: &mut Connection, charge: Option<Charge>) {
        connection.requests -= 1;
        if let Some(charge) = charge {
            connection.bytes -= charge.bytes();
            connection.reserve_used -= self.budget.give_back(charge);
        }
    }

    /// Ends the write whose data is still arriving, if there is one. Returns the write, and how many of its
    /// bytes are still to come.
    pub(super) fn end_unfinished_write(&mut self, connection: &mut Connection) -> Option<(Command, u32)> {
        if !matches!(connection.incoming, Incoming::Payload { .. }) {
            return None;
        }
        let incoming = std::mem::replace(&mut connection.incoming, Incoming::START);
        let Incoming::Payload { command, buffer, filled, charge, .. } = incoming else { return None };
        self.end_request(connection, Some(charge));
        self.recycle(Some(buffer));
        Some((command, command.length.saturating_sub(u32::try_from(filled).unwrap_or(u32::MAX))))
    }

    /// Ends a request without an answer, because its connection goes or has gone.
    pub(super) fn give_back(&mut self, charge: Charge) {
        self.budget.give_back(charge);
    }
}

/// Buffers and queues.
impl Memory {
    /// A buffer of this length, with any contents.
    #[inline]
    pub(super) fn buffer(&mut self, length: u32) -> Buffer {
        self.buffers.take(length as usize)
    }

    /// Keeps a buffer for later requests.
    #[inline]
    pub(super) fn recycle(&mut self, buffer: Option<Buffer>) {
        if let Some(buffer) = buffer {
            self.buffers.put(buffer);
        }
    }

    /// Frees unused buffers for which the budget has no room any more.
    pub(super) fn trim(&mut self) {
        self.buffers.keep_at_most(self.budget.unused());
    }

    /// Gives an output that is empty a queue for replies.
    #[inline]
    pub(super) fn prepare(&mut self, output: &mut Output) {
        output.prepare(&mut self.spares);
    }

    /// Writes as much of the output as the socket takes; see [`Output::flush`].
    pub(super) fn write(
        &mut self,
        output: &mut Output,
        stream: &Stream,
        ended: impl FnMut(Reply),
    ) -> io::Result<()> {
        output.flush(stream, &mut self.buffers, &mut self.spares, ended)
    }

    /// Gives back all that the unwritten replies of an output hold; adds these replies to `ended`.
    pub(super) fn abandon(&mut self, output: &mut Output, ended: &mut Vec<Reply>) {
        output.abandon(&mut self.buffers, |reply| ended.push(reply));
    }
}

/// Bytes that were read and wait.
impl Memory {
    /// How many bytes, of `most`, may be read from a socket. Each may have to wait.
    pub(super) fn room_to_read(&self, most: usize) -> usize {
        if self.budget.may_hold(most) { most } else { SCARCE_READ }
    }

    /// Counts bytes that were read.
    pub(super) fn hold(&mut self, bytes: usize) {
        self.budget.hold(beyond_scarce(bytes));
    }

    /// Counts only the last `kept` of `bytes` as held, and the others no more.
    pub(super) fn release(&mut self, bytes: usize, kept: usize) {
        self.budget.release(beyond_scarce(bytes) - beyond_scarce(kept));
    }
}

/// How many of these bytes are counted as held. A connection may keep a few bytes that are not counted.
fn beyond_scarce(bytes: usize) -> usize {
    if bytes > SCARCE_READ { bytes } else { 0 }
}

/// The part of the memory that a volume owns.
fn part(control: &Control, volume: &VolumeConfig) -> Part {
    if is_promised(control, volume) { Part::Promised } else { Part::Equal }
}
