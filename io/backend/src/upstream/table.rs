//! The requests at a server: the driver's requests, and the pieces of them that are under way.
//!
//! A server takes a limited number of bytes at a time, and a client of weir may ask for more. So one request
//! may be several pieces on the wire, on any connection. A piece is known by its cookie: its place in the
//! table, and a number that changes with each use of the place. An answer that comes twice, or on another
//! connection, finds no piece.
//!
//! **Pieces are made as the pieces before them are answered.** A client's 28 bytes may ask for 4 GiB of
//! zeroes. A server without that command gets them in pieces of 1 MiB. If all pieces were made at once, they
//! would take memory that is charged to no client. The work would also go on after the client has left.
//!
//! **A request stays until each of its pieces was sent and answered.** The data on their way to a socket are
//! in the request's buffer. So a server that answers a piece before it was sent has broken the protocol: see
//! [`Table::awaited`].

use std::collections::BTreeMap;

use rustix::io::Errno;
use slab::Slab;
use weir_model::{Instant, IoKind};
use weir_nbd::client::Awaited;

use crate::{DeviceRequest, Token};

/// The most pieces of one request that are under way at a time. The server works on one, one waits behind it,
/// and two are on their way to the server and back. So the server is not idle between them. It is also the
/// default number of connections: each of them can carry a piece.
pub(super) const PIECES: u32 = 4;

/// A request of the driver that is not finished.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) inner: DeviceRequest,
    /// Requests are sent, and sent again, in the order of their numbers.
    pub(super) number: u64,
    pub(super) started: Instant,
    /// When the request fails if there is no connection then. Set when the request has to wait for one, and
    /// never moved.
    pub(super) give_up: Instant,
    /// Bytes of its range, from the first on, for which pieces were made.
    issued: u32,
    /// The number of pieces whose answers were not handled.
    pub(super) pieces: u32,
    /// The error of the first piece that failed.
    pub(super) error: Option<Errno>,
    /// Whether its pieces were answered, and a flush follows because the server has no FUA.
    pub(super) flushing: bool,
    /// Whether no client waits for it: then no further pieces are made.
    abandoned: bool,
}

/// A request on the wire that is not answered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    /// The key of its request.
    pub(super) request: usize,
    /// Where in the request's range it begins.
    pub(super) start: u32,
    /// Bytes of data in its reply.
    pub(super) awaited: Awaited,
    /// Its connection.
    pub(super) connection: usize,
    /// For a flush: how many changes had been answered when the flush was sent.
    pub(super) covers: Option<u64>,
    /// Whether the socket has taken all of it, so that the server may have it.
    sent: bool,
    serial: u32,
}

/// All requests and pieces that are not finished.
#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) requests: Slab<Request>,
    pieces: Slab<Piece>,
    /// The requests that can end early if no client waits for them, by token. These are the requests with
    /// pieces still to come, and the requests that wait for a server that is away. Most requests finish
    /// without being here.
    long: BTreeMap<Token, usize>,
    next_number: u64,
    next_serial: u32,
}

impl Table {
    /// Adds a request, and returns its key.
    pub(super) fn add(&mut self, now: Instant, inner: DeviceRequest) -> usize {
        self.next_number += 1;
        self.requests.insert(Request {
            inner,
            number: self.next_number,
            started: now,
            give_up: Instant::FAR_FUTURE,
            issued: 0,
            pieces: 0,
            error: None,
            flushing: false,
            abandoned: false,
        })
    }

    /// Removes a request that is finished.
    pub(super) fn remove(&mut self, request: usize) -> Request {
        let request = self.requests.remove(request);
        if !self.long.is_empty() {
            self.long.remove(&request.inner.token);
        }
        request
    }

    /// The next part of a request, for a piece of at most `longest` bytes: its first byte, counted from the
    /// request's, and its length. `None` if there is no part left, or if enough pieces are under way.
    pub(super) fn next_part(&mut self, request: usize, longest: u32) -> Option<(u32, u32)> {
        let key = request;
        let request = &mut self.requests[key];
        if !request.has_more() {
            return None;
        }
        if request.pieces >= PIECES {
            self.long.insert(request.inner.token, key);
            return None;
        }
        let start = request.issued;
        let length = longest.min(request.inner.length - start);
        request.issued += length;
        Some((start, length))
    }

    /// Notes that no client waits for a request. Returns the request if it can end before it is done.
    pub(super) fn abandon(&mut self, token: Token) -> Option<&mut Request> {
        let request = &mut self.requests[*self.long.get(&token)?];
        request.abandoned = true;
        Some(request)
    }

    /// Notes that a request waits for a server that is away, until `give_up` at the latest.
    pub(super) fn hold(&mut self, request: usize, give_up: Instant) {
        let key = request;
        let request = &mut self.requests[key];
        request.give_up = give_up;
        self.long.insert(request.inner.token, key);
    }

