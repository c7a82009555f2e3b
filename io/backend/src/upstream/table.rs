//! What is asked of a server: the requests of the driver, and the pieces in which they are under way.
//!
//! A server takes no more than so many bytes at a time, and a client of weir may ask for more; so that one request may be
//! several on the wire, on any connection. A piece is known by its cookie, which holds its place in the table and a
//! number that changes with each use of the place: an answer that comes twice, or on another connection, finds nothing.

use rustix::io::Errno;
use slab::Slab;
use weir_model::{Instant, IoKind};
use weir_nbd::client::Awaited;

use crate::{Buffer, DeviceRequest};

/// A request of the driver that is not finished.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) inner: DeviceRequest,
    /// Requests are sent, and sent again, in the order of their numbers.
    pub(super) number: u64,
    pub(super) started: Instant,
    /// When it fails if there is no connection then. Set when it has to wait for one, and never moved.
    pub(super) give_up: Instant,
    /// Pieces whose answer was not handled.
    pub(super) pieces: u32,
    /// Of the first piece that failed.
    pub(super) error: Option<Errno>,
    /// It was answered, and a flush follows, as the server has no FUA.
    pub(super) flushing: bool,
}

/// A request of the wire that is not answered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    /// The key of its request.
    pub(super) request: usize,
    /// Where in the request's range it begins.
    pub(super) start: u32,
    /// Bytes of data in its reply.
    pub(super) awaited: Awaited,
    /// On which connection.
    pub(super) connection: usize,
    /// For a flush: how many changes had been answered when it was sent.
    pub(super) covers: Option<u64>,
    /// Some of its data has come.
    pub(super) touched: bool,
    serial: u32,
}

/// All that is not finished.
#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) requests: Slab<Request>,
    pieces: Slab<Piece>,
    next_number: u64,
    next_serial: u32,
}

impl Table {
    /// Takes a request in; its key.
    pub(super) fn add(&mut self, now: Instant, inner: DeviceRequest) -> usize {
        self.next_number += 1;
        self.requests.insert(Request {
            inner,
            number: self.next_number,
            started: now,
            give_up: Instant::FAR_FUTURE,
            pieces: 0,
            error: None,
            flushing: false,
        })
    }

    /// Takes in a piece of a request that will be sent on `connection`; its cookie.
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
            self.pieces.insert(Piece { request, start, awaited, connection, covers, touched: false, serial });
        u64::from(serial) << 32 | key as u64
    }

    /// What the piece of this cookie waits for, if there is one on this connection.
    pub(super) fn awaited(&self, connection: usize, cookie: u64) -> Option<Awaited> {
        let piece = self.pieces.get(key(cookie))?;
        (u64::from(piece.serial) == cookie >> 32 && piece.connection == connection).then_some(piece.awaited)
    }

    /// Takes out a piece that [`Table::awaited`] knows.
    pub(super) fn remove_piece(&mut self, cookie: u64) -> Piece {
        self.pieces.remove(key(cookie))
    }

    /// The part of a read's buffer that belongs to `length` bytes of a piece that [`Table::awaited`] knows, from byte
    /// `start` of it on.
    ///
    /// The buffer holds somebody else's bytes, and a server may send some twice and others never. So unless all come at
    /// once, it is filled with zeroes before the first do.
    pub(super) fn data(&mut self, cookie: u64, start: u32, length: u32) -> &mut [u8] {
        let piece = &mut self.pieces[key(cookie)];
        let buffer = self.requests[piece.request].inner.buffer.as_mut().expect("a read has a buffer");
        let all = &mut buffer[piece.start as usize..][..piece.awaited.data as usize];
        if !std::mem::replace(&mut piece.touched, true) && length < piece.awaited.data {
            all.fill(0);
        }
        &mut all[start as usize..][..length as usize]
    }

    /// Forgets all pieces: each request is to be sent again from its start, if there is a connection before it gives up.
    pub(super) fn rewind(&mut self, give_up: impl Fn(&Request) -> Instant) {
        self.pieces.clear();
        for (_, request) in &mut self.requests {
            request.pieces = 0;
            request.error = None;
            request.flushing = false;
            request.give_up = request.give_up.min(give_up(request));
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
    /// Whether it changes bytes.
    pub(super) fn changes(&self) -> bool {
        changes(self.inner.kind)
    }

    /// The data of a write.
    pub(super) fn buffer(&self) -> &Buffer {
        self.inner.buffer.as_ref().expect("checked by `Device::start`")
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
