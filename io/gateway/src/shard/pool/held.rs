//! Replies that the engine holds (`control = "pid"`): complete at the device, and not handed over yet.
//!
//! A held request keeps its charge and counts as one of its connection's, so the limits on requests and
//! memory bound what is held. Its data goes at once. A connection that goes, and a server that stops, do not
//! wait for replies that are held.

use weir_model::Instant;

use super::{Completed, Pool};
use crate::connection::Connection;
use crate::shard::clients::Clients;
use crate::shard::driver::Driver;
use crate::shard::memory::Memory;

impl Pool {
    /// Keeps a completed request until the engine releases it.
    #[cold]
    pub(super) fn hold(&mut self, connection: &mut Connection, mut held: Completed, memory: &mut Memory) {
        memory.recycle(held.done.buffer.take());
        self.held.push_back(&mut connection.held, held.pending.id.slot, held);
    }

    /// Hands over the replies that are held no longer.
    pub(in crate::shard) fn release(
        &mut self,
        now: Instant,
        clients: &mut Clients,
        memory: &mut Memory,
        driver: &mut Driver,
    ) {
        while let Some(id) = self.engine.poll_release() {
            // A reply that was handed over early may still be on its way to the client.
            let held = self.held.get(id.slot).filter(|held| held.pending.id == id);
            let Some(connection) = held.and_then(|held| clients.get(held.pending.connection)) else {
                continue;
            };
            let held = self.held.remove(&mut connection.held, id.slot);
            self.answer(now, Some(connection), held, memory, driver);
        }
    }

    /// Holds no reply any more, whatever the engine says: the time that a shutdown may take is over.
    pub(in crate::shard) fn hold_no_more(&mut self) {
        self.hands_over_at_once = true;
    }

    /// The requests of a connection whose replies are held, which are held no longer.
    pub(in crate::shard) fn take_held(&mut self, connection: &mut Connection) -> Vec<Completed> {
        std::iter::from_fn(|| self.held.pop_front(&mut connection.held)).collect()
    }
}
