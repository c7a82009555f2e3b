//! Connections come and go, and volumes retire: nothing accepted is lost, nothing is answered twice.

use std::rc::Rc;

use weir_backend::{BlockDevice, BlockError, DeviceRequest};
use weir_model::{Instant, IoKind, VolumeId};
use weir_nbd::NbdError;

use super::{LINGER, NewConnection, Pending, Retiring, SWEEP_PERIOD, Shard, last_flush_token};
use crate::connection::{Connection, ConnectionId, Incoming, Phase};
use crate::output::{Output, Reply};
use crate::reply;
use crate::stream::Stream;

impl Shard {
    /// Takes over a connection whose negotiation is done; `None` if its volume is gone by now.
    pub(super) fn connect(&mut self, new: NewConnection) -> Option<ConnectionId> {
        let pool = self.pools.get(new.pool)?;
        let volume = pool.volumes.get(new.volume.0 as usize)?.as_ref()?;
        // A reload since the negotiation may have given the number to another volume.
        if volume.retiring.is_some() || volume.name != new.session.export.name {
            return None;
        }
        let port = volume.ports.get(new.listener).copied().unwrap_or(new.volume);
        let stream = match Stream::new(new.socket) {
            Ok(stream) => Rc::new(stream),
            Err(error) => {
                tracing::warn!(peer = new.peer, %error, "cannot watch a connection");
                return None;
            }
        };
        self.budget.hold(new.rest.len()); // the connection's backlog
        let entry = self.connections.vacant_entry();
        let id = ConnectionId { key: entry.key(), serial: self.next_serial };
        self.next_serial += 1;
        let now = self.clock.now();
        entry.insert(Connection {
            id,
            peer: new.peer,
            stream,
            session: new.session,
            pool: new.pool,
            volume: new.volume,
            port,
            phase: Phase::Open,
            incoming: Incoming::START,
            backlog: new.rest,
            output: Output::default(),
            requests: 0,
            bytes: 0,
            reserve_used: 0,
            last_progress: now,
            loss_untold: false,
            held_back: false,
            touched: false,
            waker: None,
            _permit: new.permit,
        });
        self.next_sweep = self.next_sweep.min(now + SWEEP_PERIOD);
        self.wake_driver();
        Some(id)
    }

    /// Ends a connection. What it has queued is given up; what is at a device finishes without an answer.
    pub(super) fn close(&mut self, key: usize, reason: &'static str) {
        let mut connection = self.connections.remove(key);
        tracing::debug!(
            peer = connection.peer,
            export = connection.session.export.name,
            reason,
            "disconnected"
        );
        connection.wake();
        self.budget.forget(key);
        self.budget.release(connection.backlog.len());
        let now = self.clock.now();
        let (budget, mut pool) = (&mut self.budget, self.pools.get_mut(connection.pool));
        connection.output.abandon(&mut self.buffers, |Reply { request, charge }| {
            budget.give_back(charge);
            if let (Some(pool), Some(id)) = (&mut pool, request) {
                pool.engine.handle_reply(now, id);
            }
        });
        if let Incoming::Payload { buffer, charge, .. } = connection.incoming {
            self.buffers.put(buffer);
            self.budget.give_back(charge);
        }
        if connection.requests > 0 {
            for pending in self.abort_queued(connection.pool, |pending| pending.connection == connection.id) {
                self.budget.give_back(pending.charge);
                pending.buffer.into_iter().for_each(|buffer| self.buffers.put(buffer));
            }
        }
        self.wake_driver();
    }

    /// Takes back from the engine those requests that it has not dispatched yet.
    fn abort_queued(&mut self, pool: usize, chosen: impl Fn(&Pending) -> bool) -> Vec<Pending> {
        let now = self.clock.now();
        let Some(pool) = self.pools.get_mut(pool) else { return Vec::new() };
        let mut aborted = Vec::new();
        for slot in &mut pool.pending {
            if let Some(pending) = slot.take_if(|p| chosen(p) && pool.engine.handle_abort(now, p.id)) {
                aborted.push(pending);
            }
        }
        pool.dirty |= !aborted.is_empty();
        aborted
    }

