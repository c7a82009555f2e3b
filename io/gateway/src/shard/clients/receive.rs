//! Makes requests in an engine from the bytes of a socket.

use std::io::{IoSliceMut, Result};
use std::task::{Context, Poll};

use weir_backend::Buffer;
use weir_clock::Clock;
use weir_model::Instant;
use weir_nbd::{Command, CommandKind, NbdError, Parsed, REQUEST_LENGTH, parse_request};

use super::Clients;
use crate::budget::Charge;
use crate::connection::{Connection, ConnectionId, Incoming, Phase};
use crate::output::Reply;
use crate::pace::Pace;
use crate::reply;
use crate::shard::driver::Driver;
use crate::shard::memory::Memory;
use crate::shard::pieces::Piece;
use crate::shard::pools::Pools;

/// How often one connection is read before other connections have their turn.
const READS_IN_A_ROW: usize = 8;

/// A write of at least this length is read into its own buffer. With it come at most `BEYOND_LARGE_WRITE`
/// more bytes, so that the next large write is not copied either.
const LARGE_WRITE: usize = 64 * 1024;
const BEYOND_LARGE_WRITE: usize = 4 * 1024;

/// The result of polling a connection.
enum Input {
    /// There may be more to read.
    More,
    /// Nothing to read now; the task is woken when there is something.
    Wait,
    /// The connection is over.
    Over(&'static str),
}

/// One connection, with the parts that its requests need on their way in.
struct Intake<'a> {
    connection: &'a mut Connection,
    /// How many requests the connection may have unanswered.
    most: u32,
    pools: &'a mut Pools,
    memory: &'a mut Memory,
    driver: &'a mut Driver,
}

impl Clients {
    /// Drives one connection as far as it goes without waiting; ready when the connection is gone.
    pub(in crate::shard) fn poll_connection(
        &mut self,
        cx: &mut Context<'_>,
        id: ConnectionId,
        clock: Clock,
        pools: &mut Pools,
        memory: &mut Memory,
        driver: &mut Driver,
    ) -> Poll<()> {
        let found = self.connections.get_mut(id.key).filter(|connection| connection.id == id);
        let Some(connection) = found else { return Poll::Ready(()) };
        connection.set_waker(cx.waker());
        let is_stuck = !connection.output.is_empty() && !connection.touched;
        if is_stuck && connection.stream.poll_writable(cx).is_ready() {
            driver.touch(connection);
            driver.wake();
        }
        let mut intake = Intake { connection, most: self.requests_per_connection, pools, memory, driver };
        for _ in 0..READS_IN_A_ROW {
            match intake.poll_input(cx, clock, &mut self.scratch) {
                Input::More => {}
                Input::Wait => return Poll::Pending,
                Input::Over(reason) => {
                    self.close(clock.now(), id.key, reason, pools, memory, driver);
                    return Poll::Ready(());
                }
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Lets in the waiting requests for which there is room now.
    pub(in crate::shard) fn let_in_waiting(
        &mut self,
        now: Instant,
        pools: &mut Pools,
        memory: &mut Memory,
        driver: &mut Driver,
    ) {
        while let Some((key, charge)) = memory.poll_granted() {
            let waits = self.connections.get_mut(key).and_then(|connection| match connection.incoming {
                Incoming::Stalled(command) => Some((connection, command)),
                _ => None,
            });
            let Some((connection, command)) = waits else {
                debug_assert!(false, "a connection that does not wait any more was forgotten");
                memory.give_back(charge);
                continue;
            };
            let mut intake = Intake { connection, most: self.requests_per_connection, pools, memory, driver };
            intake.let_in(now, command, charge);
            intake.connection.wake();
        }
    }
}

impl Intake<'_> {
    /// Reads once, or tries again with bytes that were read before.
    fn poll_input(&mut self, cx: &mut Context<'_>, clock: Clock, scratch: &mut [u8]) -> Input {
        if let Incoming::Stalled(command) = self.connection.incoming {
            self.accept(clock.now(), command);
        }
        let connection = &mut *self.connection;
        if !connection.wants_input(self.most) {
            connection.held_back = true;
            // The socket is not read now, so that only this question tells that the client has gone and its
            // place is free. After a goodbye, the end of the stream is expected. Otherwise it is the end of
            // the connection, once everything before it is parsed.
            let ends = connection.phase != Phase::Disconnecting && connection.backlog.is_empty();
            if connection.stream.poll_gone(cx, ends).is_ready() {
                return Input::Over("the client has gone");
            }
            return Input::Wait;
        }
        if !connection.backlog.is_empty() {
            let backlog = std::mem::take(&mut connection.backlog); // the parser may leave another
            return self.parse_held(clock.now(), &backlog);
        }
        let room = self.memory.room_to_read(scratch.len());
        match read(connection, cx, &mut scratch[..room]) {
            Poll::Pending => Input::Wait,
            Poll::Ready(Err(_)) => Input::Over("the connection broke"),
            Poll::Ready(Ok(None)) => Input::Over("the client closed the connection"),
            Poll::Ready(Ok(Some(length))) => {
                // Counted before it is parsed: what is let in from its beginning leaves room for its end.
                self.memory.hold(length);
                self.parse_held(clock.now(), &scratch[..length])
            }
        }
    }

    /// Parses bytes that are counted as held. The bytes that are left over stay counted.
    fn parse_held(&mut self, now: Instant, input: &[u8]) -> Input {
        let outcome = self.parse(now, input);
        self.memory.release(input.len(), self.connection.backlog.len());
        if self.memory.is_waited_for() {
            self.driver.wake(); // what is released may be enough for a request that waits
        }
        outcome
    }

    /// Parses `input` to its end, or to the first request that has to wait; the rest is kept for later.
    fn parse(&mut self, now: Instant, mut input: &[u8]) -> Input {
        loop {
            let connection = &mut *self.connection;
            match connection.phase {
                Phase::Lingering { .. } => return Input::More,
                Phase::Disconnecting => return Input::More, // to be found held back, and gone if it goes
                Phase::Open | Phase::Retired => {}
            }
            if !connection.wants_input(self.most) {
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
                    self.submit_write(now);
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
                    self.refuse(cookie, error);
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
                        Parsed::Execute(command) => self.accept(now, command),
                        Parsed::Refuse { cookie, error, skip } => self.skip(now, cookie, error, skip),
                        Parsed::Close(_) => return Input::Over("the client broke the protocol"),
                    }
                }
            }
        }
    }

