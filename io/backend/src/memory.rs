//! A device in memory: sparse, gone when the process ends.
//!
//! One large allocation would be simpler, but would hand out all of its pages on the first pass over it and
//! could give none back. Memory is allocated in chunks, on the first write to each; a chunk that was never
//! written, or was trimmed, is a hole.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;

use weir_model::{Instant, IoKind};

use crate::device::MAX_EXTENTS;
use crate::{BlockDevice, DeviceRequest, Extent, Finished, Properties};

/// The bytes in a chunk: what one write allocates at least, and the grain of holes.
const CHUNK: u32 = 64 << 10;

/// A device in memory. Every request finishes at once.
pub(crate) struct MemoryDevice {
    size: u64,
    /// By number; a `HashMap`, as a table would be as large as the device, and nothing depends on the order.
    chunks: HashMap<u64, Box<[u8]>>,
}

/// The part of a request that lies in one chunk.
struct Piece {
    /// The chunk's number.
    chunk: u64,
    /// The bytes of the chunk.
    inside: Range<usize>,
    /// The bytes of the request's data.
    data: Range<usize>,
}

impl MemoryDevice {
    /// A device of `size` zeroes.
    pub(crate) fn new(size: u64) -> Self {
        Self { size, chunks: HashMap::new() }
    }

    /// What a device of `size` bytes is to a driver.
    pub(crate) fn properties_of(size: u64) -> Properties {
        Properties { size, fast_zero: true, preferred_block: 4096 }
    }

    /// Does what is asked. The range must lie inside of the device.
    pub(crate) fn execute(&mut self, mut request: DeviceRequest) -> Finished {
        let (offset, length) = (request.offset, request.length);
        match (request.kind, request.buffer.as_deref_mut()) {
            (IoKind::Read, Some(data)) => self.read(offset, length, data),
            (IoKind::Write, Some(data)) => self.write(offset, length, data),
            (IoKind::Trim, _) => self.zero(offset, length, false),
            (IoKind::WriteZeroes, _) => self.zero(offset, length, request.no_hole),
            (IoKind::BlockStatus, _) => {
                let extents = self.extents(offset, length);
                return request.answer(extents);
            }
            (IoKind::Flush | IoKind::Cache, _) => {} // there is nothing behind the memory
            (IoKind::Read | IoKind::Write, None) => unreachable!("checked by `Device::start`"),
        }
        request.succeed()
    }

    fn read(&self, offset: u64, length: u32, data: &mut [u8]) {
        for piece in pieces(offset, length) {
            match self.chunks.get(&piece.chunk) {
                Some(chunk) => data[piece.data].copy_from_slice(&chunk[piece.inside]),
                None => data[piece.data].fill(0),
            }
        }
    }

    fn write(&mut self, offset: u64, length: u32, data: &[u8]) {
        for piece in pieces(offset, length) {
            self.allocated(piece.chunk)[piece.inside].copy_from_slice(&data[piece.data]);
        }
    }

    fn zero(&mut self, offset: u64, length: u32, no_hole: bool) {
        for piece in pieces(offset, length) {
            if no_hole {
                self.allocated(piece.chunk)[piece.inside].fill(0);
            } else if piece.inside.len() == CHUNK as usize {
                self.chunks.remove(&piece.chunk);
            } else if let Some(chunk) = self.chunks.get_mut(&piece.chunk) {
                chunk[piece.inside].fill(0);
            }
        }
    }

    fn extents(&self, offset: u64, length: u32) -> Vec<Extent> {
        let mut extents: Vec<Extent> = Vec::new();
        for piece in pieces(offset, length) {
            let hole = !self.chunks.contains_key(&piece.chunk);
            let bytes = piece.data.len() as u64;
            let full = extents.len() == MAX_EXTENTS;
            match extents.last_mut() {
                Some(last) if last.hole == hole => last.length += bytes,
                _ if full => break,
                _ if hole => extents.push(Extent::unallocated(bytes)),
                _ => extents.push(Extent::allocated(bytes)),
            }
        }
        extents
    }

    fn allocated(&mut self, chunk: u64) -> &mut [u8] {
        self.chunks.entry(chunk).or_insert_with(|| vec![0; CHUNK as usize].into_boxed_slice())
    }
}

/// The pieces of a range, in order.
#[allow(clippy::cast_possible_truncation)] // the remainder is below `CHUNK`
fn pieces(offset: u64, length: u32) -> impl Iterator<Item = Piece> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let at = offset + u64::from(done);
        let (chunk, inside) = (at / u64::from(CHUNK), (at % u64::from(CHUNK)) as u32);
        let bytes = (CHUNK - inside).min(length - done);
        let first = done as usize;
        done += bytes;
        let inside = inside as usize;
        let bytes = bytes as usize;
        (bytes > 0).then(|| Piece { chunk, inside: inside..inside + bytes, data: first..first + bytes })
    })
}

impl BlockDevice for MemoryDevice {
    fn properties(&self) -> Properties {
        Self::properties_of(self.size)
    }

    fn start(&mut self, _now: Instant, request: DeviceRequest, finished: &mut Vec<Finished>) {
        finished.push(self.execute(request));
    }

    fn poll_finished(&mut self, _now: Instant, _finished: &mut Vec<Finished>) {}

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
}

impl fmt::Debug for MemoryDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MemoryDevice({} bytes, {} chunks)", self.size, self.chunks.len())
    }
}

#[cfg(test)]
mod tests;
