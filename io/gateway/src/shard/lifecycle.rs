//! Connections come and go, and volumes retire: nothing accepted is lost, nothing is answered twice.

use std::rc::Rc;

use weir_backend::{BlockDevice, BlockError, DeviceRequest, Finished};
use weir_model::{Instant, IoKind, VolumeId};
use weir_nbd::NbdError;
use weir_sched::Chain;

use super::{LINGER, NewConnection, Pending, SWEEP_PERIOD, Shard, last_flush_token, request_token};
use crate::connection::{Connection, ConnectionId, Incoming, Phase};
use crate::output::{Output, Reply};
use crate::reply;
use crate::stream::Stream;

/// Logged when a volume ends with a loss that nobody was told of, or not everybody.
const OWED: &str = "the volume ended before each client was told of a loss; the first flush after it is added again by a reload fails, \
     but a restart forgets the loss: check what is on the volume";

impl Shard {
    /// Takes over a connection whose negotiation is done; `None` if its volume is gone by now.
    pub(super) fn connect(&mut self, new: NewConnection) -> Option<ConnectionId> {
        let pool = self.pools.get(new.pool)?;
        let volume = pool.volumes.get(new.volume.0 as usize)?.as_ref()?;
        // A reload since the negotiation may have given the number to another volume.
        if volume.retiring.is_some() || volume.name != new.session.export.name {
            return None;
        }
        let witness = volume.losses.join();
        let port = volume.ports.get(new.listener).copied().unwrap_or(new.volume);
        let stream = match Stream::new(new.socket) {
            Ok(stream) => Rc::new(stream),
            Err(error) => {
                tracing::warn!(peer = new.peer, %error, "cannot watch a connection");
                return None;
            }
        };
        let entry = self.connections.vacant_entry();
        let id = ConnectionId { key: entry.key(), serial: self.next_serial };
        self.next_serial += 1;
        self.memory.add_connection(volume.owner, id.key, new.rest.len());
        entry.insert(Connection {
            id,
            peer: new.peer,
            stream,
            session: new.session,
            pool: new.pool,
            volume: new.volume,
            port,
            owner: volume.owner,
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
            witness: Some(witness),
            held_back: false,
            touched: false,
            waker: None,
            _permit: new.permit,
        });
        self.wake_driver();
        Some(id)
    }

    /// Ends a connection. What it has queued is given up; what is at a device finishes without an answer.
    pub(super) fn close(&mut self, key: usize, reason: &'static str) {
        for pending in self.abort_queued(self.clock.now(), key) {
            self.memory.give_back(pending.charge);
            self.memory.recycle(pending.buffer);
        }
        self.abandon_at_device(key);
        let mut connection = self.connections.remove(key);
        self.orphan(&mut connection);
        tracing::debug!(
            peer = connection.peer,
            export = connection.session.export.name,
            reason,
            "disconnected"
        );
        connection.wake();
        let now = self.clock.now();
        let mut pool = self.pools.get_mut(connection.pool);
        if let (Some(pool), Some(witness)) = (&mut pool, connection.witness.take()) {
            pool.volume(connection.volume).losses.leave(witness);
        }
        self.memory.abandon(&mut connection.output, &mut self.ended);
        for Reply { request, charge, .. } in self.ended.drain(..) {
            self.memory.end_request(&mut connection, charge);
            if let (Some(pool), Some(id)) = (&mut pool, request) {
                pool.engine.handle_reply(now, id);
            }
        }
        self.memory.end_unfinished_write(&mut connection);
        self.memory.remove_connection(&connection);
        self.wake_driver();
    }

    /// Tells the device that nobody waits for what a connection has there.
    fn abandon_at_device(&mut self, key: usize) {
        let connection = &self.connections[key];
        let Some(pool) = self.pools.get_mut(connection.pool) else { return };
        let volume = pool.volumes.get_mut(connection.volume.0 as usize).and_then(Option::as_mut);
        let Some(volume) = volume else { return };
        for pending in pool.pending.of(&connection.pending) {
            volume.device.abandon(request_token(connection.pool, pending.id.slot));
        }
    }