    /// Lets a valid request in, or keeps the connection waiting until a limit eases.
    fn accept(&mut self, now: Instant, command: Command) {
        let connection = &mut *self.connection;
        connection.incoming = Incoming::START;
        if command.kind == CommandKind::Disconnect {
            connection.phase = Phase::Disconnecting;
            self.driver.touch(connection); // answered to the end already, perhaps
            self.driver.wake();
            return;
        }
        if connection.phase == Phase::Retired {
            self.memory.forget(connection.id.key); // it may have waited for memory
            let skip = if command.kind == CommandKind::Write { command.length } else { 0 };
            self.skip(now, command.cookie, NbdError::Shutdown, skip);
            return;
        }
        match self.memory.admit(connection, &command) {
            Some(charge) => self.let_in(now, command, charge),
            None => connection.incoming = Incoming::Stalled(command),
        }
    }

    /// Begins a request that has its charge.
    fn let_in(&mut self, now: Instant, command: Command, charge: Charge) {
        let connection = &mut *self.connection;
        connection.begin_request(&charge);
        if command.kind == CommandKind::Write {
            let (buffer, pace) = (self.memory.buffer(command.length), Pace::new(now, 0));
            connection.incoming = Incoming::Payload { command, buffer, filled: 0, charge, pace };
            self.driver.watch(now, connection);
            if self.memory.is_waited_for() {
                self.driver.wake(); // it may have been the first in line, and the next ones may fit
            }
        } else {
            connection.incoming = Incoming::START;
            self.submit(now, command, None, charge);
        }
    }

    /// Submits a write whose data has arrived.
    fn submit_write(&mut self, now: Instant) {
        let incoming = std::mem::replace(&mut self.connection.incoming, Incoming::START);
        if let Incoming::Payload { command, buffer, charge, .. } = incoming {
            self.submit(now, command, Some(buffer), charge);
        }
    }

    /// Gives the engine the first piece of a command.
    fn submit(&mut self, now: Instant, command: Command, buffer: Option<Buffer>, charge: Charge) {
        let first = Piece::first(&command);
        self.pools.submit(now, self.connection, command, first, buffer, charge);
        self.driver.wake();
    }

    /// Answers with an error once the data of the request has gone by.
    fn skip(&mut self, now: Instant, cookie: u64, error: NbdError, skip: u32) {
        if skip == 0 {
            self.refuse(cookie, error);
        } else {
            self.connection.skip(now, skip, cookie, error);
            self.driver.watch(now, self.connection);
        }
    }

    fn refuse(&mut self, cookie: u64, error: NbdError) {
        let connection = &mut *self.connection;
        // Counted like any other request, so that a client that sends nonsense and reads no answers is pushed
        // back, too.
        connection.requests += 1;
        reply::push_error(&mut connection.output, &connection.session, cookie, error, Reply::default());
        self.driver.touch(connection);
        self.driver.wake();
    }
}

/// Reads from the socket: first the missing data of a large write, then into `scratch`. Returns how many
/// bytes of `scratch` are to be parsed; `None` at the end of the stream.
fn read(
    connection: &mut Connection,
    cx: &mut Context<'_>,
    scratch: &mut [u8],
) -> Poll<Result<Option<usize>>> {
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
    connection.stream.poll_read(cx, into).map_ok(|length| {
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
