//! A client's socket, TCP or Unix alike: non-blocking, vectored both ways, watched by the runtime.
//!
//! The runtime's own vectored calls need a further system call to learn that the socket has been drained.
//! Here a short transfer is enough: with edge-triggered polling, bytes that arrive later make a new edge.

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix;
use std::task::{Context, Poll, ready};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use tokio::io::Interest;
use tokio::net::{TcpStream, UnixStream};

/// A connected, non-blocking socket that no runtime watches, so that it can go to another thread.
#[derive(Debug)]
pub(crate) enum Socket {
    Tcp(std::net::TcpStream),
    Unix(unix::net::UnixStream),
}

/// A connected stream socket, watched by the runtime of its thread.
#[derive(Debug)]
pub(crate) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    /// Registers a socket with the runtime of this thread.
    pub(crate) fn new(socket: Socket) -> io::Result<Self> {
        match socket {
            Socket::Tcp(stream) => TcpStream::from_std(stream).map(Self::Tcp),
            Socket::Unix(stream) => UnixStream::from_std(stream).map(Self::Unix),
        }
    }

    /// The socket without its runtime, to be registered elsewhere.
    pub(crate) fn into_socket(self) -> io::Result<Socket> {
        match self {
            Self::Tcp(stream) => stream.into_std().map(Socket::Tcp),
            Self::Unix(stream) => stream.into_std().map(Socket::Unix),
        }
    }

    /// Reads into `into` as far as there is anything to read. `Ok(0)` is the end of the stream.
    pub(crate) fn poll_read(
        &self,
        cx: &mut Context<'_>,
        into: &mut [IoSliceMut<'_>],
    ) -> Poll<io::Result<usize>> {
        let room: usize = into.iter().map(|slice| slice.len()).sum();
        loop {
            ready!(self.poll_read_ready(cx))?;
            let mut short = None;
            let outcome = self.try_io(Interest::READABLE, || {
                let read = retry_interrupted(|| rustix::io::readv(self.as_fd(), into))?;
                if 0 < read && read < room {
                    short = Some(read);
                    return Err(io::ErrorKind::WouldBlock.into()); // clears the readiness
                }
                Ok(read)
            });
            match (short, outcome) {
                (Some(read), _) => return Poll::Ready(Ok(read)),
                (None, Err(error)) if error.kind() == io::ErrorKind::WouldBlock => {}
                (None, outcome) => return Poll::Ready(outcome),
            }
        }
    }

    /// Writes what the socket takes now; `Ok(0)` if that is nothing.
    pub(crate) fn try_write(&self, from: &[IoSlice<'_>]) -> io::Result<usize> {
        match retry_interrupted(|| rustix::io::writev(self.as_fd(), from)) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
            outcome => outcome,
        }
    }

    /// Ready when the socket takes bytes again, after a [`Stream::try_write`] that did not take all.
    pub(crate) fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            ready!(self.poll_write_ready(cx))?;
            // What the runtime knows may be older than the write that was refused: ask the socket.
            let outcome = self.try_io(Interest::WRITABLE, || {
                let mut asked = [PollFd::from_borrowed_fd(self.as_fd(), PollFlags::OUT)];
                match poll(&mut asked, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))? {
                    0 => Err(io::ErrorKind::WouldBlock.into()),
                    _ => Ok(()),
                }
            });
            match outcome {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                outcome => return Poll::Ready(outcome),
            }
        }
    }

    /// Ready when the peer has gone: written bytes do not arrive any more. With `ends`, also ready when the
    /// peer has closed its side and all that it sent was read. This is for a connection that is not read
    /// from; a connection that is read from learns it by reading.
    pub(crate) fn poll_gone(&self, cx: &mut Context<'_>, ends: bool) -> Poll<()> {
        loop {
            // A peer that goes makes an edge, and every edge says that the socket can be written to, if it
            // can. A socket that cannot is full, and written to: a write to a peer that has gone fails.
            if ready!(self.poll_write_ready(cx)).is_err() || self.is_gone() || (ends && self.is_at_end()) {
                return Poll::Ready(());
            }
            let not_gone: io::Result<()> =
                self.try_io(Interest::WRITABLE, || Err(io::ErrorKind::WouldBlock.into()));
            debug_assert!(not_gone.is_err(), "clears the readiness");
        }
    }

    /// Whether the peer has gone, as far as the system knows.
    fn is_gone(&self) -> bool {
        let mut asked = [PollFd::from_borrowed_fd(self.as_fd(), PollFlags::empty())];
        let told = poll(&mut asked, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }));
        told.is_ok_and(|_| asked.iter().any(|fd| fd.revents().intersects(PollFlags::HUP | PollFlags::ERR)))
    }

    /// Whether the peer has closed its side, and all that it sent was read.
    fn is_at_end(&self) -> bool {
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        recv(self.as_fd(), &mut [0], flags).is_ok_and(|(read, _)| read == 0)
    }

    /// Tells the peer that nothing more will be written. Bytes that were written still arrive.
    pub(crate) fn end_writing(&self) {
        // A peer that has gone already needs no goodbye.
        let _ = rustix::net::shutdown(self.as_fd(), rustix::net::Shutdown::Write);
    }

    fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Tcp(stream) => stream.poll_read_ready(cx),
            Self::Unix(stream) => stream.poll_read_ready(cx),
        }
    }

    fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Tcp(stream) => stream.poll_write_ready(cx),
            Self::Unix(stream) => stream.poll_write_ready(cx),
        }
    }

    fn try_io<R>(&self, interest: Interest, io: impl FnOnce() -> io::Result<R>) -> io::Result<R> {
        match self {
            Self::Tcp(stream) => stream.try_io(interest, io),
            Self::Unix(stream) => stream.try_io(interest, io),
        }
    }

    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(stream) => stream.as_fd(),
            Self::Unix(stream) => stream.as_fd(),
        }
    }
}

fn retry_interrupted(mut call: impl FnMut() -> Result<usize, Errno>) -> io::Result<usize> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            outcome => return outcome.map_err(io::Error::from),
        }
    }
}
