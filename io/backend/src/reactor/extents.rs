//! Which parts of a file are allocated: `lseek` with `SEEK_DATA` and `SEEK_HOLE`.
//!
//! These may wait for the disk, and io_uring has nothing for it, so that they run on a thread of tokio's pool
//! for blocking calls. Such questions are rare and are asked in bulk, so that a thread for each is cheap
//! enough; a client that asks many at a time waits for those before.

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
    /// Asks a thread. The file stays open until it has answered, whatever happens to the device.
    pub(super) fn ask(request: DeviceRequest, file: Arc<OwnedFd>) -> Self {
        let (offset, length) = (request.offset, u64::from(request.length));
        let answer = spawn_blocking(move || extents(file, offset, length));
        Self { request: Some(request), answer }
    }

    /// The answer, once.
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

/// The extents from `offset` on, [`MAX_EXTENTS`] at most. A file system that cannot tell has everything
/// allocated. A file that ends before the range does was cut off: what is not there is no hole.
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
        // Someone may change the file between the two; an empty extent would never come to an end.
        let until = if until > at { until.min(end) } else { end };
        let length = until - at;
        extents.push(if hole { Extent::unallocated(length) } else { Extent::allocated(length) });
        at = until;
    }
    // Only now, so that nobody can cut it off between the two.
    if seek(&file, SeekFrom::End(0)).is_ok_and(|size| size < end) {
        return Err(Errno::IO);
    }
    Ok(extents)
}
