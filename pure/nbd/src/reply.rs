//! Replies without data of the export: success, errors, and block status.
//!
//! These replies are appended to the connection's output. [`read_reply()`](crate::read_reply()) makes the
//! replies to reads, because their data must not be copied.

use crate::wire::{self, chunk_flag, chunk_type};
use crate::{Command, NbdError, Session};

/// The number by which block status replies name the context `base:allocation`; any number would do.
pub(crate) const BASE_ALLOCATION_ID: u32 = 1;

/// The specification's bound on the extents in a chunk.
const MAX_EXTENTS: u32 = 1 << 20;

/// Appends "done, no error" for any command but a read and a block status.
///
/// It is a simple reply even if structured replies were negotiated. The specification allows that for a reply
/// without payload, and a simple reply is shorter.
pub fn push_done(out: &mut Vec<u8>, cookie: u64) {
    out.extend_from_slice(&simple_header(0, cookie));
}

/// Appends an error for any command. It is an error chunk if structured replies were negotiated (a read must
/// have one, the others should), and otherwise a simple reply.
pub fn push_error(out: &mut Vec<u8>, session: &Session, cookie: u64, error: NbdError) {
    if !session.structured_replies {
        out.extend_from_slice(&simple_header(error.code(), cookie));
        return;
    }
    const NO_MESSAGE: u16 = 0;
    out.extend_from_slice(&chunk_header(chunk_flag::DONE, chunk_type::ERROR, cookie, 6));
    out.extend_from_slice(&error.code().to_be_bytes());
    out.extend_from_slice(&NO_MESSAGE.to_be_bytes());
}

/// Appends the extents of the range that `command` (a block status) asked for. `extents` are consecutive
/// pairs of length in bytes and flags ([`wire::state`]), from the command's offset on.
///
/// The reply keeps the specification's rules: neighbours with equal flags are joined, no extent is empty, and
/// none reaches beyond the request. There is exactly one extent if the client wanted one, and never more than
/// fit into a chunk. If `extents` is empty, the whole range is reported as allocated data, which is always
/// safe to say.
#[expect(clippy::indexing_slicing, reason = "the header that it reaches into was appended just before")]
pub fn block_status_reply(
    out: &mut Vec<u8>,
    session: &Session,
    command: &Command,
    extents: impl IntoIterator<Item = (u64, u32)>,
) {
    let most = if command.one_extent { 1 } else { MAX_EXTENTS.min(session.export.block.maximum / 8).max(1) };
    let start = out.len();
    out.extend_from_slice(&chunk_header(chunk_flag::DONE, chunk_type::BLOCK_STATUS, command.cookie, 0));
    out.extend_from_slice(&BASE_ALLOCATION_ID.to_be_bytes());
    let mut count = 0;
    for (length, flags) in Joined::new(extents, command.length).take(most as usize) {
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(&flags.to_be_bytes());
        count += 1;
    }
    if count == 0 {
        out.extend_from_slice(&command.length.to_be_bytes());
        out.extend_from_slice(&0_u32.to_be_bytes());
        count = 1;
    }
    let payload_length: u32 = 4 + 8 * count;
    out[start + wire::CHUNK_HEADER_LENGTH - 4..start + wire::CHUNK_HEADER_LENGTH]
        .copy_from_slice(&payload_length.to_be_bytes());
}

pub(crate) fn simple_header(error: u32, cookie: u64) -> [u8; wire::SIMPLE_REPLY_LENGTH] {
    let mut header = [0; wire::SIMPLE_REPLY_LENGTH];
    header[..4].copy_from_slice(&wire::SIMPLE_REPLY_MAGIC.to_be_bytes());
    header[4..8].copy_from_slice(&error.to_be_bytes());
    header[8..].copy_from_slice(&cookie.to_be_bytes());
    header
}

pub(crate) fn chunk_header(
    flags: u16,
    chunk_type: u16,
    cookie: u64,
    length: u32,
) -> [u8; wire::CHUNK_HEADER_LENGTH] {
    let mut header = [0; wire::CHUNK_HEADER_LENGTH];
    header[..4].copy_from_slice(&wire::STRUCTURED_REPLY_MAGIC.to_be_bytes());
    header[4..6].copy_from_slice(&flags.to_be_bytes());
    header[6..8].copy_from_slice(&chunk_type.to_be_bytes());
    header[8..16].copy_from_slice(&cookie.to_be_bytes());
    header[16..].copy_from_slice(&length.to_be_bytes());
    header
}

/// Extents with equal neighbours joined and empty ones left out, cut off where the request ends.
struct Joined<I> {
    extents: I,
    /// Bytes of the request that no extent covers yet.
    left: u32,
    /// The extent that may still grow.
    growing: Option<(u32, u32)>,
}

impl<I: Iterator<Item = (u64, u32)>> Joined<I> {
    fn new(extents: impl IntoIterator<IntoIter = I>, requested: u32) -> Self {
        Self { extents: extents.into_iter(), left: requested, growing: None }
    }
}

impl<I: Iterator<Item = (u64, u32)>> Iterator for Joined<I> {
    type Item = (u32, u32);

    fn next(&mut self) -> Option<(u32, u32)> {
        while self.left > 0 {
            let Some((length, flags)) = self.extents.next() else { break };
            let length = u32::try_from(length).map_or(self.left, |length| length.min(self.left));
            self.left -= length;
            match &mut self.growing {
                _ if length == 0 => {}
                Some((grown, same)) if *same == flags => *grown += length,
                growing => {
                    if let Some(finished) = growing.replace((length, flags)) {
                        return Some(finished);
                    }
                }
            }
        }
        self.growing.take()
    }
}

#[cfg(test)]
mod tests;
