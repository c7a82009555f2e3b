//! One connection: its requests, and the turn that drives them.
//!
//! A turn reads once, handles all replies in the bytes that it read, issues every request that may go, and
//! writes them with one call. No request needs an allocation, a task or a channel. Turns go on until the
//! socket has nothing more to read and takes no more writes. Then the task sleeps until the socket is ready,
//! or until the next timed request is due.

use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use tokio::io::{AsyncWriteExt, ReadBuf};
use weir_clock::{Alarm, Clock};
use weir_model::Instant;
use weir_nbd::client::{Awaited, ReplyDecoder, ReplyError, encode_request};
use weir_nbd::{Command, CommandKind};

use crate::connect::{Connected, Socket};
use crate::record::Recorder;
use crate::slots::{Class, Outstanding, Slots};
use crate::source::Source;
use crate::workload::Operation;

/// Bytes read at once: many replies for each system call, and still within the cache of a core.
pub(crate) const READ_BUFFER: usize = 256 << 10;
/// While this much waits for the socket, no request is added: it could not be sent yet anyway.
const HIGH_WATER: usize = 256 << 10;

/// State that the connections of a run share. They take turns on one thread.
pub(crate) struct Shared {
    pub(crate) clock: Clock,
    pub(crate) recorder: Recorder,
    /// No request is sent at or after this instant. A later reply counts in the last second before it.
    pub(crate) end: Instant,
    /// The source of each connection's requests.
    pub(crate) sources: Vec<Source>,
    /// The read buffer. One connection at a time reads into it, and handles the bytes at once.
    pub(crate) buffer: Box<[u8]>,
}

/// How a connection ended before this side ended it.
#[derive(Debug)]
pub(crate) enum Failure {
    Closed,
    Broken(io::Error),
    Protocol(ReplyError),
}

/// One connection. `index` is its place in [`Shared::sources`].
pub(crate) struct Connection {
    pub(crate) index: usize,
    pub(crate) socket: Box<dyn Socket>,
    pub(crate) decoder: ReplyDecoder,
    /// Bytes that came with the handshake. They are handled first.
    pub(crate) rest: Vec<u8>,
    pub(crate) slots: Slots,
    /// The data of a write, repeated for a longer write.
    pub(crate) payload: Rc<[u8]>,
    /// Requests on their way to the socket, and how much of them it has taken.
    pub(crate) output: Vec<u8>,
    pub(crate) taken: usize,
    /// `None` in a closed loop, where each reply brings the next request.
    pub(crate) alarm: Option<Alarm>,
    pub(crate) flush_every: u64,
    /// Writes since the last flush.
    pub(crate) unflushed: u64,
    /// Replies so far.
    pub(crate) replies: u64,
}

impl Shared {
    /// Closes the seconds that are over.
    #[inline]
    pub(crate) fn tick(&mut self, now: Instant) {
        while let Some(end) = self.recorder.due(now).filter(|end| *end < self.end) {
            let offered = self.offered_before(end);
            self.recorder.close(offered);
        }
    }

    /// Reads and writes that were offered before `end`, since the start.
    pub(crate) fn offered_before(&mut self, end: Instant) -> u64 {
        self.sources.iter_mut().map(|source| source.offered_before(end)).sum()
    }
}

impl Connection {
    /// The connection in place `index`, with at most `depth` requests outstanding. It starts without an alarm
    /// for timed requests, and without flushes.
    pub(crate) fn new(index: usize, connected: Connected, depth: u32, payload: Rc<[u8]>) -> Self {
        Self {
            index,
            socket: connected.socket,
            decoder: ReplyDecoder::new(connected.export.structured_replies),
            rest: connected.rest,
            slots: Slots::new(depth),
            payload,
            output: Vec::new(),
            taken: 0,
            alarm: None,
            flush_every: 0,
            unflushed: 0,
            replies: 0,
        }
    }

    /// Takes turns until there is nothing to do. Ready once everything is sent and answered.
    pub(crate) fn poll_turns(
        &mut self,
        cx: &mut Context<'_>,
        shared: &mut Shared,
    ) -> Poll<Result<(), Failure>> {
        loop {
            let mut again = self.poll_replies(cx, shared)?;
            let now = shared.clock.now();
            shared.tick(now);
            self.issue(now, shared);
            again |= self.poll_send(cx)?;
            again |= self.poll_alarm(cx, shared);
            if self.is_done(now, shared) {
                return Poll::Ready(Ok(()));
            }
            if !again {
                return Poll::Pending;
            }
        }
    }

    /// Passes on the end of the run, which is now known or has changed.
    pub(crate) fn end(&self, shared: &mut Shared) {
        shared.sources[self.index].end_at(shared.end);
    }

    /// Sends the disconnect command, as far as the socket takes it. A stalled server may not get it.
    pub(crate) async fn disconnect(&mut self) {
        let command = Command::new(CommandKind::Disconnect, u64::MAX, 0, 0);
        encode_request(&mut self.output, &command);
        let farewell = async {
            self.socket.write_all(&self.output[self.taken..]).await?;
            self.socket.shutdown().await
        };
        let _ = tokio::time::timeout(std::time::Duration::from_millis(100), farewell).await;
    }

