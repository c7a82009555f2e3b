//! The clients of a shard: their connections, and the buffers and limits for reading and writing.
//!
//! | file | what it does |
//! |---|---|
//! | `receive` | bytes from a socket to requests in an engine |
//! | `replies` | finished replies go to the sockets |
//! | `lifecycle` | connections come and go |
//!
//! A method that also needs pools, memory or the driver takes them as arguments, and looks a connection up
//! once for all its work.

use slab::Slab;
use weir_model::{Span, VolumeId};

use crate::connection::{Connection, ConnectionId};
use crate::loss::Witness;
use crate::output::Reply;
use crate::spec::Limits;

mod lifecycle;
mod receive;
mod replies;

/// Bytes read from a socket at a time. All connections of the shard share one buffer, so that an idle
/// connection holds none. It is large enough that a burst of small requests is one system call.
const SCRATCH: usize = 256 * 1024;

/// The clients of a shard.
pub(super) struct Clients {
    connections: Slab<Connection>,
    next_serial: u64,
    /// Bytes that were read from any socket.
    scratch: Vec<u8>,
    /// Replies that one connection has written to their end. It is empty but for that moment.
    ended: Vec<Reply>,
    /// Requests that one connection may have unanswered.
    requests_per_connection: u32,
    reply_timeout: Span,
}

impl Clients {
    /// A shard without clients.
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            connections: Slab::new(),
            next_serial: 0,
            scratch: vec![0; SCRATCH],
            ended: Vec::new(),
            requests_per_connection: limits.requests_per_connection,
            reply_timeout: limits.reply_timeout,
        }
    }

    /// Changes the limits.
    pub(super) fn set_limits(&mut self, limits: &Limits) {
        self.requests_per_connection = limits.requests_per_connection;
        self.reply_timeout = limits.reply_timeout;
    }

    /// How far a client may fall behind its least rate.
    pub(super) const fn reply_timeout(&self) -> Span {
        self.reply_timeout
    }

    /// The connection, unless it is gone.
    #[inline]
    pub(super) fn get(&mut self, id: ConnectionId) -> Option<&mut Connection> {
        self.connections.get_mut(id.key).filter(|connection| connection.id == id)
    }

    /// The keys of all connections.
    pub(super) fn keys(&self) -> Vec<usize> {
        self.connections.iter().map(|(key, _)| key).collect()
    }

    /// How many parts of replies wait for the socket of a connection.
    pub(super) fn waiting(&self, key: usize) -> usize {
        self.connections.get(key).map_or(0, |connection| connection.output.len())
    }

    /// Takes the witnesses of losses from the connections of a volume that has ended.
    pub(super) fn take_witnesses(&mut self, pool: usize, volume: VolumeId) -> impl Iterator<Item = Witness> {
        let connections = self.connections.iter_mut().map(|(_, connection)| connection);
        let of_volume = connections.filter(move |of| (of.pool, of.volume) == (pool, volume));
        of_volume.filter_map(|connection| connection.witness.take())
    }
}