    /// Closes a connection that is over once everything it is owed has been written.
    pub(super) fn say_goodbye(&mut self, key: usize) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        // A request that waits for memory, or for its data to go by, is owed an answer too.
        let waiting = matches!(connection.incoming, Incoming::Stalled(_) | Incoming::Skip { .. });
        if connection.requests > 0 || waiting || !connection.output.is_empty() {
            return;
        }
        match connection.phase {
            Phase::Open | Phase::Lingering { .. } => {}
            Phase::Disconnecting => self.close(key, "the client disconnected"),
            Phase::Retired => {
                connection.stream.end_writing();
                connection.phase = Phase::Lingering { until: self.clock.now() + LINGER };
                connection.wake();
            }
        }
    }

    /// Closes connections of clients that take none of their replies, that do not finish a write, or that do not
    /// close a connection that is over.
    pub(super) fn sweep(&mut self, now: Instant) {
        self.next_sweep = now + SWEEP_PERIOD;
        let reply_timeout = self.limits.reply_timeout;
        let is_over = |since: Instant| now.saturating_since(since) > reply_timeout;
        let overdue = |connection: &Connection| match connection.phase {
            Phase::Lingering { until } => (until <= now).then_some("the volume is no longer served"),
            _ if !connection.output.is_empty() && is_over(connection.last_progress) => {
                Some("the client takes no replies")
            }
            _ if connection.receiving_since().is_some_and(is_over) => {
                Some("the client does not finish a write")
            }
            _ => None,
        };
        let over: Vec<_> = self
            .connections
            .iter()
            .filter_map(|(key, connection)| Some((key, overdue(connection)?)))
            .collect();
        for (key, reason) in over {
            tracing::info!(peer = self.connections[key].peer, reason, "closing a connection");
            self.close(key, reason);
        }
    }

    /// Begins the removal of a volume: requests accepted so far are finished and answered, further ones refused.
    pub(super) fn retire(&mut self, pool: usize, volume: VolumeId, done: tokio::sync::oneshot::Sender<()>) {
        let Some(found) = self.pools.get_mut(pool).and_then(|p| p.volumes[volume.0 as usize].as_mut()) else {
            return;
        };
        let new = Retiring { flushing: false, done: Vec::new() };
        let is_new = found.retiring.is_none();
        found.retiring.get_or_insert(new).done.push(done);
        self.pools[pool].retiring += usize::from(is_new);
        let of_volume = |connection: &Connection| (connection.pool, connection.volume) == (pool, volume);
        let keys: Vec<_> =
            self.connections.iter().filter(|(_, c)| of_volume(c)).map(|(key, _)| key).collect();
        for key in keys {
            let connection = &mut self.connections[key];
            if connection.phase == Phase::Open {
                connection.phase = Phase::Retired;
                connection.wake();
            }
            self.give_up_write_in_progress(key);
            self.say_goodbye(key);
        }
        self.wake_driver();
    }

    /// A write whose data is still arriving was not accepted yet: it is refused when its data has gone by.
    fn give_up_write_in_progress(&mut self, key: usize) {
        let connection = &mut self.connections[key];
        let Incoming::Payload { command, filled, since, .. } = &connection.incoming else { return };
        let left = command.length - u32::try_from(*filled).expect("at most the length of the write");
        let skip = Incoming::Skip { left, cookie: command.cookie, error: NbdError::Shutdown, since: *since };
        if let Incoming::Payload { buffer, charge, .. } = std::mem::replace(&mut connection.incoming, skip) {
            // The refusal is counted as a request of its own when it is written.
            connection.requests -= 1;
            connection.bytes -= charge.bytes();
            connection.reserve_used -= self.budget.give_back(charge);
            self.buffers.put(buffer);
        }
    }

    /// Flushes the volumes that retire and have answered everything they accepted.
    pub(super) fn flush_retiring(&mut self) {
        let now = self.clock.now();
        let mut started = false;
        for (index, pool) in &mut self.pools {
            if pool.retiring == 0 {
                continue;
            }
            for id in pool.volume_ids() {
                let idle = pool.volumes[id.0 as usize].as_ref().is_some_and(|volume| pool.is_idle(volume));
                let volume = pool.volume(id);
                match &mut volume.retiring {
                    Some(retiring) if idle && !retiring.flushing => retiring.flushing = true,
                    _ => continue,
                }
                volume.device.start(now, last_flush(index, id), &mut self.finished);
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
        let ended = pool.volumes[volume.0 as usize].take().expect("a volume ends once");
        pool.retiring -= 1;
        if let Err(error) = result {
            tracing::error!(volume = ended.name, %error, "the last flush failed: unflushed writes may be lost");
        }
        pool.remove_ports(now, &ended.ports);
        // The device goes before anybody is told, so that its file is free for the next server.
        drop(ended.device);
        tracing::info!(volume = ended.name, "no longer served");
        for done in ended.retiring.into_iter().flat_map(|retiring| retiring.done) {
            let _ = done.send(()); // whoever asked may have stopped waiting
        }
        if pool.closing && pool.volumes.iter().all(Option::is_none) {
            self.pools.remove(index);
        }
    }

    /// Gives up everything that is still queued: it is answered with ESHUTDOWN. What is at a device has to finish
    /// there. A client that has not taken its replies by now is cut off.
    pub(super) fn abort_all_queued(&mut self) {
        self.gives_up = true;
        for pool in self.pools.iter().map(|(index, _)| index).collect::<Vec<_>>() {
            let aborted = self.abort_queued(pool, |_| true);
            for pending in aborted {
                pending.buffer.into_iter().for_each(|buffer| self.buffers.put(buffer));
                match self.connection(pending.connection) {
                    None => {
                        self.budget.give_back(pending.charge);
                    }
                    Some(connection) => {
                        let cookie = pending.command.cookie;
                        let (output, session) = (&mut connection.output, &connection.session);
                        let ends = Reply { request: None, charge: pending.charge };
                        reply::push_error(output, session, cookie, NbdError::Shutdown, ends);
                        self.touch(pending.connection.key);
                    }
                }
            }
        }
        for key in self.connections.iter().map(|(key, _)| key).collect::<Vec<_>>() {
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
