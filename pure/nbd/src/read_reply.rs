//! Replies to reads: which header bytes go before which part of the data, and which parts need not be sent.
//!
//! The obvious function would append header and data to one buffer. At hundreds of thousands of reads a
//! second, that copy is the largest single cost of the read path. So the plan only says what to send, and the
//! driver passes headers and parts of its own buffer to one `writev`. The plan is an iterator on the stack;
//! nothing is allocated.

use std::ops::{Deref, Range};

use crate::reply::{chunk_header, simple_header};
use crate::wire::{self, chunk_flag, chunk_type};
use crate::{Command, CommandKind, Session};

/// The unit in which data are searched for zeroes. A shorter hole is not worth a chunk of its own.
const GRANULE: u64 = 64 << 10;

/// Header of a chunk with its absolute offset.
const DATA_HEADER_LENGTH: u32 = 8;
/// Payload of a hole chunk: offset and length.
const HOLE_LENGTH: u32 = 12;
const LONGEST_HEADER: usize = wire::CHUNK_HEADER_LENGTH + HOLE_LENGTH as usize;

/// How to answer `command` (a read) with `data`.
///
/// A simple reply is one piece. A structured reply is made of granules of 64 KiB, aligned in the export; the
/// first and the last may be shorter. Each run of granules that are all zero becomes a hole without data, and
/// each other run becomes a data chunk. A read that must not be fragmented is one hole if all of it is zero,
/// and otherwise one data chunk. The last piece ends the reply.
///
/// # Panics
/// If `data` is empty or not as long as the command says, or the command is no read.
pub fn read_reply<'a>(session: &Session, command: &Command, data: &'a [u8]) -> ReadPlan<'a> {
    assert_eq!(command.kind, CommandKind::Read, "only a read is answered with data");
    assert_eq!(command.length as usize, data.len(), "a read is answered with all its data");
    assert!(!data.is_empty(), "a read of nothing is refused");
    let form = match (session.structured_replies, command.dont_fragment) {
        (false, _) => Form::Simple,
        (true, true) => Form::OneChunk,
        (true, false) => Form::Chunks,
    };
    ReadPlan { form, cookie: command.cookie, offset: command.offset, data, position: 0, looked_ahead: None }
}

/// The pieces of a reply, in the order in which they must be sent; at least one.
#[derive(Clone, Debug)]
pub struct ReadPlan<'a> {
    form: Form,
    cookie: u64,
    /// Where `data` starts in the export.
    offset: u64,
    data: &'a [u8],
    /// How much of `data` has been planned.
    position: usize,
    /// Whether the granule at `position` is zero, if the search for the end of the run before it has looked
    /// at it.
    looked_ahead: Option<bool>,
}

/// Header bytes and the part of the data that follows them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Piece {
    /// Sent first.
    pub header: HeaderBytes,
    /// Sent next: a range of the data that the plan was made for. Empty for a hole.
    pub data: Range<usize>,
}

/// A few bytes, without a heap.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HeaderBytes {
    bytes: [u8; LONGEST_HEADER],
    length: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    Simple,
    OneChunk,
    Chunks,
}

impl Iterator for ReadPlan<'_> {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        let start = self.position;
        if start == self.data.len() {
            return None;
        }
        if self.form == Form::Simple {
            self.position = self.data.len();
            return Some(Piece {
                header: HeaderBytes::new(&[&simple_header(0, self.cookie)]),
                data: start..self.position,
            });
        }
        let zero = self.take_run();
        Some(self.chunk(start..self.position, zero))
    }
}

#[expect(clippy::indexing_slicing, reason = "a granule begins and ends within the data, whatever is in them")]
impl ReadPlan<'_> {
    /// Moves `position` to the end of the longest run of granules that are alike. Returns whether they are
    /// zero.
    fn take_run(&mut self) -> bool {
        let granule_end = self.granule_end(self.position);
        let zero =
            self.looked_ahead.take().unwrap_or_else(|| is_zero(&self.data[self.position..granule_end]));
        self.position = granule_end;
        while self.position < self.data.len() {
            let granule_end = self.granule_end(self.position);
            let next = is_zero(&self.data[self.position..granule_end]);
            if next != zero {
                self.looked_ahead = Some(next);
                break;
            }
            self.position = granule_end;
        }
        zero
    }

    /// Where the granule that starts at `position` ends. If the reply must not be fragmented, all data are
    /// one granule.
    fn granule_end(&self, position: usize) -> usize {
        let left = self.data.len() - position;
        if self.form == Form::OneChunk {
            return position + left;
        }
        let in_granule = (self.offset + position as u64) % GRANULE;
        // Cannot fail on any machine that has `left` bytes of memory in one piece.
        position + usize::try_from(GRANULE - in_granule).map_or(left, |whole| whole.min(left))
    }

    fn chunk(&self, range: Range<usize>, zero: bool) -> Piece {
        let flags = if range.end == self.data.len() { chunk_flag::DONE } else { 0 };
        let offset = (self.offset + range.start as u64).to_be_bytes();
        // The data are as long as a command's length, which has 32 bits.
        #[allow(clippy::cast_possible_truncation)]
        let length = range.len() as u32;
        if zero {
            let header = chunk_header(flags, chunk_type::OFFSET_HOLE, self.cookie, HOLE_LENGTH);
            let header = HeaderBytes::new(&[&header, &offset, &length.to_be_bytes()]);
            return Piece { header, data: range.end..range.end };
        }
        let payload = DATA_HEADER_LENGTH + length;
        let header = chunk_header(flags, chunk_type::OFFSET_DATA, self.cookie, payload);
        Piece { header: HeaderBytes::new(&[&header, &offset]), data: range }
    }
}

#[expect(
    clippy::indexing_slicing,
    reason = "the parts are of fixed lengths, and LONGEST_HEADER is their longest sum"
)]
impl HeaderBytes {
    fn new(parts: &[&[u8]]) -> Self {
        let mut header = Self { bytes: [0; LONGEST_HEADER], length: 0 };
        for part in parts {
            header.bytes[header.length..header.length + part.len()].copy_from_slice(part);
            header.length += part.len();
        }
        header
    }
}

impl Deref for HeaderBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}

/// Whether all bytes are zero. Stops at the first block of 64 bytes that is not. The bytes of a block are
/// joined with OR, which compiles to a few vector instructions.
fn is_zero(data: &[u8]) -> bool {
    let any_set = |bytes: &[u8]| bytes.iter().fold(0, |all, byte| all | byte) != 0;
    let mut blocks = data.chunks_exact(64);
    !blocks.any(any_set) && !any_set(blocks.remainder())
}

#[cfg(test)]
mod props;
#[cfg(test)]
mod tests;