    /// Adds a piece of a request that will be sent on `connection`, and returns its cookie.
    pub(super) fn add_piece(
        &mut self,
        request: usize,
        connection: usize,
        start: u32,
        awaited: Awaited,
        covers: Option<u64>,
    ) -> u64 {
        self.requests[request].pieces += 1;
        self.next_serial = self.next_serial.wrapping_add(1);
        let serial = self.next_serial;
        let key =
            self.pieces.insert(Piece { request, start, awaited, connection, covers, sent: false, serial });
        u64::from(serial) << 32 | key as u64
    }

    /// The data that the piece of this cookie waits for, if this connection has such a piece and all of it
    /// was sent. An earlier answer cannot be true. If weir believed it, a request would end while its data
    /// are still on their way.
    pub(super) fn awaited(&self, connection: usize, cookie: u64) -> Option<Awaited> {
        self.piece(connection, cookie).filter(|piece| piece.sent).map(|piece| piece.awaited)
    }

    /// Whether this connection has a piece of this cookie that was not sent completely.
    pub(super) fn is_unsent(&self, connection: usize, cookie: u64) -> bool {
        self.piece(connection, cookie).is_some_and(|piece| !piece.sent)
    }

    fn piece(&self, connection: usize, cookie: u64) -> Option<&Piece> {
        let piece = self.pieces.get(key(cookie))?;
        (u64::from(piece.serial) == cookie >> 32 && piece.connection == connection).then_some(piece)
    }

    /// Notes that the socket has taken the last byte of the piece of this cookie.
    pub(super) fn note_sent(&mut self, cookie: u64) {
        self.pieces[key(cookie)].sent = true;
    }

    /// Removes a piece that [`Table::awaited`] knows.
    pub(super) fn remove_piece(&mut self, cookie: u64) -> Piece {
        self.pieces.remove(key(cookie))
    }

    /// The part of a read's buffer for `length` bytes of a piece, from byte `start` of the piece on.
    /// [`Table::awaited`] must know the piece, and the bytes must lie within it.
    pub(super) fn data(&mut self, cookie: u64, start: u32, length: u32) -> &mut [u8] {
        let piece = &self.pieces[key(cookie)];
        let buffer = self.requests[piece.request].inner.buffer.as_mut();
        let buffer = buffer.expect("only the pieces of reads await data, and a read has a buffer");
        &mut buffer[piece.start as usize..][start as usize..][..length as usize]
    }

    /// The data that go with a piece of a write that is not answered.
    pub(super) fn payload(&self, request: usize, start: u32, length: u32) -> &[u8] {
        let buffer = self.requests[request].inner.buffer.as_ref();
        let buffer = buffer.expect("`Device::start` has seen the buffer of each write");
        &buffer[start as usize..][..length as usize]
    }

    /// Forgets all pieces. Each request is sent again from its start, if there is a connection before it
    /// gives up.
    pub(super) fn rewind(&mut self, give_up: impl Fn(&Request) -> Instant) {
        self.pieces.clear();
        for (key, request) in &mut self.requests {
            request.issued = 0;
            request.pieces = 0;
            request.error = None;
            request.flushing = false;
            let give_up = if request.abandoned { Instant::ORIGIN } else { give_up(request) };
            request.give_up = request.give_up.min(give_up);
            self.long.insert(request.inner.token, key);
        }
    }

    /// The keys of all requests, in the order in which they were started.
    pub(super) fn in_order(&self) -> Vec<usize> {
        let mut keys: Vec<_> = self.requests.iter().map(|(key, request)| (request.number, key)).collect();
        keys.sort_unstable();
        keys.into_iter().map(|(_, key)| key).collect()
    }
}

impl Request {
    /// Whether the request changes bytes.
    pub(super) fn changes(&self) -> bool {
        changes(self.inner.kind)
    }

    /// Whether no client waits for the request.
    pub(super) fn is_abandoned(&self) -> bool {
        self.abandoned
    }

    /// Whether there are pieces of the request still to come.
    pub(super) fn has_more(&self) -> bool {
        self.issued < self.inner.length && self.error.is_none() && !self.abandoned
    }

    /// The outcome of the request, after its last piece.
    pub(super) fn outcome(&self) -> Result<(), Errno> {
        match self.error {
            Some(errno) => Err(errno),
            None if self.issued < self.inner.length => Err(Errno::CANCELED), // nobody waited for the rest
            None => Ok(()),
        }
    }
}

/// Whether requests of this kind change bytes.
pub(super) fn changes(kind: IoKind) -> bool {
    matches!(kind, IoKind::Write | IoKind::Trim | IoKind::WriteZeroes)
}

#[allow(clippy::cast_possible_truncation)] // the lower half is the key
fn key(cookie: u64) -> usize {
    cookie as u32 as usize
}
