//! For tests: a thread with a reactor, files on a real disk, and requests in one line.

use std::future::poll_fn;
use std::path::PathBuf;
use std::task::Poll;

use tempfile::TempDir;
use weir_model::{Instant, IoKind};

use crate::{Attach, BackendSpec, BlockDevice, Device, DeviceRequest, Finished, Reactor, Token, open};
use crate::{Buffer, Extent};

/// A thread that drives devices, as a gateway would. It needs a tokio runtime.
pub(crate) struct Rig {
    pub(crate) shard: Attach,
    directory: TempDir,
}

impl Rig {
    pub(crate) fn new() -> Self {
        Self { shard: Attach::new(Reactor::new().unwrap()), directory: scratch() }
    }

    /// Drops the thread. Its files stay until the directory is dropped too.
    pub(crate) fn take_apart(self) -> TempDir {
        self.directory
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The device on the file of this name, which is created or made longer if necessary.
    pub(crate) fn file(&mut self, name: &str, size: u64) -> Device {
        let spec = BackendSpec::File { path: self.path(name) };
        open(&spec, Some(size)).unwrap().attach(&mut self.shard, Vec::new())
    }

    /// Does all requests at once. Returns the results in the order of their tokens, which are the requests'
    /// places.
    pub(crate) async fn run_all(&self, device: &mut Device, requests: Vec<DeviceRequest>) -> Vec<Finished> {
        let count = requests.len();
        let mut finished = Vec::new();
        for (token, request) in (0..).zip(requests) {
            device.start(Instant::ORIGIN, DeviceRequest { token: Token(token), ..request }, &mut finished);
        }
        self.shard.reactor.submit();
        self.wait_for(count, &mut finished).await;
        finished.sort_by_key(|done| done.token);
        finished
    }

    /// Waits until `finished` has `count` requests.
    pub(crate) async fn wait_for(&self, count: usize, finished: &mut Vec<Finished>) {
        poll_fn(|cx| {
            self.shard.reactor.poll_finished(cx, finished);
            if finished.len() < count { Poll::Pending } else { Poll::Ready(()) }
        })
        .await;
        assert_eq!(finished.len(), count, "each request finishes once");
    }

    pub(crate) async fn run(&self, device: &mut Device, request: DeviceRequest) -> Finished {
        self.run_all(device, vec![request]).await.remove(0)
    }

    /// Does the request, which must succeed.
    pub(crate) async fn ok(&self, device: &mut Device, request: DeviceRequest) {
        self.run(device, request).await.result.unwrap();
    }

    pub(crate) async fn bytes(&self, device: &mut Device, offset: u64, length: u32) -> Vec<u8> {
        let done = self.run(device, read(offset, length)).await;
        done.result.unwrap();
        done.buffer.unwrap().to_vec()
    }

    pub(crate) async fn extents(&self, device: &mut Device, offset: u64, length: u32) -> Vec<Extent> {
        self.run(device, command(IoKind::BlockStatus, offset, length)).await.extents
    }
}

/// A directory on the disk of the build. `/tmp` is often in memory, where there is no direct I/O.
pub(crate) fn scratch() -> TempDir {
    let program = std::env::current_exe().unwrap();
    tempfile::tempdir_in(program.parent().unwrap()).unwrap()
}

pub(crate) fn command(kind: IoKind, offset: u64, length: u32) -> DeviceRequest {
    DeviceRequest {
        token: Token(0),
        kind,
        offset,
        length,
        fua: false,
        no_hole: false,
        fast_zero: false,
        buffer: None,
    }
}

/// A read into a buffer full of other bytes, so that a missing byte shows.
pub(crate) fn read(offset: u64, length: u32) -> DeviceRequest {
    let mut buffer = Buffer::zeroed(length as usize);
    buffer.fill(0xee);
    DeviceRequest { buffer: Some(buffer), ..command(IoKind::Read, offset, length) }
}

pub(crate) fn write(offset: u64, bytes: &[u8]) -> DeviceRequest {
    let mut buffer = Buffer::zeroed(bytes.len());
    buffer.copy_from_slice(bytes);
    let length = u32::try_from(bytes.len()).unwrap();
    DeviceRequest { buffer: Some(buffer), ..command(IoKind::Write, offset, length) }
}

/// Bytes above zero that differ from block to block.
pub(crate) fn pattern(seed: u64, length: usize) -> Vec<u8> {
    let byte = |i: u64| ((seed + i / 4096) * 31 + i).to_le_bytes()[0] | 1; // never zero
    (0..length as u64).map(byte).collect()
}
