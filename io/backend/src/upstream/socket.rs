//! A connected socket, TCP or Unix, that never blocks. It transfers vectors both ways, and the runtime
//! reports its readiness.
//!
//! The runtime's own streams need one more system call to learn that a socket has been drained. Here a short
//! transfer is enough: polling is edge-triggered, so whatever arrives later makes a new edge.

use std::io::{self, ErrorKind, IoSlice, IoSliceMut, Read, Write};
use std::task::{Context, Poll, ready};

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// A connection's socket, watched by the runtime of its thread.
#[derive(Debug)]
pub(super) struct Socket(AsyncFd<socket2::Socket>);

impl Socket {
    /// Registers a non-blocking socket with the runtime of this thread.
    pub(super) fn new(socket: socket2::Socket) -> io::Result<Self> {
        // Its successor is `unsafe`, for descriptors that may be closed elsewhere; this one cannot be.
        #[allow(deprecated)]
        AsyncFd::with_interest(socket, Interest::READABLE | Interest::WRITABLE).map(Self)
    }

    /// Reads into `into` what has arrived. `Ok(0)` is the end of the stream.
    pub(super) fn poll_read(
        &self,
        cx: &mut Context<'_>,
        into: &mut [IoSliceMut<'_>],
    ) -> Poll<io::Result<usize>> {
        let room: usize = into.iter().map(|slice| slice.len()).sum();
        loop {
            let mut ready = ready!(self.0.poll_read_ready(cx))?;
            match self.0.get_ref().read_vectored(into) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => ready.clear_ready(),
                outcome => {
                    if outcome.as_ref().is_ok_and(|read| 0 < *read && *read < room) {
                        ready.clear_ready();
                    }
                    return Poll::Ready(outcome);
                }
            }
        }
    }

    /// Writes as much of `from` as the socket takes. If that is nothing, it is pending, and the task is woken
    /// later.
    pub(super) fn poll_write(&self, cx: &mut Context<'_>, from: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        loop {
            let mut ready = ready!(self.0.poll_write_ready(cx))?;
            match self.0.get_ref().write_vectored(from) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => ready.clear_ready(),
                outcome => return Poll::Ready(outcome),
            }
        }
    }

    /// Writes as many of `bytes` as the socket takes now.
    pub(super) fn write_at_once(&self, bytes: &[u8]) {
        let _ = self.0.get_ref().write(bytes);
    }
}
