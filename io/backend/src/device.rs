//! What every device is to its driver: requests in, finished requests out, and when to look again.
//!
//! The obvious interface, an `async fn` for each operation, would make a future, and in practice a task, of
//! every request, and would tie the life of the request's memory to whoever may drop that future.

use std::fmt;

use rustix::io::Errno;
use weir_model::{Instant, IoKind};

use crate::{BlockError, Buffer};

/// The most extents in one answer to a [`IoKind::BlockStatus`]; a client asks again from where the answer
/// ends.
pub(crate) const MAX_EXTENTS: usize = 512;

/// The driver's own name for a request; unique among the requests at one [`Reactor`](crate::Reactor).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Token(pub u64);

/// A request to a device.
#[derive(Debug)]
pub struct DeviceRequest {
    /// Comes back in [`Finished::token`].
    pub token: Token,
    /// What to do.
    pub kind: IoKind,
    /// First byte; a multiple of [`Properties::minimum_block`].
    pub offset: u64,
    /// Number of bytes, a multiple of [`Properties::minimum_block`]; zero for a flush.
    pub length: u32,
    /// Force unit access: what the request changed is durable when it finishes.
    pub fua: bool,
    /// For [`IoKind::WriteZeroes`]: the range stays, or becomes, allocated.
    pub no_hole: bool,
    /// For [`IoKind::WriteZeroes`]: fail with `EOPNOTSUPP` at once rather than write the zeroes one by one.
    pub fast_zero: bool,
    /// The data of a read (to be filled) or a write, `length` bytes; `None` for all other kinds.
    pub buffer: Option<Buffer>,
}

/// A request that a device is done with.
#[derive(Debug)]
pub struct Finished {
    /// The driver's name for the request.
    pub token: Token,
    /// The request's buffer; filled to the last byte if a read succeeded, of no meaning if it failed.
    pub buffer: Option<Buffer>,
    /// The answer to a [`IoKind::BlockStatus`]: one extent or more from the request's offset on, which
    /// together may be shorter than the request. Empty for all other kinds, and on failure.
    pub extents: Vec<Extent>,
    /// Whether the device did what was asked.
    pub result: Result<(), BlockError>,
}

/// A range of a device that is all allocated or all not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extent {
    /// Number of bytes.
    pub length: u64,
    /// No space is allocated for it.
    pub hole: bool,
    /// It reads as zeroes.
    pub zero: bool,
}

/// What a device is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Properties {
    /// Number of bytes.
    pub size: u64,
    /// Whether all that would change it fails.
    pub read_only: bool,
    /// Whether [`DeviceRequest::fast_zero`] is understood.
    pub fast_zero: bool,
    /// Of what number of bytes offsets and lengths must be multiples: a power of two, to 64 KiB. Others fail.
    pub minimum_block: u32,
    /// The size, and the alignment, of the requests that cost least, in bytes.
    pub preferred_block: u32,
}

/// A device, as its driver sees it. Lives on one thread.
pub trait BlockDevice: fmt::Debug {
    /// What the device is; does not change.
    fn properties(&self) -> Properties;

    /// Starts a request. Pushes to `finished` if it is done at once.
    fn start(&mut self, now: Instant, request: DeviceRequest, finished: &mut Vec<Finished>);

    /// Pushes what is done by `now`; a call that comes late catches up.
    fn poll_finished(&mut self, now: Instant, finished: &mut Vec<Finished>);

    /// When [`poll_finished`](Self::poll_finished) is to be called next; `None` if it need not be, because
    /// the [`Reactor`](crate::Reactor) tells of all that finishes. To be asked again after each call of the
    /// device and of the reactor. [`Instant::FAR_FUTURE`] for a device that waits for the reactor.
    fn poll_timeout(&self) -> Option<Instant>;

    /// Whether changes that were answered, and that no flush has made durable, may be lost since this was
    /// asked last. To be asked after each [`poll_finished`](Self::poll_finished). One flush must then fail
    /// for each client whose changes may be among them, or the client would take them for durable after its
    /// next flush.
    fn take_loss(&mut self) -> bool {
        false
    }

    /// This request has no client any more: the client has gone, or the server ends. The request finishes all
    /// the same. A device that does it in several steps leaves out the steps that it has not begun, and the
    /// request then fails with `ECANCELED`. A device that does it in one step ignores this.
    fn abandon(&mut self, _token: Token) {}
}

impl DeviceRequest {
    /// The byte after the last, or `None` beyond 2^64.
    pub(crate) fn end(&self) -> Option<u64> {
        self.offset.checked_add(u64::from(self.length))
    }

    /// The request, done.
    pub(crate) fn succeed(self) -> Finished {
        Finished { token: self.token, buffer: self.buffer, extents: Vec::new(), result: Ok(()) }
    }

    /// The request, done, with the answer to a [`IoKind::BlockStatus`].
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
