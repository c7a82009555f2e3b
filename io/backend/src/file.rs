//! A regular file or a block device, through the io_uring of its thread.
//!
//! **Direct and buffered.** O_DIRECT spares the copy and leaves the host's page cache to others. But it takes
//! aligned requests only, and clients send any. One answer would be to read the blocks around an unaligned
//! write, change them and write them back. That would overwrite a neighbour's write that is under way at the
//! same time, and would need locks on ranges. Instead the device opens the file twice. Requests whose offset
//! and length are multiples of 4096 take the direct descriptor; all others take the page cache. The kernel
//! keeps the two coherent: it writes dirty pages out before a direct read or write of their range, and drops
//! them after a direct write.
//!
//! The kernel does not promise an order between a direct and a buffered request *to the same page at the same
//! time*. A direct request covers whole pages. So two such requests overlap in bytes that the client itself
//! asked for twice, and no disk promises an order for overlapping requests in flight. Requests to
//! *neighbouring* pages must not meet in the cache either. So a file with both descriptors has read-ahead off
//! for the buffered one.
//!
//! **Zeroes and trims** are `fallocate`: a hole, or with `no_hole` a zeroed range. If the file system can do
//! neither, the device asks it only once. After that the device writes zeroes itself, or refuses the request
//! at once if the client wants zeroes only if they are fast.

use weir_model::Instant;

use crate::reactor::{DIRECT_BLOCK, RingFile};
use crate::{BlockDevice, DeviceRequest, Finished, Properties, Token};

mod opening;

pub(crate) use opening::{OpenFile, open};

/// A file, on the thread of its reactor.
#[derive(Debug)]
pub(crate) struct FileDevice {
    file: RingFile,
    size: u64,
}

impl FileDevice {
    /// A device on `file`, of `size` bytes.
    pub(crate) fn new(file: RingFile, size: u64) -> Self {
        Self { file, size }
    }

    /// The properties of a file of `size` bytes.
    pub(crate) fn properties_of(size: u64) -> Properties {
        let preferred_block = u32::try_from(DIRECT_BLOCK).expect("4096 fits");
        Properties { size, read_only: false, fast_zero: true, minimum_block: 1, preferred_block }
    }
}

impl BlockDevice for FileDevice {
    fn properties(&self) -> Properties {
        Self::properties_of(self.size)
    }

    fn start(&mut self, _now: Instant, request: DeviceRequest, finished: &mut Vec<Finished>) {
        self.file.start(request, finished);
    }

    fn poll_finished(&mut self, _now: Instant, _finished: &mut Vec<Finished>) {} // the reactor tells

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn abandon(&mut self, token: Token) {
        self.file.abandon(token);
    }
}

#[cfg(test)]
mod props;
#[cfg(test)]
mod tests;
