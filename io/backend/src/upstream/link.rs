//! The link to a server: its connections, or its attempts to connect while there are none.
//!
//! The header of `upstream` states the promises and their reasons. Here, requests come in by [`Link::start`].
//! Each turn sends by [`Link::send`], and looks for answers by [`Link::poll`]. [`Link::handle_time`] does the
//! work that is due.
//!
//! If one connection breaks, the link drops the others too, because weir cannot know then whether the same
//! server is still behind them. Once there are new connections, all requests that were not answered go out
//! again, in their order.

use std::num::NonZeroU32;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::thread;

use rustix::io::Errno;
use tokio::sync::oneshot;
use weir_model::{Instant, IoKind, Span};
use weir_nbd::client::{Awaited, Target};
use weir_nbd::{Command, CommandKind, wire};

use super::abilities::Abilities;
use super::connect::{ConnectError, Established, connect};
use super::connection::{Connection, Data, Lost};
use super::table::{Piece, Table, changes};
use crate::{Buffer, DeviceRequest, Extent, Finished, Token};

/// How long a request waits for a server that is away. Usual initiators give up after 30 s; this is half of
/// that.
pub(super) const HELD_AT_MOST: Span = Span::from_secs(15);
/// The pause after the second failed attempt to connect in a row, and the longest pause.
const FIRST_PAUSE: Span = Span::from_millis(100);
pub(super) const LONGEST_PAUSE: Span = Span::from_secs(2);
/// How long the connections must last before the pauses start anew. So a server that lets weir in, answers
/// once and breaks off costs no more attempts, threads and log lines than a server that is away.
const LASTED: Span = LONGEST_PAUSE;
/// How many bytes of zeroes are written at a time, if the server has no command for zeroes.
const ZEROES: u32 = 1 << 20;

/// The link to a server. Its device and the thread's driver share it.
#[derive(Debug)]
pub(crate) struct Link {
    target: Target,
    /// The most connections.
    most: NonZeroU32,
    pub(super) abilities: Abilities,
    table: Table,
    state: State,
    /// The time that the driver last passed.
    now: Instant,
    /// The driver's waker.
    waker: Waker,
    /// How many changes were answered, and how many of them are durable for sure.
    changes: u64,
    durable: u64,
    /// Whether changes that were answered may be lost, and the driver does not know it yet.
    lost: bool,
    /// The pause before the next attempt to connect.
    pause: Span,
    /// Since when there are connections, if there are any.
    raised: Instant,
    zeroes: Option<Buffer>,
    answered: Vec<(Piece, u32)>,
}

#[derive(Debug)]
enum State {
    /// Never empty.
    Up(Vec<Connection>),
    Down(Outage),
}

/// A time without connections.
#[derive(Debug)]
struct Outage {
    attempt: Option<oneshot::Receiver<Result<Established, ConnectError>>>,
    /// When to make the next attempt, if none is under way.
    next_attempt: Instant,
    /// When the first request gives up.
    next_give_up: Instant,
    /// Why the last server that answered was refused.
    refused: String,
}

impl Link {
    /// A link to the server at `target`. It belongs to the thread that makes it.
    pub(super) fn new(target: Target, most: NonZeroU32, established: Established) -> Self {
        let outage = Outage {
            attempt: None,
            next_attempt: Instant::ORIGIN,
            next_give_up: Instant::FAR_FUTURE,
            refused: String::new(),
        };
        let mut link = Self {
            target,
            most,
            abilities: established.abilities,
            table: Table::default(),
            state: State::Down(outage),
            now: Instant::ORIGIN,
            waker: Waker::noop().clone(),
            changes: 0,
            durable: 0,
            lost: false,
            pause: Span::ZERO,
            raised: Instant::ORIGIN,
            zeroes: None,
            answered: Vec::new(),
        };
        link.raise(established, &mut Vec::new()); // nothing was started that could finish
        link
    }

    /// Starts a request that lies inside the export.
    pub(super) fn start(&mut self, now: Instant, request: DeviceRequest, finished: &mut Vec<Finished>) {
        self.now = now;
        let request = match self.answer(request) {
            Ok(answer) => return finished.push(answer),
            Err(request) => request,
        };
        let key = self.table.add(now, request);
        match &mut self.state {
            State::Up(_) => self.issue(key),
            State::Down(outage) => {
                let give_up = now + HELD_AT_MOST;
                self.table.hold(key, give_up);
                outage.next_give_up = outage.next_give_up.min(give_up);
            }
        }
    }

