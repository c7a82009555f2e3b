//! A device in memory: sparse, gone when the process ends.
//!
//! The device is one mapping of its full size. Pages appear when they are first written, and go back to the
//! kernel when a chunk is trimmed. A bit for each chunk says whether it was written. With these bits the
//! device reports holes, and reads them without touching memory.
//!
//! The device asks for huge pages: with small pages, a random 4 KiB read spends as long in the page tables as
//! in the copy. The cost is that a single write may take 2 MiB.
#![allow(unsafe_code)] // pages are given back to the kernel

use std::fmt;
use std::io;
use std::ops::Range;

use memmap2::{Advice, MmapMut, MmapOptions, UncheckedAdvice};
use weir_model::{Instant, IoKind};

use crate::device::MAX_EXTENTS;
use crate::{BlockDevice, DeviceRequest, Extent, Finished, Properties};

/// The bytes in a chunk. Holes are multiples of it.
const CHUNK: u32 = 64 << 10;

/// A device in memory. Every request finishes at once.
pub(crate) struct MemoryDevice {
    /// The content: zero wherever nothing was written.
    bytes: MmapMut,
    /// A bit for each written chunk. These pages, too, appear on the first write.
    written: Vec<u64>,
}

/// The part of a request that lies in one chunk.
struct Piece {
    chunk: Chunk,
    /// The bytes of the device.
    place: Range<usize>,
    /// The bytes of the request's data.
    data: Range<usize>,
}

/// A chunk, by number.
#[derive(Clone, Copy)]
struct Chunk(usize);

impl MemoryDevice {
    /// A device of `size` zeroes.
    ///
    /// # Errors
    /// If the address space has no room for it.
    pub(crate) fn new(size: u64) -> io::Result<Self> {
        let size = usize::try_from(size).map_err(io::Error::other)?;
        // Not reserved: a sparse device may be larger than the memory.
        let bytes = MmapOptions::new().len(size).no_reserve_swap().map_anon()?;
        // A kernel without huge pages refuses this. The device works without them, too.
        let _ = bytes.advise(Advice::HugePage);
        let chunks = size.div_ceil(CHUNK as usize);
        Ok(Self { bytes, written: vec![0; chunks.div_ceil(64)] })
    }

    /// Does the request. Its range must lie inside the device.
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
            if self.is_written(piece.chunk) {
                data[piece.data].copy_from_slice(&self.bytes[piece.place]);
            } else {
                data[piece.data].fill(0);
            }
        }
    }

    fn write(&mut self, offset: u64, length: u32, data: &[u8]) {
        for piece in pieces(offset, length) {
            self.set_written(piece.chunk);
            self.bytes[piece.place].copy_from_slice(&data[piece.data]);
        }
    }

    fn zero(&mut self, offset: u64, length: u32, no_hole: bool) {
        for piece in pieces(offset, length) {
            if self.is_written(piece.chunk) {
                if !no_hole && piece.place.len() == CHUNK as usize {
                    self.give_back(piece.chunk, piece.place);
                } else {
                    self.bytes[piece.place].fill(0);
                }
            } else if no_hole {
                self.set_written(piece.chunk);
            }
        }
    }

    fn extents(&self, offset: u64, length: u32) -> Vec<Extent> {
        let mut extents: Vec<Extent> = Vec::new();
        for piece in pieces(offset, length) {
            let hole = !self.is_written(piece.chunk);
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

    /// Turns a whole chunk into a hole.
    fn give_back(&mut self, chunk: Chunk, place: Range<usize>) {
        // SAFETY: the range lies in the mapping, which is anonymous and private: its bytes become zero, and
        // nobody else refers to them, as `self` is borrowed for this alone.
        let given =
            unsafe { self.bytes.unchecked_advise_range(UncheckedAdvice::DontNeed, place.start, place.len()) };
        if given.is_err() {
            self.bytes[place].fill(0); // as right, and keeps the memory
        }
        self.written[chunk.0 / 64] &= !(1 << (chunk.0 % 64));
    }

    fn is_written(&self, chunk: Chunk) -> bool {
        self.written[chunk.0 / 64] & (1 << (chunk.0 % 64)) != 0
    }

    fn set_written(&mut self, chunk: Chunk) {
        self.written[chunk.0 / 64] |= 1 << (chunk.0 % 64);
    }
}

/// The pieces of a range, in order.
fn pieces(offset: u64, length: u32) -> impl Iterator<Item = Piece> {
    let start = usize::try_from(offset).expect("`Device::start` lets in only what is inside of the mapping");
    let end = start + length as usize;
    let mut at = start;
    std::iter::from_fn(move || {
        let chunk = Chunk(at / CHUNK as usize);
        let place = at..end.min((chunk.0 + 1) * CHUNK as usize);
        at = place.end;
        let data = place.start - start..place.end - start;
        (!place.is_empty()).then_some(Piece { chunk, place, data })
    })
}

impl BlockDevice for MemoryDevice {
    fn properties(&self) -> Properties {
        Properties {
            size: self.bytes.len() as u64,
            read_only: false,
            fast_zero: true,
            minimum_block: 1,
            preferred_block: 4096,
        }
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
        let written: u32 = self.written.iter().map(|bits| bits.count_ones()).sum();
        write!(f, "MemoryDevice({} bytes, {written} chunks written)", self.bytes.len())
    }
}

#[cfg(test)]
mod tests;
