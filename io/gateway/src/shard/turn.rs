//! The driver's turn: one event after another goes to the engines, and everything they have to say is
//! drained.

use std::pin::pin;
use std::task::{Context, Poll};

use tokio::task::yield_now;
use weir_backend::{BlockDevice, BlockError, DeviceRequest, Finished};
use weir_engine::{Dispatch, Event};
use weir_model::{Instant, Io, IoKind, Span};
use weir_nbd::CommandKind;

use super::loss::UPSTREAM_LOST;
use super::pieces::{Piece, Unfinished};
use super::{Named, Pending, Shard, Volume, named, request_token};
use crate::output::Reply;
use crate::reply;
use crate::stats::Answered;

/// How often a turn looks for completions: once for what woke it, and once for what the kernel finished
/// within the submission. While the device is busy more would always be found, and the sockets would wait for
/// all of it.
const PASSES: usize = 2;

/// What a turn hands to the devices of one pool, in requests and in bytes; the rest waits for the next turn,
/// before which sockets are looked at. A device that finishes at once, as memory does, would else work off
/// all that waits in one turn: half a second for some thousand requests, or for a few of the largest, in
/// which other pools of the thread get no answer. These take some 1 ms.
const REQUESTS_OF_A_TURN: u32 = 256;
const BYTES_OF_A_TURN: u64 = 4 << 20;

/// Errors of one volume's device are logged no more often than this; the metrics count them all.
pub(super) const ERROR_LOG_PERIOD: Span = Span::from_secs(1);

impl Shard {
    /// Does everything that can be done now. Never ready: the driver ends with its thread.
    pub(super) fn poll_turn(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.driver.as_ref().is_none_or(|known| !known.will_wake(cx.waker())) {
            self.driver = Some(cx.waker().clone());
        }
        self.driver_woken = false;
        while self.alarm.poll_fired(cx).is_ready() {}
        // What tasks let in since the last turn leaves less for buffers that nobody uses.
        self.memory.trim();
        self.begin_next_pieces(self.clock.now());
        self.handle_timeouts(self.clock.now());
        for _ in 0..PASSES {
            self.reactor.poll_finished(cx, &mut self.finished);
            let now = self.clock.now();
            self.handle_finished(now);
            self.dispatch(now);
            // What devices finished at once; sockets are not read meanwhile, so this comes to an end.
            while !self.finished.is_empty() {
                self.handle_finished(now);
                self.dispatch(now);
            }
            // A submission takes some microseconds for each request. Nobody's few replies wait for that; the
            // most do, as the device would be idle while they are written.
            self.send_replies(1);
            if !self.reactor.submit() {
                self.wake_driver(); // the kernel is short of memory: try again after the others
            }
        }
        self.send_replies(0);
        self.settle();
        if self.pools.iter().any(|(_, pool)| pool.dirty) {
            // Woken by the runtime when it has looked at the sockets, and not before, as by a plain wake-up.
            let _ = pin!(yield_now()).poll(cx);
        }
        let next = self.poll_timeout();
        self.alarm.set(next);
        Poll::Pending
    }

    /// Tells engines and devices what time it is, where they asked for it.
    fn handle_timeouts(&mut self, now: Instant) {
        for (_, pool) in &mut self.pools {
            pool.quota = Quota::of_a_turn();
            if pool.engine.poll_timeout().is_some_and(|due| due <= now) {
                pool.engine.handle_timeout(now);
                pool.dirty = true;
            }
            let (volumes, finished) = (&mut pool.volumes, &mut self.finished);
            pool.timed.retain(|id| {
                volumes[id.0 as usize].as_mut().is_some_and(|volume| {
                    volume.device.poll_finished(now, finished);
                    if volume.device.take_loss() {
                        volume.note_loss(now, UPSTREAM_LOST);
                    }
                    volume.keeps_time()
                })
            });
        }
        self.handle_finished(now);
        if self.next_sweep <= now {
            self.sweep(now);
        }
    }

    /// The next instant at which time alone makes something happen.
    fn poll_timeout(&self) -> Option<Instant> {
        let of_pools = self.pools.iter().flat_map(|(_, pool)| {
            let timed = pool.timed.iter().filter_map(|id| pool.volumes[id.0 as usize].as_ref());
            timed.filter_map(|volume| volume.device.poll_timeout()).chain(pool.engine.poll_timeout())
        });
        let of_connections = (!self.watched.is_empty()).then_some(self.next_sweep);
        of_pools.chain(of_connections).min()
    }