    /// Notes that no client waits for a request. It ends after the pieces that are under way, or at once if
    /// there is no connection.
    pub(super) fn abandon(&mut self, token: Token) {
        let Some(request) = self.table.abandon(token) else { return };
        if let State::Down(outage) = &mut self.state {
            request.give_up = Instant::ORIGIN;
            outage.next_give_up = Instant::ORIGIN;
            self.waker.wake_by_ref(); // for a turn that tells the time
        }
    }

    /// Does the work that is due by `now`: fails requests that have waited too long, and tries to connect.
    pub(super) fn handle_time(&mut self, now: Instant, finished: &mut Vec<Finished>) {
        self.now = now;
        let State::Down(outage) = &mut self.state else { return };
        if outage.next_give_up <= now {
            outage.next_give_up = Instant::FAR_FUTURE;
            for key in self.table.in_order() {
                let give_up = self.table.requests[key].give_up;
                if give_up <= now {
                    let request = self.table.remove(key);
                    let why = if request.is_abandoned() { Errno::CANCELED } else { Errno::TIMEDOUT };
                    finished.push(request.inner.fail(why));
                } else {
                    outage.next_give_up = outage.next_give_up.min(give_up);
                }
            }
        }
        if outage.attempt.is_none() && outage.next_attempt <= now {
            let (send, receive) = oneshot::channel();
            let (target, most) = (self.target.clone(), self.most);
            let attempt = move || drop(send.send(connect(&target, most)));
            match thread::Builder::new().name("weir-upstream".to_owned()).spawn(attempt) {
                Ok(_) => outage.attempt = Some(receive),
                Err(_) => outage.next_attempt = now + LONGEST_PAUSE, // the system is short of something
            }
            self.waker.wake_by_ref(); // for a turn that polls it
        }
    }

    /// When [`Link::handle_time`] has something to do.
    pub(super) fn poll_timeout(&self) -> Instant {
        match &self.state {
            State::Up(_) => Instant::FAR_FUTURE,
            State::Down(Outage { attempt: None, next_attempt, next_give_up, .. }) => {
                *next_attempt.min(next_give_up)
            }
            State::Down(outage) => outage.next_give_up,
        }
    }

    /// Whether changes that were answered may be lost. Each loss is reported once.
    pub(super) fn take_loss(&mut self) -> bool {
        std::mem::take(&mut self.lost)
    }

