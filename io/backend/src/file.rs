//! A regular file or a block device, through the io_uring of its thread.
//!
//! **Direct and buffered.** O_DIRECT spares the copy and keeps the page cache of the host for others, but
//! takes aligned requests only, and clients send any. The obvious answer, to read the blocks around an
//! unaligned write, change them and write them back, loses a neighbour's write that is under way at the same
//! time, and needs locks on ranges. Instead the file is opened twice: requests whose offset and length are
//! multiples of 4096 take the direct descriptor, all others the page cache, and the kernel keeps the two
//! coherent: it writes dirty pages out before a direct read or write of their range, and drops them after a
//! direct write.
//!
//! What it does not promise is an order between a direct and a buffered request *to the same page at the same
//! time*. A direct request covers whole pages, so that the two then overlap in bytes that the client asked
//! for twice, and a client that has overlapping requests in flight is promised no order by any disk. So that
//! requests to *neighbouring* pages cannot meet in the cache either, read-ahead is off for the buffered
//! descriptor of a file that has both.
//!
//! **Zeroes and trims** are `fallocate`: a hole, or with `no_hole` a zeroed range. A file system that can do
//! neither is asked once; after that zeroes are written, or refused at once where the client wants them fast
//! or not at all.

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
    /// `file`, of `size` bytes.
    pub(crate) fn new(file: RingFile, size: u64) -> Self {
        Self { file, size }
    }

    /// What a file of `size` bytes is to a driver.
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
