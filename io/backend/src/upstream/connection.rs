//! One connection: requests on their way to its socket, and replies on their way from it.
//!
//! One call writes everything that a turn of the driver has for a server: headers, and the data of writes
//! from where they lie. A read takes all bytes that the socket has. The rest of a read's payload goes
//! straight to its place. All further bytes go into a buffer of the whole thread, and are handled at once. So
//! only the first part of a large read is copied.

use std::collections::VecDeque;
use std::io::{self, IoSlice, IoSliceMut};
use std::task::{Context, Poll};

use thiserror::Error;
use weir_nbd::client::{Received, ReplyDecoder, ReplyError, request_header};
use weir_nbd::{Command, CommandKind, REQUEST_LENGTH};

use super::connect::Negotiated;
use super::socket::Socket;
use super::table::{Piece, Table};

/// Parts of one write to the socket: a turn's worth of requests.
const SLICES: usize = 128;
/// The most reads, and the most messages, of one turn; after them the other connections have their turn. Each
/// message costs some time, whatever its length, and a server may answer a read byte by byte.
const READS: usize = 16;
const MESSAGES: usize = 4096;

/// How a connection ended.
#[derive(Debug, Error)]
pub(super) enum Lost {
    #[error("the server closed the connection")]
    Closed,
    #[error("the server is shutting down")]
    ShuttingDown,
    #[error(transparent)]
    Broken(#[from] io::Error),
    #[error(transparent)]
    Protocol(#[from] ReplyError),
    #[error("the server answered cookie {0:#018x} before it had taken all of that request")]
    TooEarly(u64),
}

/// A connection in the transmission phase.
#[derive(Debug)]
pub(super) struct Connection {
    /// Its number among the connections to its server.
    index: usize,
    socket: Socket,
    decoder: ReplyDecoder,
    output: VecDeque<Outgoing>,
    /// Bytes of the first of `output` that the socket has taken.
    taken: usize,
    /// The number of pieces that are not answered.
    outstanding: usize,
    filling: Option<Filling>,
}

/// A request on its way to the socket.
#[derive(Debug)]
struct Outgoing {
    cookie: u64,
    header: [u8; REQUEST_LENGTH],
    data: Data,
}

/// The data that follow the header of a request.
#[derive(Clone, Copy, Debug)]
pub(super) enum Data {
    None,
    /// A part of the buffer of a request.
    Of {
        request: usize,
        start: u32,
        length: u32,
    },
    Zeroes {
        length: u32,
    },
}

/// The data of a read that have not come yet.
#[derive(Debug)]
struct Filling {
    cookie: u64,
    start: u32,
    length: u32,
}

impl Connection {
    /// The connection of this number.
    pub(super) fn new(index: usize, negotiated: Negotiated) -> io::Result<Self> {
        Ok(Self {
            index,
            socket: Socket::new(negotiated.socket)?,
            decoder: ReplyDecoder::new(negotiated.structured_replies),
            output: VecDeque::new(),
            taken: 0,
            outstanding: 0,
            filling: None,
        })
    }

    /// The number of pieces that are not answered.
    pub(super) const fn outstanding(&self) -> usize {
        self.outstanding
    }

    /// Queues a request. Its cookie is that of a piece for this connection.
    pub(super) fn push(&mut self, command: &Command, data: Data) {
        self.outstanding += 1;
        self.output.push_back(Outgoing { cookie: command.cookie, header: request_header(command), data });
    }

    /// Writes as much as the socket takes.
    pub(super) fn send(
        &mut self,
        cx: &mut Context<'_>,
        table: &mut Table,
        zeroes: &[u8],
    ) -> Result<(), Lost> {
        while !self.output.is_empty() {
            let mut slices = [IoSlice::new(&[]); SLICES];
            let mut used = 0;
            let mut skip = self.taken;
            for outgoing in self.output.iter().take(SLICES / 2) {
                for bytes in [&outgoing.header[..], outgoing.data.bytes(table, zeroes)] {
                    if skip < bytes.len() {
                        slices[used] = IoSlice::new(&bytes[skip..]);
                        used += 1;
                    }
                    skip = skip.saturating_sub(bytes.len());
                }
            }
            match self.socket.poll_write(cx, &slices[..used]) {
                Poll::Pending => return Ok(()),
                Poll::Ready(Ok(0)) => return Err(Lost::Closed),
                Poll::Ready(taken) => self.took(taken?, table),
            }
        }
        Ok(())
    }

    fn took(&mut self, bytes: usize, table: &mut Table) {
        self.taken += bytes;
        while let Some(first) = self.output.front() {
            let length = REQUEST_LENGTH + first.data.length();
            if self.taken < length {
                return;
            }
            self.taken -= length;
            table.note_sent(first.cookie);
            self.output.pop_front();
        }
    }

    /// Reads the bytes that have come. Pushes each answered piece with the protocol's error, or with zero for
    /// none.
    pub(super) fn receive(
        &mut self,
        cx: &mut Context<'_>,
        scratch: &mut [u8],
        table: &mut Table,
        answered: &mut Vec<(Piece, u32)>,
    ) -> Result<(), Lost> {
        let (mut reads, mut messages) = (0, 0);
        while reads < READS && messages < MESSAGES {
            reads += 1;
            let read = match &self.filling {
                Some(Filling { cookie, start, length }) => {
                    let data = table.data(*cookie, *start, *length);
                    self.socket.poll_read(cx, &mut [IoSliceMut::new(data), IoSliceMut::new(scratch)])
                }
                None => self.socket.poll_read(cx, &mut [IoSliceMut::new(scratch)]),
            };
            let count = match read {
                Poll::Pending => return Ok(()),
                Poll::Ready(Ok(0)) => return Err(Lost::Closed),
                Poll::Ready(count) => count?,
            };
            let count = self.filled(count);
            messages += self.look_through(&scratch[..count], table, answered)?;
        }
        cx.waker().wake_by_ref();
        Ok(())
    }

    /// Counts the first of `count` bytes as the data of a read, already in their place. Returns how many are
    /// left.
    fn filled(&mut self, count: usize) -> usize {
        let Some(filling) = &mut self.filling else { return count };
        let left = filling.length as usize;
        if count >= left {
            self.filling = None;
            return count - left;
        }
        let count = u32::try_from(count).expect("it is less than the 32 bits of the length");
        filling.start += count;
        filling.length -= count;
        0
    }

    /// Handles the bytes that were read. Returns the number of messages in them.
    fn look_through(
        &mut self,
        mut input: &[u8],
        table: &mut Table,
        answered: &mut Vec<(Piece, u32)>,
    ) -> Result<usize, Lost> {
        let mut messages = 0;
        if self.filling.is_some() {
            return Ok(messages);
        }
        let index = self.index;
        let judge = |error, table: &Table| match error {
            ReplyError::UnknownCookie(cookie) if table.is_unsent(index, cookie) => Lost::TooEarly(cookie),
            error => Lost::Protocol(error),
        };
        while let Some(received) = self
            .decoder
            .next_received(&mut input, |cookie| table.awaited(index, cookie))
            .map_err(|error| judge(error, table))?
        {
            messages += 1;
            match received {
                Received::Data { cookie, start, length } => {
                    let data = table.data(cookie, start, length);
                    let here = input.len().min(data.len());
                    data[..here].copy_from_slice(&input[..here]);
                    input = &input[here..];
                    let here = u32::try_from(here).expect("it is at most the 32 bits of the length");
                    if here < length {
                        self.filling = Some(Filling { cookie, start: start + here, length: length - here });
                        return Ok(messages);
                    }
                }
                Received::Zeroes { cookie, start, length } => table.data(cookie, start, length).fill(0),
                Received::Reply(reply) => {
                    answered.push((table.remove_piece(reply.cookie), reply.error));
                    self.outstanding -= 1;
                }
            }
        }
        Ok(messages)
    }

    /// Sends the disconnect command, if the socket takes it at once.
    pub(super) fn disconnect(&self) {
        if self.output.is_empty() {
            let farewell = Command::new(CommandKind::Disconnect, 0, 0, 0);
            self.socket.write_at_once(&request_header(&farewell));
        }
    }
}

impl Data {
    fn length(self) -> usize {
        match self {
            Self::None => 0,
            Self::Of { length, .. } | Self::Zeroes { length } => length as usize,
        }
    }

    fn bytes<'a>(self, table: &'a Table, zeroes: &'a [u8]) -> &'a [u8] {
        match self {
            Self::None => &[],
            Self::Of { request, start, length } => table.payload(request, start, length),
            Self::Zeroes { length } => &zeroes[..length as usize],
        }
    }
}

#[cfg(test)]
mod props;