    /// Looks for answers and for new connections, and has the task woken when there are more.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>, scratch: &mut [u8], finished: &mut Vec<Finished>) {
        self.waker.clone_from(cx.waker());
        if let State::Down(outage) = &mut self.state {
            let Some(attempt) = &mut outage.attempt else { return };
            let Poll::Ready(outcome) = Pin::new(attempt).poll(cx) else { return };
            outage.attempt = None;
            match outcome {
                Ok(Ok(established)) => self.try_again_with(established, finished),
                Ok(Err(error)) => self.note_failure(&error),
                Err(_) => outage.next_attempt = self.now + LONGEST_PAUSE, // the thread has panicked
            }
        }
        let State::Up(connections) = &mut self.state else { return };
        let mut answered = std::mem::take(&mut self.answered);
        let mut outcome = Ok(());
        for connection in connections {
            outcome = outcome.and(connection.receive(cx, scratch, &mut self.table, &mut answered));
        }
        for (piece, error) in answered.drain(..) {
            if error == wire::error::SHUTDOWN {
                outcome = outcome.and(Err(Lost::ShuttingDown));
            } else {
                self.handle_answer(&piece, error, finished);
            }
        }
        self.answered = answered; // given back for its allocation
        match outcome {
            Ok(()) => self.send(),
            Err(lost) => self.lose(&lost),
        }
    }

    /// Hands all started requests to the sockets, as far as they take them.
    pub(crate) fn send(&mut self) {
        let State::Up(connections) = &mut self.state else { return };
        let mut cx = Context::from_waker(&self.waker);
        let zeroes = self.zeroes.as_deref().unwrap_or_default();
        let table = &mut self.table;
        let outcome =
            connections.iter_mut().try_for_each(|connection| connection.send(&mut cx, table, zeroes));
        if let Err(lost) = outcome {
            self.lose(&lost);
        }
    }

    /// The answer to a request that need not go to the server; otherwise the request.
    fn answer(&self, request: DeviceRequest) -> Result<Finished, DeviceRequest> {
        let can = &self.abilities;
        let is_aligned = |number: u64| number.is_multiple_of(can.minimum.into());
        let is_up = matches!(self.state, State::Up(_));
        match request.kind {
            _ if !is_aligned(request.offset) || !is_aligned(request.length.into()) => {
                Ok(request.fail(Errno::INVAL))
            }
            kind if changes(kind) && can.read_only => Ok(request.fail(Errno::ROFS)),
            IoKind::WriteZeroes if request.fast_zero && !can.fast_zero => Ok(request.fail(Errno::OPNOTSUPP)),
            IoKind::Trim if !can.trim => Ok(request.succeed()),
            IoKind::Cache if !can.cache => Ok(request.succeed()),
            // Without a connection the answer comes later: the client may have to hear of a loss first.
            IoKind::Flush if !can.flush && is_up => Ok(request.succeed()),
            IoKind::BlockStatus => {
                let all = vec![Extent::allocated(request.length.into())];
                Ok(request.answer(all))
            }
            _ => Err(request),
        }
    }

    /// Queues as many pieces of a request as may be under way.
    fn issue(&mut self, key: usize) {
        let can = self.abilities;
        let request = &self.table.requests[key].inner;
        let (kind, fua) = (request.kind, request.fua);
        let by_hand = kind == IoKind::WriteZeroes && !can.write_zeroes;
        let longest = match kind {
            IoKind::Flush => return self.issue_flush(key),
            IoKind::Read | IoKind::Write => can.maximum,
            IoKind::WriteZeroes if by_hand => can.maximum.min(ZEROES),
            _ => u32::MAX,
        };
        if by_hand && self.zeroes.is_none() {
            self.zeroes = Some(Buffer::zeroed(ZEROES as usize));
        }
        let command = Command {
            // If the server has no flush, every change is made durable with FUA, if it has that.
            fua: changes(kind) && can.fua && (fua || !can.flush),
            no_hole: request.no_hole && !by_hand,
            fast_zero: request.fast_zero,
            ..Command::new(command_kind(kind, by_hand), 0, request.offset, request.length)
        };
        while let Some((start, length)) = self.table.next_part(key, longest) {
            let data = match kind {
                IoKind::Write => Data::Of { request: key, start, length },
                _ if by_hand => Data::Zeroes { length },
                _ => Data::None,
            };
            let offset = command.offset + u64::from(start);
            self.issue_piece(key, start, Command { offset, length, ..command }, data, None);
        }
    }

    /// Queues a flush, for a request that is a flush or needs one. The server must have the command.
    fn issue_flush(&mut self, key: usize) {
        let flush = Command::new(CommandKind::Flush, 0, 0, 0);
        self.issue_piece(key, 0, flush, Data::None, Some(self.changes));
    }

    fn issue_piece(&mut self, key: usize, start: u32, command: Command, data: Data, covers: Option<u64>) {
        let State::Up(connections) = &mut self.state else {
            unreachable!("pieces are made only while the link is up")
        };
        // The least busy connection; of several the first, so that a few requests share one system call.
        let index = (0..connections.len()).min_by_key(|index| connections[*index].outstanding());
        let index = index.expect("a link that is up has a connection");
        let awaits = if command.kind == CommandKind::Read { command.length } else { 0 };
        let awaited = Awaited { offset: command.offset, data: awaits };
        let cookie = self.table.add_piece(key, index, start, awaited, covers);
        connections[index].push(&Command { cookie, ..command }, data);
    }

    /// Handles the answer to a piece, with the protocol's error or with zero.
    fn handle_answer(&mut self, piece: &Piece, error: u32, finished: &mut Vec<Finished>) {
        if let Some(covers) = piece.covers.filter(|_| error == 0) {
            self.durable = self.durable.max(covers);
        }
        let request = &mut self.table.requests[piece.request];
        request.pieces -= 1;
        if error != 0 {
            request.error = request.error.or(Some(errno(error)));
        }
        if request.has_more() {
            return self.issue(piece.request);
        }
        if request.pieces > 0 {
            return;
        }
        let can = &self.abilities;
        let outcome = request.outcome();
        if outcome.is_ok() && request.changes() {
            let by_flush = request.inner.fua && !can.fua && can.flush;
            if by_flush && !request.flushing {
                request.flushing = true;
                return self.issue_flush(piece.request);
            }
            if !by_flush && !(can.fua && (request.inner.fua || !can.flush)) {
                self.changes += 1;
            }
        }
        finished.push(self.table.remove(piece.request).inner.finish(outcome));
    }

    /// Notes that the connections are gone.
    fn lose(&mut self, why: &Lost) {
        let now = self.now;
        let unflushed = self.changes > self.durable;
        self.lost |= unflushed;
        self.durable = self.changes;
        // If nobody acknowledged the data, the requests have waited since their start.
        let silent = matches!(why, Lost::Broken(error) if error.kind() == std::io::ErrorKind::TimedOut);
        self.table.rewind(|request| if silent { request.started } else { now } + HELD_AT_MOST);
        let give_ups = self.table.requests.iter().map(|(_, request)| request.give_up);
        if now.saturating_since(self.raised) >= LASTED {
            self.pause = Span::ZERO;
        }
        let outage = Outage {
            attempt: None,
            next_attempt: now + self.pause,
            next_give_up: give_ups.min().unwrap_or(Instant::FAR_FUTURE),
            refused: String::new(),
        };
        self.lengthen_pause();
        self.state = State::Down(outage);
        self.waker.wake_by_ref(); // for a turn that tells the time
        let (upstream, unanswered) = (&self.target, self.table.requests.len());
        if unflushed {
            tracing::warn!(
                %upstream, reason = %why, unanswered,
                "lost the server; writes that were answered and not flushed may be lost: the next flush of each client fails"
            );
        } else {
            tracing::warn!(%upstream, reason = %why, unanswered, "lost the server; nothing that was answered is lost");
        }
    }

    /// Takes these connections, if they lead to the same export as before.
    fn try_again_with(&mut self, established: Established, finished: &mut Vec<Finished>) {
        if let Some(how) = self.abilities.difference(&established.abilities) {
            return self.note_failure(&ConnectError::Changed(how));
        }
        let connections = established.connections.len();
        self.raise(established, finished);
        if let State::Up(_) = self.state {
            let (upstream, unanswered) = (&self.target, self.table.requests.len());
            tracing::info!(%upstream, connections, unanswered, "the server is back");
        }
    }

    /// Takes these connections, and sends all requests that were not answered.
    fn raise(&mut self, established: Established, finished: &mut Vec<Finished>) {
        let negotiated = established.connections.into_iter().enumerate();
        match negotiated.map(|(index, negotiated)| Connection::new(index, negotiated)).collect() {
            Ok(connections) => {
                self.state = State::Up(connections);
                self.raised = self.now;
            }
            Err(error) => return self.note_failure(&ConnectError::Unreachable(error)),
        }
        for key in self.table.in_order() {
            let request = &self.table.requests[key];
            if request.is_abandoned() {
                // The request has no pieces left to send, so nothing else would end it.
                finished.push(self.table.remove(key).inner.fail(Errno::CANCELED));
            } else if request.inner.kind == IoKind::Flush && !self.abilities.flush {
                finished.push(self.table.remove(key).inner.succeed());
            } else {
                self.issue(key);
            }
        }
        self.send();
    }

    /// Notes a failed attempt to connect.
    fn note_failure(&mut self, why: &ConnectError) {
        let State::Down(outage) = &mut self.state else {
            unreachable!("nobody connects while the link is up")
        };
        outage.next_attempt = self.now + self.pause;
        let reason = why.to_string();
        // A server that is not there yet is no news. A server that refuses is, and is logged once.
        if !matches!(why, ConnectError::Unreachable(_)) && outage.refused != reason {
            tracing::warn!(upstream = %self.target, reason, "still without the server; trying on");
            outage.refused = reason;
        }
        self.lengthen_pause();
        self.waker.wake_by_ref(); // for a turn that sets the alarm
    }

    fn lengthen_pause(&mut self) {
        self.pause = (self.pause + self.pause).clamp(FIRST_PAUSE, LONGEST_PAUSE);
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        if let State::Up(connections) = &self.state {
            connections.iter().for_each(Connection::disconnect);
        }
    }
}

fn command_kind(kind: IoKind, by_hand: bool) -> CommandKind {
    match kind {
        IoKind::Read => CommandKind::Read,
        IoKind::Write => CommandKind::Write,
        IoKind::WriteZeroes if by_hand => CommandKind::Write,
        IoKind::WriteZeroes => CommandKind::WriteZeroes,
        IoKind::Trim => CommandKind::Trim,
        IoKind::Cache => CommandKind::Cache,
        IoKind::Flush => CommandKind::Flush,
        IoKind::BlockStatus => CommandKind::BlockStatus,
    }
}

/// The kernel's number for an error of the protocol.
fn errno(error: u32) -> Errno {
    match error {
        wire::error::PERM => Errno::PERM,
        wire::error::NOMEM => Errno::NOMEM,
        wire::error::INVAL => Errno::INVAL,
        wire::error::NOSPC => Errno::NOSPC,
        wire::error::NOTSUP => Errno::OPNOTSUPP,
        _ => Errno::IO,
    }
}
