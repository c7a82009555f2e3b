//! Which parts of a file are allocated, found by `lseek` with `SEEK_DATA` and `SEEK_HOLE`.
//!
//! These calls may wait for the disk, and io_uring has no operation for them. So they run on a thread of
//! tokio's pool for blocking calls. A thread for each question is cheap enough, because clients ask rarely,
//! and for large ranges. If a client asks many questions at a time, the later ones wait for the earlier ones.

use std::os::fd::{AsFd, OwnedFd};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;
use tokio::task::{JoinHandle, spawn_blocking};

use crate::device::MAX_EXTENTS;
use crate::{DeviceRequest, Extent, Finished};

/// A question that a thread is working on.
#[derive(Debug)]
pub(super) struct Question {
    /// `None` once answered.
    request: Option<DeviceRequest>,
    answer: JoinHandle<Result<Vec<Extent>, Errno>>,
}

impl Question {
    /// Asks on a thread. The file stays open until the answer is there, whatever happens to the device.
    pub(super) fn ask(request: DeviceRequest, file: Arc<OwnedFd>) -> Self {
        let (offset, length) = (request.offset, u64::from(request.length));
        let answer = spawn_blocking(move || extents(file, offset, length));
        Self { request: Some(request), answer }
    }

    /// The answer. It comes once.
    pub(super) fn poll_answer(&mut self, cx: &mut Context<'_>) -> Poll<Finished> {
        let answer = std::task::ready!(Pin::new(&mut self.answer).poll(cx));
        let request = self.request.take().expect("polled until it was answered, and not again");
        Poll::Ready(match answer {
            Ok(Ok(extents)) => request.answer(extents),
            Ok(Err(errno)) => request.fail(errno),
            Err(_) => request.fail(Errno::IO), // the runtime is shutting down
        })
    }
}

/// The extents from `offset` on, [`MAX_EXTENTS`] at most. If the file system cannot tell, everything counts
/// as allocated. If the file ends before the range does, it was cut off, and the answer is an error: a
/// missing part is no hole.
fn extents(file: impl AsFd, offset: u64, length: u64) -> Result<Vec<Extent>, Errno> {
    let mut extents = Vec::new();
    let end = offset + length;
    let mut at = offset;
    while at < end && extents.len() < MAX_EXTENTS {
        let (hole, until) = match seek(&file, SeekFrom::Data(at)) {
            Ok(data) if data > at => (true, data),
            Ok(_) => (false, seek(&file, SeekFrom::Hole(at)).unwrap_or(end)),
            Err(Errno::NXIO) => (true, end), // no data from here to the end of the file
            Err(_) => (false, end),
        };
        // Another process may change the file between the two calls. An empty extent would never come to an
        // end.
        let until = if until > at { until.min(end) } else { end };
        let length = until - at;
        extents.push(if hole { Extent::unallocated(length) } else { Extent::allocated(length) });
        at = until;
    }
    // The size is asked last, so that the file cannot be cut off between these calls unnoticed.
    if seek(&file, SeekFrom::End(0)).is_ok_and(|size| size < end) {
        return Err(Errno::IO);
    }
    Ok(extents)
}