    /// Sends to the devices whatever the engines let go, as far as the quota of the turn goes.
    fn dispatch(&mut self, now: Instant) {
        for (index, pool) in &mut self.pools {
            while pool.dirty && !pool.quota.is_used_up() {
                let Dispatch::Issue(io) = pool.engine.poll_dispatch(now) else {
                    pool.dirty = false;
                    break;
                };
                pool.quota.use_up(io.length);
                let pending = pool.pending.get_mut(io.id.slot).expect("what was submitted is pending");
                let buffer = match io.kind {
                    IoKind::Read => Some(self.memory.buffer(io.length)),
                    _ => pending.buffer.take(),
                };
                let request = device_request(index, &io, pending, buffer);
                let first = pool.first_port(io.volume);
                let is_alone = io.kind == IoKind::Flush && pool.is_alone(first);
                let volume = pool.volume(first);
                match io.kind {
                    IoKind::Write | IoKind::Trim | IoKind::WriteZeroes => volume.unflushed.note_change(),
                    IoKind::Flush => volume.unflushed.note_flush(io.id.slot, is_alone),
                    IoKind::Read | IoKind::Cache | IoKind::BlockStatus => {}
                }
                volume.device.start(now, request, &mut self.finished);
                if !volume.timed && volume.keeps_time() {
                    pool.timed.push(first);
                }
            }
        }
    }

    /// Gives what the devices have finished to the engines, and its reply to its connection.
    fn handle_finished(&mut self, now: Instant) {
        let mut finished = std::mem::take(&mut self.finished);
        for done in finished.drain(..) {
            match named(done.token) {
                Named::Request { pool, slot } => self.handle_request_finished(now, pool, slot, done),
                Named::LastFlush { pool, volume } => self.end_volume(now, pool, volume, done.result),
            }
        }
        // Given back for its allocation; nothing can have been pushed meanwhile.
        self.finished = finished;
    }

    fn handle_request_finished(&mut self, now: Instant, index: usize, slot: u32, mut done: Finished) {
        let pool = &mut self.pools[index];
        let known = pool.pending.get(slot).expect("a device finishes only what it was given").connection;
        // Looked up once for all that follows: this is done for each request.
        let mut connection = self.connections.get_mut(known.key).filter(|connection| connection.id == known);
        let chain = connection.as_deref_mut().map_or(&mut pool.orphans, |connection| &mut connection.pending);
        let pending = pool.pending.remove(chain, slot);
        let volume = pool.volume(pending.volume);
        if let Err(error) = &done.result {
            volume.log_error(now, error);
        }
        let witness = connection.as_deref_mut().and_then(|connection| connection.witness.as_mut());
        let tells = volume.weigh(now, witness, &pending, &mut done);
        pool.engine.handle_complete(now, pending.id, done.result.is_ok());
        pool.dirty = true;
        if let (true, Some(next)) = (done.result.is_ok(), Piece::behind(&pending.command, pending.left)) {
            return self.begin_later(Unfinished { pool: index, pending, next });
        }
        let Some(connection) = connection else {
            // The client has gone; what it asked for was done or not, as it would be after a power cut.
            pool.engine.handle_reply(now, pending.id);
            self.memory.give_back(pending.charge);
            self.memory.recycle(done.buffer);
            return;
        };
        self.memory.prepare(&mut connection.output);
        let ends = Reply { request: Some(pending.id), charge: Some(pending.charge), tells };
        let recycled = reply::push(&mut connection.output, &connection.session, &pending.command, done, ends);
        self.memory.recycle(recycled);
        connection.touch(&mut self.touched);
    }

    /// Hands the replies of this turn to their sockets, but for those of the `later` connections with the
    /// most: those with few first, so that nobody waits for the bytes of somebody greedy.
    fn send_replies(&mut self, later: usize) {
        let mut touched = std::mem::take(&mut self.touched);
        let waiting =
            |key: &usize| self.connections.get(*key).map_or(0, |connection| connection.output.len());
        touched.sort_by_key(waiting);
        let now = touched.len().saturating_sub(later);
        for key in touched.drain(..now) {
            self.flush_output(key);
        }
        // Flushing one may close it, but touches no other.
        self.touched = touched;
    }

