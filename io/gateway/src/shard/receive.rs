//! Bytes from a socket to requests in an engine.

use std::io::{IoSliceMut, Result};
use std::rc::Rc;
use std::task::{Context, Poll};

use weir_engine::Request;
use weir_model::Instant;
use weir_nbd::{Command, CommandKind, NbdError, Parsed, REQUEST_LENGTH, parse_request};

use super::pieces::Piece;
use super::{Pending, Shard};
use crate::budget::Charge;
use crate::connection::{Connection, ConnectionId, Incoming, Phase};
use crate::output::Reply;
use crate::pace::Pace;
use crate::reply;

/// Reads of one connection before others have their turn.
const READS_IN_A_ROW: usize = 8;

/// A write at least so large is read into its own buffer, with only so many bytes more, so that the next
/// large write is not copied either.
const LARGE_WRITE: usize = 64 * 1024;
const BEYOND_LARGE_WRITE: usize = 4 * 1024;

/// What became of a connection that was polled.
enum Input {
    /// There is more to read, or may be.
    More,
    /// Nothing to read now; the task is woken when there is.
    Wait,
    /// The connection is over.
    Over(&'static str),
}

impl Shard {
    /// Drives one connection as far as it goes without waiting; ready when it is gone.
    pub(super) fn poll_connection(&mut self, cx: &mut Context<'_>, id: ConnectionId) -> Poll<()> {
        let Some(connection) = self.connection(id) else { return Poll::Ready(()) };
        connection.set_waker(cx.waker());
        if !connection.output.is_empty() && !connection.touched {
            let stream = Rc::clone(&connection.stream);
            if stream.poll_writable(cx).is_ready() {
                self.touch(id.key);
                self.wake_driver();
            }
        }
        for _ in 0..READS_IN_A_ROW {
            match self.poll_input(cx, id) {
                Input::More => {}
                Input::Wait => return Poll::Pending,
                Input::Over(reason) => {
                    self.close(id.key, reason);
                    return Poll::Ready(());
                }
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// One read, or one more try at what was read before.
    fn poll_input(&mut self, cx: &mut Context<'_>, id: ConnectionId) -> Input {
        let key = id.key;
        if let Incoming::Stalled(command) = self.connections[key].incoming {
            self.accept(self.clock.now(), key, command);
        }
        let connection = &mut self.connections[key];
        if !connection.wants_input(self.limits.requests_per_connection) {
            connection.held_back = true;
            // Nobody reads, and so nobody would learn that the client has gone: its place would stay taken.
            // After a goodbye the end of its stream is no news; else it is the end, unless there is something
            // before it.
            let ends = connection.phase != Phase::Disconnecting && connection.backlog.is_empty();
            if connection.stream.poll_gone(cx, ends).is_ready() {
                return Input::Over("the client has gone");
            }
            return Input::Wait;
        }
        if !connection.backlog.is_empty() {
            let backlog = std::mem::take(&mut connection.backlog);
            return self.parse_held(key, &backlog);
        }
        // Taken out, so that the parser can borrow it beside the shard.
        let mut scratch = std::mem::take(&mut self.scratch);
        let room = self.memory.room_to_read(scratch.len());
        let input = match read(connection, cx, &mut scratch[..room]) {
            Poll::Pending => Input::Wait,
            Poll::Ready(Err(_)) => Input::Over("the connection broke"),
            Poll::Ready(Ok(None)) => Input::Over("the client closed the connection"),
            Poll::Ready(Ok(Some(length))) => {
                // Counted before it is parsed: what is let in from its beginning leaves room for its end.
                self.memory.hold(length);
                self.parse_held(key, &scratch[..length])
            }
        };
        self.scratch = scratch;
        input
    }

    /// Parses what is counted as held; what is left of it stays so.
    fn parse_held(&mut self, key: usize, input: &[u8]) -> Input {
        let outcome = self.parse(self.clock.now(), key, input);
        let kept = self.connections[key].backlog.len();
        self.memory.release(input.len(), kept);
        if self.memory.is_waited_for() {
            self.wake_driver(); // what is released may be enough for somebody
        }
        outcome
    }

    /// Parses `input` to its end, or to the first request that has to wait; the rest is kept for later.
    fn parse(&mut self, now: Instant, key: usize, mut input: &[u8]) -> Input {
        loop {
            let connection = &mut self.connections[key];
            match connection.phase {
                Phase::Lingering { .. } => return Input::More,
                Phase::Disconnecting => return Input::More, // to be found held back, and gone if it goes
                Phase::Open | Phase::Retired => {}
            }
            if !connection.wants_input(self.limits.requests_per_connection) {
                connection.backlog = input.to_vec();
                return Input::More; // to be found held back
            }
            match &mut connection.incoming {
                Incoming::Stalled(_) => unreachable!("a stalled connection wants no input"),
                Incoming::Payload { buffer, filled, .. } => {
                    let part = input.len().min(buffer.len() - *filled);
                    buffer[*filled..*filled + part].copy_from_slice(&input[..part]);
                    *filled += part;
                    input = &input[part..];
                    if *filled < buffer.len() {
                        return Input::More;
                    }
                    self.submit_write(now, key);
                }
                Incoming::Skip { left, cookie, error, .. } => {
                    let part = input.len().min(*left as usize);
                    *left -= u32::try_from(part).expect("at most `left`");
                    input = &input[part..];
                    if *left > 0 {
                        return Input::More;
                    }
                    let (cookie, error) = (*cookie, *error);
                    connection.incoming = Incoming::START;
                    self.refuse(key, cookie, error);
                }
                Incoming::Header { bytes, filled } => {
                    let part = input.len().min(REQUEST_LENGTH - *filled);
                    bytes[*filled..*filled + part].copy_from_slice(&input[..part]);
                    *filled += part;
                    input = &input[part..];
                    if *filled < REQUEST_LENGTH {
                        return Input::More;
                    }
                    let parsed = parse_request(&connection.session, bytes);
                    connection.incoming = Incoming::START;
                    match parsed {
                        Parsed::Execute(command) => self.accept(now, key, command),
                        Parsed::Refuse { cookie, error, skip } => self.skip(now, key, cookie, error, skip),
                        Parsed::Close(_) => return Input::Over("the client broke the protocol"),
                    }
                }
            }
        }
    }

    /// Lets a valid request in, or keeps the connection waiting until a limit eases.
    fn accept(&mut self, now: Instant, key: usize, command: Command) {
        let connection = &mut self.connections[key];
        connection.incoming = Incoming::START;
        if command.kind == CommandKind::Disconnect {
            connection.phase = Phase::Disconnecting;
            self.touch(key); // answered to the end already, perhaps
            self.wake_driver();
            return;
        }
        if connection.phase == Phase::Retired {
            self.memory.forget(key); // it may have waited for memory
            let skip = if command.kind == CommandKind::Write { command.length } else { 0 };
            self.skip(now, key, command.cookie, NbdError::Shutdown, skip);
            return;
        }
        match self.memory.admit(connection, &command) {
            Some(charge) => self.let_in(now, key, command, charge),
            None => connection.incoming = Incoming::Stalled(command),
        }
    }

    /// Lets those in for whose requests there is room now.
    pub(super) fn let_in_waiting(&mut self) {
        while let Some((key, charge)) = self.memory.poll_granted() {
            match self.connections.get_mut(key).map(|connection| &mut connection.incoming) {
                Some(Incoming::Stalled(command)) => {
                    let command = *command;
                    self.let_in(self.clock.now(), key, command, charge);
                    self.connections[key].wake();
                }
                _ => {
                    debug_assert!(false, "who does not wait any more was forgotten");
                    self.memory.give_back(charge);
                }
            }
        }
    }

    /// Begins with a request that has what it needs.
    fn let_in(&mut self, now: Instant, key: usize, command: Command, charge: Charge) {
        let connection = &mut self.connections[key];
        connection.begin_request(&charge);
        if command.kind == CommandKind::Write {
            let (buffer, pace) = (self.memory.buffer(command.length), Pace::new(now, 0));
            connection.incoming = Incoming::Payload { command, buffer, filled: 0, charge, pace };
            self.watch(now, key);
            if self.memory.is_waited_for() {
                self.wake_driver(); // the first in line may have left it, and those behind it may fit
            }
        } else {
            connection.incoming = Incoming::START;
            self.submit(now, key, command, Piece::first(&command), None, charge);
        }
    }

    fn submit_write(&mut self, now: Instant, key: usize) {
        let connection = &mut self.connections[key];
        let incoming = std::mem::replace(&mut connection.incoming, Incoming::START);
        if let Incoming::Payload { command, buffer, charge, .. } = incoming {
            self.submit(now, key, command, Piece::first(&command), Some(buffer), charge);
        }
    }

    /// Gives the engine a piece of a command.
    pub(super) fn submit(
        &mut self,
        now: Instant,
        key: usize,
        command: Command,
        piece: Piece,
        buffer: Option<weir_backend::Buffer>,
        charge: Charge,
    ) {
        let connection = &mut self.connections[key];
        let pool = &mut self.pools[connection.pool];
        let flush = pool.note_flush(connection, &command);
        let kind = command.kind.io_kind().expect("a disconnect is not submitted");
        let Piece { offset, length, left } = piece;
        let id = pool.engine.handle_submit(now, Request { volume: connection.port, kind, offset, length });
        let pending = Pending {
            id,
            connection: connection.id,
            volume: connection.volume,
            command,
            left,
            flush,
            buffer,
            charge,
        };
        pool.pending.push_back(&mut connection.pending, id.slot, pending);
        pool.dirty = true;
        self.wake_driver();
    }

    /// Answers with an error once the data of the request has gone by.
    fn skip(&mut self, now: Instant, key: usize, cookie: u64, error: NbdError, skip: u32) {
        if skip == 0 {
            self.refuse(key, cookie, error);
        } else {
            self.connections[key].skip(now, skip, cookie, error);
            self.watch(now, key);
        }
    }

    fn refuse(&mut self, key: usize, cookie: u64, error: NbdError) {
        let connection = &mut self.connections[key];
        // Counted like any other, so that a client that sends nonsense and reads no answers is pushed back
        // too.
        connection.requests += 1;
        reply::push_error(&mut connection.output, &connection.session, cookie, error, Reply::default());
        self.touch(key);
        self.wake_driver();
    }
}

/// Reads from the socket: first what is missing of a large write, then into `scratch`. Returns how many bytes
/// of `scratch` are to be parsed, `None` at the end of the stream.
fn read(
    connection: &mut Connection,
    cx: &mut Context<'_>,
    scratch: &mut [u8],
) -> Poll<Result<Option<usize>>> {
    let stream = Rc::clone(&connection.stream);
    let mut no_rest = [];
    let (rest, filled) = match &mut connection.incoming {
        Incoming::Payload { buffer, filled, .. } => (&mut buffer[*filled..], Some(filled)),
        _ => (&mut no_rest[..], None),
    };
    // One byte of the payload always goes by way of `scratch`, so that only the parser ends a payload.
    let direct = rest.len().saturating_sub(1);
    let room = if direct >= LARGE_WRITE { BEYOND_LARGE_WRITE.min(scratch.len()) } else { scratch.len() };
    let mut slices = [IoSliceMut::new(&mut rest[..direct]), IoSliceMut::new(&mut scratch[..room])];
    let into = if direct == 0 { &mut slices[1..] } else { &mut slices[..] };
    stream.poll_read(cx, into).map_ok(|length| {
        if length == 0 {
            return None;
        }
        let to_payload = length.min(direct);
        if let Some(filled) = filled {
            *filled += to_payload;
        }
        Some(length - to_payload)
    })
}
