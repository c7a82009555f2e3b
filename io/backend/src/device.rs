//! The interface of every device to its driver: requests go in, finished requests come out, and the device
//! says when to look again.
//!
//! The obvious interface is an `async fn` for each operation. It would make a future, and in practice a task,
//! of every request. It would also tie the life of the request's memory to any caller that may drop that
//! future.

use std::fmt;

use rustix::io::Errno;
use weir_model::{Instant, IoKind};

use crate::{BlockError, Buffer};

/// The most extents in one answer to a [`IoKind::BlockStatus`]. A client asks again from the end of the
/// answer.
pub(crate) const MAX_EXTENTS: usize = 512;

/// The driver's own name for a request; unique among the requests at one [`Reactor`](crate::Reactor).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Token(pub u64);

/// A request to a device.
#[derive(Debug)]
pub struct DeviceRequest {
    /// Comes back in [`Finished::token`].
    pub token: Token,
    /// The kind of the request.
    pub kind: IoKind,
    /// First byte; a multiple of [`Properties::minimum_block`].
    pub offset: u64,
    /// Number of bytes, a multiple of [`Properties::minimum_block`]; zero for a flush.
    pub length: u32,
    /// Force unit access: the changes of the request are durable when it finishes.
    pub fua: bool,
    /// For [`IoKind::WriteZeroes`]: the range stays, or becomes, allocated.
    pub no_hole: bool,
    /// For [`IoKind::WriteZeroes`]: fail with `EOPNOTSUPP` at once rather than write the zeroes one by one.
    pub fast_zero: bool,
    /// The data of a read (to be filled) or a write, `length` bytes; `None` for all other kinds.
    pub buffer: Option<Buffer>,
}

/// A request that a device has finished.
#[derive(Debug)]
pub struct Finished {
    /// The driver's name for the request.
    pub token: Token,
    /// The request's buffer: filled to the last byte if a read succeeded, meaningless if it failed.
    pub buffer: Option<Buffer>,
    /// The answer to a [`IoKind::BlockStatus`]: one extent or more from the request's offset on, which
    /// together may be shorter than the request. Empty for all other kinds, and on failure.
    pub extents: Vec<Extent>,
    /// Whether the device succeeded.
    pub result: Result<(), BlockError>,
}

/// A range of a device that is all allocated or all not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extent {
    /// Number of bytes.
    pub length: u64,
    /// Whether no space is allocated for the range.
    pub hole: bool,
    /// Whether the range reads as zeroes.
    pub zero: bool,
}

/// The properties of a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Properties {
    /// Number of bytes.
    pub size: u64,
    /// Whether every request that would change it fails.
    pub read_only: bool,
    /// Whether the device understands [`DeviceRequest::fast_zero`].
    pub fast_zero: bool,
    /// Offsets and lengths must be multiples of this many bytes, a power of two up to 64 KiB. Other requests
    /// fail.
    pub minimum_block: u32,
    /// The size, and the alignment, of the requests that cost least, in bytes.
    pub preferred_block: u32,
}

/// A device for its driver. It lives on one thread.
pub trait BlockDevice: fmt::Debug {
    /// The properties of the device. They do not change.
    fn properties(&self) -> Properties;

    /// Starts a request. If it is done at once, the device pushes it to `finished`.
    fn start(&mut self, now: Instant, request: DeviceRequest, finished: &mut Vec<Finished>);

    /// Pushes the requests that are done by `now`. A late call catches up.
    fn poll_finished(&mut self, now: Instant, finished: &mut Vec<Finished>);

    /// When to call [`poll_finished`](Self::poll_finished) next. `None`: it need not be called, because the
    /// [`Reactor`](crate::Reactor) reports the rest. [`Instant::FAR_FUTURE`]: the device waits for the
    /// reactor. Ask again after each call of the device and of the reactor.
    fn poll_timeout(&self) -> Option<Instant>;

    /// Whether the device has noticed a loss since the last call: changes that were answered, and not made
    /// durable by a flush, may be gone. Call it after each [`poll_finished`](Self::poll_finished). The caller
    /// must then fail one flush of every client whose changes may be among them. Otherwise that client would
    /// take its changes for durable after its next flush.
    fn take_loss(&mut self) -> bool {
        false
    }

    /// Says that no client waits for this request any more: its client has gone, or the server ends. The
    /// request still finishes. If the device does it in several steps, it does not begin the remaining ones,
    /// and the request fails with `ECANCELED`. If the device does it in one step, it goes on.
    fn abandon(&mut self, _token: Token) {}
}

impl DeviceRequest {
    /// The byte after the last, or `None` beyond 2^64.
    pub(crate) fn end(&self) -> Option<u64> {
        self.offset.checked_add(u64::from(self.length))
    }

    /// The request, successful.
    pub(crate) fn succeed(self) -> Finished {
        Finished { token: self.token, buffer: self.buffer, extents: Vec::new(), result: Ok(()) }
    }

    /// The request, successful, with the answer to a [`IoKind::BlockStatus`].
    pub(crate) fn answer(self, extents: Vec<Extent>) -> Finished {
        Finished { extents, ..self.succeed() }
    }

    /// The request, failed.
    pub(crate) fn fail(self, errno: Errno) -> Finished {
        let error = BlockError::new(self.kind, self.offset, self.length, errno);
        Finished { result: Err(error), ..self.succeed() }
    }

    /// The request, with this outcome.
    pub(crate) fn finish(self, outcome: Result<(), Errno>) -> Finished {
        match outcome {
            Ok(()) => self.succeed(),
            Err(errno) => self.fail(errno),
        }
    }
}

impl Extent {
    /// `length` bytes that are allocated and may hold anything.
    pub(crate) const fn allocated(length: u64) -> Self {
        Self { length, hole: false, zero: false }
    }

    /// `length` bytes that are not allocated and read as zeroes.
    pub(crate) const fn unallocated(length: u64) -> Self {
        Self { length, hole: true, zero: true }
    }
}
