//! A request from its connection to the engine, and from its device to the reply.

use weir_backend::{BlockDevice, BlockError, Buffer, Finished};
use weir_engine::Request;
use weir_model::{Instant, IoId};
use weir_nbd::Command;

use super::{Completed, ERROR_LOG_PERIOD, Pending, Pool, Volume};
use crate::budget::Charge;
use crate::connection::Connection;
use crate::output::Reply;
use crate::reply;
use crate::shard::clients::Clients;
use crate::shard::driver::Driver;
use crate::shard::memory::Memory;
use crate::shard::pieces::Piece;
use crate::shard::token::request_token;

impl Pool {
    /// Gives the engine a piece of a command.
    #[inline]
    pub(in crate::shard) fn submit(
        &mut self,
        now: Instant,
        connection: &mut Connection,
        command: Command,
        piece: Piece,
        buffer: Option<Buffer>,
        charge: Charge,
    ) {
        let flush = self.note_flush(connection, &command);
        let kind = command.kind.io_kind().expect("a disconnect is not submitted");
        let Piece { offset, length, left } = piece;
        let id = self.engine.handle_submit(now, Request { volume: connection.port, kind, offset, length });
        let (of, volume) = (connection.id, connection.volume);
        let pending = Pending { id, connection: of, volume, command, left, flush, buffer, charge };
        self.pending.push_back(&mut connection.pending, id.slot, pending);
        self.dirty = true;
    }

    /// Tells the engine that a device has finished a request, and gives the connection its reply. If the
    /// request has another piece, returns the request and that piece instead.
    #[inline]
    pub(in crate::shard) fn complete(
        &mut self,
        now: Instant,
        slot: u32,
        mut done: Finished,
        clients: &mut Clients,
        memory: &mut Memory,
        driver: &mut Driver,
    ) -> Option<(Pending, Piece)> {
        let known = self.pending.get(slot).expect("a device finishes only what it was given").connection;
        // Looked up once for all that follows: this is done for each request.
        let mut connection = clients.get(known);
        let chain = connection.as_deref_mut().map_or(&mut self.orphans, |connection| &mut connection.pending);
        let pending = self.pending.remove(chain, slot);
        let volume = self.volume(pending.volume);
        if let Err(error) = &done.result {
            volume.log_error(now, error);
        }
        let witness = connection.as_deref_mut().and_then(|connection| connection.witness.as_mut());
        let tells = volume.weigh(now, witness, &pending, &mut done);
        let held_until = self.engine.handle_complete(now, pending.id, done.result.is_ok());
        self.dirty = true;
        // Only a reply is held, and a piece with more behind it has none. If each piece were held, the reply
        // to 4 GiB of zeroes would come after 128 times the delay.
        if done.result.is_ok()
            && let Some(next) = Piece::behind(&pending.command, pending.left)
        {
            return Some((pending, next));
        }
        let completed = Completed { pending, done, tells };
        match connection {
            Some(connection) if held_until.is_some() && !self.hands_over_at_once => {
                self.hold(connection, completed, memory);
            }
            connection => self.answer(now, connection, completed, memory, driver),
        }
        None
    }

    /// Gives the connection of a completed request its reply.
    #[inline(always)] // otherwise the completed request is copied, twice for each request
    pub(in crate::shard) fn answer(
        &mut self,
        now: Instant,
        connection: Option<&mut Connection>,
        completed: Completed,
        memory: &mut Memory,
        driver: &mut Driver,
    ) {
        let Completed { pending, done, tells } = completed;
        let Some(connection) = connection else {
            // The client has gone. Its request was done or not, as it would be after a power cut.
            self.end_request(now, pending.id);
            memory.give_back(pending.charge);
            memory.recycle(done.buffer);
            return;
        };
        memory.prepare(&mut connection.output);
        let ends = Reply { request: Some(pending.id), charge: Some(pending.charge), tells };
        let recycled = reply::push(&mut connection.output, &connection.session, &pending.command, done, ends);
        memory.recycle(recycled);
        driver.touch(connection);
    }

    /// Ends a request whose reply has been written to its end, or will not be written.
    #[inline]
    pub(in crate::shard) fn end_request(&mut self, now: Instant, id: IoId) {
        self.engine.handle_reply(now, id);
    }

    /// Takes the connection's requests back from the engine that it has not dispatched yet. This looks only
    /// at the connection's own requests, however many others there are.
    pub(in crate::shard) fn abort_queued(
        &mut self,
        now: Instant,
        connection: &mut Connection,
    ) -> Vec<Pending> {
        let all: Vec<_> = self.pending.of(&connection.pending).map(|pending| pending.id).collect();
        let queued = all.into_iter().filter(|id| self.engine.handle_abort(now, *id));
        let aborted: Vec<_> =
            queued.map(|id| self.pending.remove(&mut connection.pending, id.slot)).collect();
        self.dirty |= !aborted.is_empty();
        aborted
    }

    /// Tells the device that the requests of this connection have no client any more.
    pub(in crate::shard) fn abandon_at_device(&mut self, connection: &Connection) {
        let volume = self.volumes.get_mut(connection.volume.0 as usize).and_then(Option::as_mut);
        let Some(volume) = volume else { return };
        for pending in self.pending.of(&connection.pending) {
            volume.device.abandon(request_token(self.key, pending.id.slot));
        }
    }

    /// Lets a connection go, after its queued requests were taken back. Its requests at a device finish
    /// without it.
    pub(in crate::shard) fn leave(&mut self, connection: &mut Connection) {
        self.abandon_at_device(connection);
        while let Some(slot) = self.pending.front(&connection.pending).map(|pending| pending.id.slot) {
            let pending = self.pending.remove(&mut connection.pending, slot);
            self.pending.push_back(&mut self.orphans, slot, pending);
        }
        if let Some(witness) = connection.witness.take() {
            self.volume(connection.volume).losses.leave(witness);
        }
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