    pub(super) fn flush_output(&mut self, key: usize) {
        let Some(connection) = self.connections.get_mut(key).filter(|connection| connection.touched) else {
            return;
        };
        connection.touched = false;
        let ended = &mut self.ended;
        let written =
            self.memory.write(&mut connection.output, &connection.stream, |reply| ended.push(reply));
        let now = self.clock.now();
        // Only a connection that is owed nothing outlives its pool.
        let mut pool = self.pools.get_mut(connection.pool);
        for Reply { request, charge, tells } in self.ended.drain(..) {
            self.memory.end_request(connection, charge);
            if let (Some(pool), Some(id)) = (&mut pool, request) {
                pool.engine.handle_reply(now, id);
            }
            if let (Some(pool), Some(up_to)) = (&mut pool, tells) {
                pool.note_told(connection, up_to);
            }
        }
        if written.is_err() {
            return self.close(key, "the connection broke");
        }
        if connection.output.is_empty() {
            connection.taking = None;
        } else {
            self.watch(now, key);
        }
        let connection = &mut self.connections[key];
        if connection.held_back || !connection.output.is_empty() {
            connection.wake();
        }
        self.say_goodbye(key);
    }

    /// Pulls the engines' events, and sees to volumes that retire and connections that wait for memory.
    fn settle(&mut self) {
        for (_, pool) in &mut self.pools {
            while let Some(event) = pool.engine.poll_event() {
                match event {
                    Event::Finished { volume, kind, length, ok, queued, device, total } => {
                        if let Some(volume) = pool.volume_at(volume) {
                            volume.stats.record(&Answered { kind, length, ok, queued, device, total });
                        }
                    }
                    Event::WindowClosed { volume, window } => {
                        if let Some(volume) = pool.volume_at(volume) {
                            volume.close_window(window);
                        }
                    }
                    Event::Controlled { peak, .. } => pool.in_flight_peak = Some(peak),
                    Event::Allocated { volume, reasoning } => {
                        pool.note_allocation(self.clock.now(), volume, reasoning)
                    }
                    Event::Aborted { .. } | Event::Granted { .. } => {}
                }
            }
            pool.tell_observer();
        }
        self.flush_retiring();
        self.let_in_waiting();
    }
}

impl Volume {
    fn log_error(&mut self, now: Instant, error: &BlockError) {
        if self.error_logged.is_none_or(|last| now.since(last) >= ERROR_LOG_PERIOD) {
            self.error_logged = Some(now);
            // No peer: limited for each volume, right here.
            tracing::warn!(volume = self.name, %error, "the device failed a request");
        }
    }
}

/// What is left of a turn for a pool.
#[derive(Clone, Copy, Debug)]
pub(super) struct Quota {
    requests: u32,
    bytes: u64,
}

impl Quota {
    pub(super) const fn of_a_turn() -> Self {
        Self { requests: REQUESTS_OF_A_TURN, bytes: BYTES_OF_A_TURN }
    }

    const fn is_used_up(self) -> bool {
        self.requests == 0 || self.bytes == 0
    }

    /// A request of this length goes: also if it is longer than what is left.
    fn use_up(&mut self, length: u32) {
        self.requests = self.requests.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(length.into());
    }
}

fn device_request(
    pool: usize,
    io: &Io,
    pending: &Pending,
    buffer: Option<weir_backend::Buffer>,
) -> DeviceRequest {
    debug_assert_eq!(pending.id, io.id, "the engine issues what was submitted");
    let command = &pending.command;
    DeviceRequest {
        token: request_token(pool, io.id.slot),
        kind: io.kind,
        offset: io.offset,
        length: io.length,
        fua: command.fua && command.kind != CommandKind::Read,
        no_hole: command.no_hole,
        fast_zero: command.fast_zero,
        buffer,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many requests of this length a pool may start in a turn.
    fn started(length: u32) -> u32 {
        let mut quota = Quota::of_a_turn();
        let mut started = 0;
        while !quota.is_used_up() {
            quota.use_up(length);
            started += 1;
        }
        started
    }

    #[test]
    fn a_turn_starts_no_more_than_its_quota_and_always_one_request() {
        assert_eq!(started(0), REQUESTS_OF_A_TURN);
        assert_eq!(started(4096), REQUESTS_OF_A_TURN);
        assert_eq!(started(128 << 10), 32);
        assert_eq!(started(32 << 20), 1);
    }
}
