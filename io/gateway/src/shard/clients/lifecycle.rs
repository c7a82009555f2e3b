//! Connections come and go: no accepted request is lost, and none is answered twice.

use weir_clock::Clock;
use weir_model::{Instant, Span};
use weir_nbd::NbdError;
use weir_sched::Chain;

use super::Clients;
use crate::connection::{Connection, ConnectionId, Incoming, Phase};
use crate::output::{Output, Reply};
use crate::reply;
use crate::shard::command::NewConnection;
use crate::shard::driver::Driver;
use crate::shard::memory::Memory;
use crate::shard::pools::Pools;
use crate::stream::Stream;

/// How long a connection that is over waits for the client to close its side.
const LINGER: Span = Span::from_secs(2);

impl Clients {
    /// Takes over a connection whose negotiation is done; `None` if its volume is gone by now.
    pub(in crate::shard) fn connect(
        &mut self,
        new: NewConnection,
        pools: &Pools,
        memory: &mut Memory,
    ) -> Option<ConnectionId> {
        let found = pools.get(new.pool)?.find(new.volume, &new.session.export.name, new.listener)?;
        let stream = match Stream::new(new.socket) {
            Ok(stream) => stream,
            Err(error) => {
                tracing::warn!(peer = new.peer, %error, "cannot watch a connection");
                return None;
            }
        };
        let entry = self.connections.vacant_entry();
        let id = ConnectionId { key: entry.key(), serial: self.next_serial };
        self.next_serial += 1;
        memory.add_connection(found.owner, id.key, new.rest.len());
        entry.insert(Connection {
            id,
            peer: new.peer,
            stream,
            session: new.session,
            pool: new.pool,
            volume: new.volume,
            port: found.port,
            owner: found.owner,
            phase: Phase::Open,
            incoming: Incoming::START,
            backlog: new.rest,
            output: Output::default(),
            pending: Chain::EMPTY,
            requests: 0,
            bytes: 0,
            reserve_used: 0,
            taking: None,
            watched: false,
            witness: Some(found.witness),
            held_back: false,
            touched: false,
            waker: None,
            _permit: new.permit,
        });
        Some(id)
    }

    /// Ends a connection. Its queued requests are given up; its requests at a device finish without an
    /// answer.
    pub(in crate::shard) fn close(
        &mut self,
        now: Instant,
        key: usize,
        reason: &'static str,
        pools: &mut Pools,
        memory: &mut Memory,
        driver: &mut Driver,
    ) {
        let Some(mut connection) = self.connections.try_remove(key) else { return };
        let mut pool = pools.get_mut(connection.pool);
        if let Some(pool) = &mut pool {
            for pending in pool.abort_queued(now, &mut connection) {
                memory.give_back(pending.charge);
                memory.recycle(pending.buffer);
            }
            pool.leave(&mut connection);
        }
        let (peer, export) = (&connection.peer, &connection.session.export.name);
        tracing::debug!(peer, export, reason, "disconnected");
        connection.wake();
        memory.abandon(&mut connection.output, &mut self.ended);
        for Reply { request, charge, .. } in self.ended.drain(..) {
            memory.end_request(&mut connection, charge);
            if let (Some(pool), Some(id)) = (&mut pool, request) {
                pool.end_request(now, id);
            }
        }
        memory.end_unfinished_write(&mut connection);
        memory.remove_connection(&connection);
        driver.wake();
    }

    /// Ends a connection whose client makes it wait for too long.
    pub(in crate::shard) fn cut_off(
        &mut self,
        now: Instant,
        key: usize,
        reason: &'static str,
        pools: &mut Pools,
        memory: &mut Memory,
        driver: &mut Driver,
    ) {
        if let Some(connection) = self.connections.get(key) {
            tracing::info!(peer = connection.peer, reason, "closing a connection");
            self.close(now, key, reason, pools, memory, driver);
        }
    }

    /// Ends a connection that is over, once its client has all its answers.
    pub(super) fn say_goodbye(
        &mut self,
        now: Instant,
        key: usize,
        pools: &mut Pools,
        memory: &mut Memory,
        driver: &mut Driver,
    ) {
        let Some(connection) = self.connections.get_mut(key).filter(|connection| connection.is_settled())
        else {
            return;
        };
        match connection.phase {
            Phase::Open | Phase::Lingering { .. } => {}
            Phase::Disconnecting => self.close(now, key, "the client disconnected", pools, memory, driver),
            Phase::Retired => {
                connection.stream.end_writing();
                connection.phase = Phase::Lingering { until: now + LINGER };
                connection.wake();
                driver.watch(now, connection);
            }
        }
    }

    /// Retires a connection together with its volume: requests accepted so far are finished and answered,
    /// later requests are refused.
    pub(in crate::shard) fn retire(
        &mut self,
        now: Instant,
        key: usize,
        pools: &mut Pools,
        memory: &mut Memory,
        driver: &mut Driver,
    ) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        if connection.phase == Phase::Open {
            connection.phase = Phase::Retired;
            connection.wake();
        }
        memory.forget(key); // what waits is refused
        // A write whose data is still arriving was not accepted yet: it is refused when its data has gone by.
        if let Some((command, left)) = memory.end_unfinished_write(connection) {
            connection.skip(now, left, command.cookie, NbdError::Shutdown);
        }
        self.say_goodbye(now, key, pools, memory, driver);
    }

    /// Gives up the connection's queued requests, and answers them with ESHUTDOWN. Its requests at a device
    /// have to finish there. A client that has not taken its replies by now is cut off.
    pub(in crate::shard) fn give_up(
        &mut self,
        clock: Clock,
        key: usize,
        pools: &mut Pools,
        memory: &mut Memory,
        driver: &mut Driver,
    ) {
        let (Some(connection), now) = (self.connections.get_mut(key), clock.now()) else { return };
        if let Some(pool) = pools.get_mut(connection.pool) {
            for pending in pool.abort_queued(now, connection) {
                let (output, session) = (&mut connection.output, &connection.session);
                let ends = Reply { charge: Some(pending.charge), ..Reply::default() };
                reply::push_error(output, session, pending.command.cookie, NbdError::Shutdown, ends);
                memory.recycle(pending.buffer);
                driver.touch(connection);
            }
            pool.abandon_at_device(connection);
        }
        self.flush(clock, key, pools, memory, driver);
        if self.waiting(key) > 0 {
            self.close(clock.now(), key, "the client takes no replies", pools, memory, driver);
        }
    }
}