    /// Takes back from the engine those requests of the connection that it has not dispatched yet. Only its
    /// own requests are looked at, however many others there are.
    fn abort_queued(&mut self, now: Instant, key: usize) -> Vec<Pending> {
        let connection = &mut self.connections[key];
        let Some(pool) = self.pools.get_mut(connection.pool) else { return Vec::new() };
        let all: Vec<_> = pool.pending.of(&connection.pending).map(|pending| pending.id).collect();
        let queued = all.into_iter().filter(|id| pool.engine.handle_abort(now, *id));
        let aborted: Vec<_> =
            queued.map(|id| pool.pending.remove(&mut connection.pending, id.slot)).collect();
        pool.dirty |= !aborted.is_empty();
        aborted
    }

    /// What a connection that has gone still has at devices finishes without it.
    fn orphan(&mut self, connection: &mut Connection) {
        let Some(pool) = self.pools.get_mut(connection.pool) else { return };
        while let Some(slot) = pool.pending.front(&connection.pending).map(|pending| pending.id.slot) {
            let pending = pool.pending.remove(&mut connection.pending, slot);
            pool.pending.push_back(&mut pool.orphans, slot, pending);
        }
    }

    /// Closes a connection that is over once everything it is owed has been written.
    pub(super) fn say_goodbye(&mut self, key: usize) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        if !connection.is_settled() {
            return;
        }
        match connection.phase {
            Phase::Open | Phase::Lingering { .. } => {}
            Phase::Disconnecting => self.close(key, "the client disconnected"),
            Phase::Retired => {
                connection.stream.end_writing();
                let now = self.clock.now();
                connection.phase = Phase::Lingering { until: now + LINGER };
                connection.wake();
                self.watch(now, key);
            }
        }
    }

    /// Notes that the connection waits for its client, whose pace is looked at from now on.
    pub(super) fn watch(&mut self, now: Instant, key: usize) {
        let connection = &mut self.connections[key];
        if std::mem::replace(&mut connection.watched, true) {
            return;
        }
        let id = connection.id;
        if self.watched.is_empty() {
            self.next_sweep = now + SWEEP_PERIOD;
            self.wake_driver(); // which sets its alarm
        }
        self.watched.push(id);
    }

    /// Closes connections of clients that take none of their replies, that do not finish a write, or that do
    /// not close a connection that is over. Connections that wait for nothing are not looked at.
    pub(super) fn sweep(&mut self, now: Instant) {
        self.next_sweep = now + SWEEP_PERIOD;
        let timeout = self.limits.reply_timeout;
        let mut watched = std::mem::take(&mut self.watched);
        watched.retain(|id| {
            let Some(connection) = self.connection(*id) else { return false };
            connection.watched = connection.waits_for_client();
            if !connection.watched {
                return false;
            }
            let Some(reason) = connection.overdue(now, timeout) else { return true };
            tracing::info!(peer = connection.peer, reason, "closing a connection");
            self.close(id.key, reason);
            false
        });
        self.watched = watched;
    }

    /// Begins the removal of a volume: requests accepted so far are finished and answered, further ones
    /// refused.
    pub(super) fn retire(&mut self, pool: usize, volume: VolumeId, done: tokio::sync::oneshot::Sender<()>) {
        let Some(found) = self.pools.get_mut(pool).and_then(|p| p.volumes[volume.0 as usize].as_mut()) else {
            return;
        };
        let is_new = found.retiring.is_none();
        found.retiring.get_or_insert_default().done.push(done);
        let owner = found.owner;
        if is_new {
            self.pools[pool].leaving.push(volume);
        }
        self.memory.retire_volume(owner);
        for key in self.memory.connections_of(owner) {
            let connection = &mut self.connections[key];
            if connection.phase == Phase::Open {
                connection.phase = Phase::Retired;
                connection.wake();
            }
            self.memory.forget(key); // what waits is refused
            self.give_up_write_in_progress(key);
            self.say_goodbye(key);
        }
        self.wake_driver();
    }

    /// A write whose data is still arriving was not accepted yet: it is refused when its data has gone by.
    fn give_up_write_in_progress(&mut self, key: usize) {
        let connection = &mut self.connections[key];
        if let Some((command, left)) = self.memory.end_unfinished_write(connection) {
            connection.skip(self.clock.now(), left, command.cookie, NbdError::Shutdown);
        }
    }

    /// Flushes the volumes that retire and have answered everything they accepted, if there is anything to
    /// flush.
    pub(super) fn flush_retiring(&mut self) {
        let now = self.clock.now();
        let mut started = false;
        for (index, pool) in &mut self.pools {
            let leaving = std::mem::take(&mut pool.leaving);
            let (idle, busy) = leaving.into_iter().partition::<Vec<_>, _>(|id| pool.is_idle_at(*id));
            pool.leaving = busy;
            for id in idle {
                let volume = pool.volume(id);
                if volume.unflushed.is_clean() {
                    let (token, result) = (last_flush_token(index, id), Ok(()));
                    self.finished.push(Finished { token, buffer: None, extents: Vec::new(), result });
                } else {
                    volume.device.start(now, last_flush(index, id), &mut self.finished);
                }
                started = true;
                if !volume.timed && volume.keeps_time() {
                    pool.timed.push(id);
                }
            }
        }
        if started {
            self.wake_driver(); // for a turn that submits it
        }
    }

    /// The last flush of a volume has finished: it is gone.
    pub(super) fn end_volume(
        &mut self,
        now: Instant,
        index: usize,
        volume: VolumeId,
        result: Result<(), BlockError>,
    ) {
        let pool = &mut self.pools[index];
        let mut ended = pool.volumes[volume.0 as usize].take().expect("a volume ends once");
        if let Err(error) = result {
            ended.losses.happen();
            // No peer: once, when a volume ends.
            tracing::error!(volume = ended.name, %error, "the last flush failed: unflushed writes may be lost");
        }
        for (_, connection) in &mut self.connections {
            if (connection.pool, connection.volume) == (index, volume)
                && let Some(witness) = connection.witness.take()
            {
                ended.losses.leave(witness);
            }
        }
        if self.estate.leave(&ended.name, ended.losses) {
            // No peer: once, when a volume ends.
            tracing::error!(volume = ended.name, "{OWED}");
        }
        pool.remove_ports(now, &ended.ports);
        self.memory.remove_volume(ended.owner);
        // The device goes before anybody is told, so that its file is free for the next server.
        drop(ended.device);
        // No peer: once, when a volume ends.
        tracing::info!(volume = ended.name, "no longer served");
        for done in ended.retiring.into_iter().flat_map(|retiring| retiring.done) {
            let _ = done.send(()); // whoever asked may have stopped waiting
        }
        if pool.closing && pool.volumes.iter().all(Option::is_none) {
            self.pools.remove(index);
        }
    }

    /// Gives up everything that is still queued: it is answered with ESHUTDOWN. What is at a device has to
    /// finish there. A client that has not taken its replies by now is cut off.
    pub(super) fn abort_all_queued(&mut self) {
        self.gives_up = true;
        let now = self.clock.now();
        for key in self.connections.iter().map(|(key, _)| key).collect::<Vec<_>>() {
            for pending in self.abort_queued(now, key) {
                let connection = &mut self.connections[key];
                let (output, session) = (&mut connection.output, &connection.session);
                let ends = Reply { charge: Some(pending.charge), ..Reply::default() };
                reply::push_error(output, session, pending.command.cookie, NbdError::Shutdown, ends);
                self.memory.recycle(pending.buffer);
                self.touch(key);
            }
            self.abandon_at_device(key);
            self.flush_output(key);
            if self.connections.get(key).is_some_and(|connection| !connection.output.is_empty()) {
                self.close(key, "the client takes no replies");
            }
        }
        self.wake_driver();
    }
}

fn last_flush(pool: usize, volume: VolumeId) -> DeviceRequest {
    DeviceRequest {
        token: last_flush_token(pool, volume),
        kind: IoKind::Flush,
        offset: 0,
        length: 0,
        fua: false,
        no_hole: false,
        fast_zero: false,
        buffer: None,
    }
}
