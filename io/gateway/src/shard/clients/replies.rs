//! Finished replies go to the sockets: one write for all replies that a connection got in a turn.

use weir_clock::Clock;

use super::Clients;
use crate::output::Reply;
use crate::shard::driver::Driver;
use crate::shard::memory::Memory;
use crate::shard::pools::Pools;

impl Clients {
    /// Writes as much of a connection's replies as its socket takes, if the connection was touched. A reply
    /// that is written to its end is over for the engine and for the memory. The connection may then be over,
    /// too.
    pub(in crate::shard) fn flush(
        &mut self,
        clock: Clock,
        key: usize,
        pools: &mut Pools,
        memory: &mut Memory,
        driver: &mut Driver,
    ) {
        let Some(connection) = self.connections.get_mut(key).filter(|connection| connection.touched) else {
            return;
        };
        connection.touched = false;
        let ended = &mut self.ended;
        let written = memory.write(&mut connection.output, &connection.stream, |reply| ended.push(reply));
        let now = clock.now();
        // Only a connection that is owed nothing outlives its pool.
        let mut pool = pools.get_mut(connection.pool);
        for Reply { request, charge, tells } in self.ended.drain(..) {
            memory.end_request(connection, charge);
            if let (Some(pool), Some(id)) = (&mut pool, request) {
                pool.end_request(now, id);
            }
            if let (Some(pool), Some(up_to)) = (&mut pool, tells) {
                pool.note_told(connection, up_to);
            }
        }
        if written.is_err() {
            return self.close(now, key, "the connection broke", pools, memory, driver);
        }
        if connection.output.is_empty() {
            connection.taking = None;
        } else {
            driver.watch(now, connection);
        }
        if connection.held_back || !connection.output.is_empty() {
            connection.wake();
        }
        self.say_goodbye(now, key, pools, memory, driver);
    }
}