    /// Reads once, and handles the replies. Returns whether there may be more.
    fn poll_replies(&mut self, cx: &mut Context<'_>, shared: &mut Shared) -> Result<bool, Failure> {
        if !self.rest.is_empty() {
            let rest = std::mem::take(&mut self.rest);
            let now = shared.clock.now();
            self.look_through(&rest, now, &mut shared.recorder)?;
        }
        let mut buffer = ReadBuf::new(&mut shared.buffer);
        match Pin::new(&mut *self.socket).poll_read(cx, &mut buffer) {
            Poll::Pending => return Ok(false),
            Poll::Ready(read) => read.map_err(Failure::Broken)?,
        }
        let count = buffer.filled().len();
        if count == 0 {
            return Err(Failure::Closed);
        }
        let now = shared.clock.now();
        shared.tick(now);
        self.look_through(&shared.buffer[..count], now, &mut shared.recorder)?;
        Ok(true)
    }

    fn look_through(
        &mut self,
        mut input: &[u8],
        now: Instant,
        recorder: &mut Recorder,
    ) -> Result<(), Failure> {
        let awaited = |slots: &Slots, cookie| slots.find(cookie).map(|request| request.awaited);
        while let Some(reply) = self
            .decoder
            .next_reply(&mut input, |cookie| awaited(&self.slots, cookie))
            .map_err(Failure::Protocol)?
        {
            let request = self.slots.remove(reply.cookie).expect("the decoder asked for it");
            self.replies += 1;
            if reply.error == 0 {
                recorder.completed(now, request.class, now.since(request.since));
            } else {
                recorder.failed(now, reply.error);
            }
        }
        Ok(())
    }

    /// Issues every request that may go now.
    fn issue(&mut self, now: Instant, shared: &mut Shared) {
        while self.has_room() {
            if self.flush_every > 0 && self.unflushed == self.flush_every {
                self.unflushed = 0;
                self.send(Class::Flush, now, 0, 0);
                continue;
            }
            let Some(next) = shared.sources[self.index].take(now, shared.end) else { break };
            if let Some(lateness) = next.late {
                shared.recorder.late(lateness);
            }
            let Operation { read, offset, length } = next.operation;
            if read {
                self.send(Class::Read, next.since, offset, length);
            } else {
                self.unflushed += 1;
                self.send(Class::Write, next.since, offset, length);
            }
        }
    }

    fn send(&mut self, class: Class, since: Instant, offset: u64, length: u32) {
        let data = if class == Class::Read { length } else { 0 };
        let cookie = self.slots.insert(Outstanding { class, since, awaited: Awaited { offset, data } });
        let kind = match class {
            Class::Read => CommandKind::Read,
            Class::Write => CommandKind::Write,
            Class::Flush => CommandKind::Flush,
        };
        encode_request(&mut self.output, &Command::new(kind, cookie, offset, length));
        if class == Class::Write {
            self.put_payload(length as usize);
        }
    }

    /// Appends `length` bytes of payload. Their content does not matter.
    fn put_payload(&mut self, mut length: usize) {
        while length > 0 {
            let part = length.min(self.payload.len());
            self.output.extend_from_slice(&self.payload[..part]);
            length -= part;
        }
    }

    /// Writes the waiting output. Returns whether there is room again for requests that had to wait.
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Result<bool, Failure> {
        let was_full = self.is_full();
        while self.taken < self.output.len() {
            match Pin::new(&mut *self.socket).poll_write(cx, &self.output[self.taken..]) {
                Poll::Pending => break,
                Poll::Ready(Ok(0)) => return Err(Failure::Closed),
                Poll::Ready(Ok(count)) => self.taken += count,
                Poll::Ready(Err(error)) => return Err(Failure::Broken(error)),
            }
        }
        if self.taken == self.output.len() {
            self.output.clear();
            self.taken = 0;
        } else if self.taken >= HIGH_WATER {
            self.output.drain(..self.taken);
            self.taken = 0;
        }
        Ok(was_full && !self.is_full())
    }

    /// Waits for the next timed request, if it could be sent. Returns whether it is due.
    fn poll_alarm(&mut self, cx: &mut Context<'_>, shared: &Shared) -> bool {
        let room = self.has_room();
        let Some(alarm) = &mut self.alarm else { return false };
        alarm.set(if room { shared.sources[self.index].due_at() } else { None });
        alarm.poll_fired(cx).is_ready()
    }

    fn has_room(&self) -> bool {
        self.slots.has_room() && !self.is_full()
    }

    fn is_full(&self) -> bool {
        self.output.len() - self.taken >= HIGH_WATER
    }

    /// Whether everything is sent and answered. If the run has an end, a connection stays until then, even
    /// after its last arrival was served.
    fn is_done(&self, now: Instant, shared: &Shared) -> bool {
        let time_is_over = now >= shared.end;
        let all_issued = shared.sources[self.index].is_exhausted(now, shared.end);
        let may_leave =
            time_is_over || shared.end == Instant::FAR_FUTURE || shared.sources[self.index].is_broken();
        all_issued && may_leave && self.slots.outstanding() == 0 && self.output.is_empty()
    }
}
