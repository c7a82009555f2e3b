//! Decodes replies: from the bytes that a socket returned to "this request was answered, with this error".
//!
//! A simple reply does not say how much data follows. So the decoder asks its caller, which knows the request
//! with that cookie. The decoder skips the data, or tells the caller where they belong and leaves them to it.
//! It keeps only a header that the end of the input cuts in two.
//!
//! A structured reply may come in many chunks, mixed with those of other replies. The decoder keeps what has
//! come of it until the last chunk, in a list that is nearly always empty. The list is in the order of the
//! cookies: otherwise a server that leaves many replies unfinished would make each further chunk a long
//! search.

use thiserror::Error;

use super::coverage::{Coverage, Misplaced};
use crate::wire::{self, CHUNK_HEADER_LENGTH, SIMPLE_REPLY_LENGTH, chunk_flag, chunk_type};

/// The longest part of a message that the decoder has to understand: a chunk header, then an offset and the
/// size of a hole.
const LONGEST_HEAD: usize = CHUNK_HEADER_LENGTH + 12;
/// The longest text of an error chunk (NBD protocol, "Conventions"), and its longest payload: the text and
/// the chunk's own fields.
const MAX_ERROR_TEXT: u32 = 4096;
const MAX_ERROR_PAYLOAD: u32 = MAX_ERROR_TEXT + 14;

/// The most error chunks of one reply. One says what is wrong, and a few may say where. Without the bound, a
/// server could send them for ever, and never answer.
const MAX_ERRORS: u32 = 64;

/// What the reply to a request must carry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Awaited {
    /// First byte that the request asked for.
    pub offset: u64,
    /// Bytes of data in the reply if it succeeds: the length of a read, and zero for all other requests.
    pub data: u32,
}

/// A request was answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reply {
    /// The cookie of the request.
    pub cookie: u64,
    /// Zero for success, else the NBD error number (not the platform's).
    pub error: u32,
}

/// The next event of the stream, for a caller that wants the data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Received {
    /// The next `length` bytes of the stream are data of a read, from its byte `start` on. The caller takes
    /// them off the input before it goes on decoding.
    Data {
        /// The cookie of the read.
        cookie: u64,
        /// Where in the read; `start + length` lies within it.
        start: u32,
        /// Number of bytes, above zero.
        length: u32,
    },
    /// A part of a read is zeroes.
    Zeroes {
        /// The cookie of the read.
        cookie: u64,
        /// Where in the read; `start + length` lies within it.
        start: u32,
        /// Number of bytes, above zero.
        length: u32,
    },
    /// A request was answered. If it is a read that succeeded, each byte of its data came before, once.
    Reply(Reply),
}

/// How the server broke the protocol. The connection cannot be used any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum ReplyError {
    /// No kind of reply that is accepted starts like this.
    #[error(
        "the server sent a reply with magic {0:#010x}; accepted: a simple or a negotiated structured reply"
    )]
    BadMagic(u32),
    /// No request with this cookie is outstanding.
    #[error("the server answered cookie {0:#018x}, which no outstanding request has")]
    UnknownCookie(u64),
    /// A simple reply to a read, though structured replies were negotiated.
    #[error("the server sent a simple reply to a read although structured replies were negotiated")]
    SimpleReplyToRead,
    /// A chunk of a type that does not answer the request.
    #[error("the server sent a reply chunk of type {0}, which nothing asked for")]
    UnexpectedChunk(u16),
    /// A chunk whose length its type does not allow.
    #[error(
        "the server sent a reply chunk of type {kind} with {length} bytes, which that type does not allow"
    )]
    BadChunkLength {
        /// The type.
        kind: u16,
        /// The length of the payload.
        length: u32,
    },
    /// Data outside of what was asked for.
    #[error("the server sent {length} bytes at {offset}, outside of the read that they answer")]
    OutsideOfRead {
        /// First byte.
        offset: u64,
        /// Number of bytes.
        length: u32,
    },
    /// A last chunk before all of the data.
    #[error("the server sent {found} bytes in the chunks of a read of {asked}")]
    TooLittle {
        /// How many bytes came.
        found: u32,
        /// How many bytes were asked for.
        asked: u32,
    },
    /// Data, some of which came before.
    #[error("the server sent {length} bytes at {offset}, some of which it had sent before")]
    SentTwice {
        /// First byte.
        offset: u64,
        /// Number of bytes.
        length: u32,
    },
    /// Chunks with too many gaps between them to be kept track of.
    #[error("the server sent the chunks of one read in too many separate places")]
    Scattered,
    /// Too many error chunks without an end of the reply.
    #[error("the server sent more than {MAX_ERRORS} error chunks for cookie {0:#018x}")]
    TooManyErrors(u64),
    /// An error chunk with the error number 0.
    #[error("the server sent an error chunk with error 0")]
    ErrorWithoutNumber,
}

/// Walks over the stream of replies of one connection.
#[derive(Debug)]
pub struct ReplyDecoder {
    structured: bool,
    /// The start of a header that was cut in two.
    head: [u8; LONGEST_HEAD],
    have: usize,
    /// Bytes of payload still to be skipped, and the reply that is complete once they are.
    skip: u64,
    after_skip: Option<Reply>,
    /// Structured replies whose last chunk has not come, in the order of their cookies.
    partial: Vec<Partial>,
}

/// The part of a structured reply that has come so far.
#[derive(Debug)]
struct Partial {
    cookie: u64,
    data: Coverage,
    error: u32,
    /// Error chunks so far.
    errors: u32,
}

/// What the decoder makes of the bytes of a header.
enum Head {
    /// The header has (at least) this many bytes.
    Need(usize),
    Whole {
        head: usize,
        payload: u64,
        part: Part,
    },
}

/// What a message (a simple reply or a chunk) says about its reply.
struct Part {
    cookie: u64,
    content: Content,
    error: u32,
    last: bool,
    awaited: Awaited,
}

/// What part of a read a message carries.
#[derive(Clone, Copy)]
enum Content {
    None,
    Data { start: u32, length: u32 },
    Zeroes { start: u32, length: u32 },
}

impl Content {
    const fn length(self) -> u32 {
        match self {
            Self::None => 0,
            Self::Data { length, .. } | Self::Zeroes { length, .. } => length,
        }
    }
}

impl ReplyDecoder {
    /// A decoder at the start of the transmission phase. `structured`: whether structured replies were
    /// negotiated.
    pub const fn new(structured: bool) -> Self {
        let head = [0; LONGEST_HEAD];
        Self { structured, head, have: 0, skip: 0, after_skip: None, partial: Vec::new() }
    }

    /// Takes bytes off the front of `input` until a reply is complete, and returns it; `None` once the input
    /// is used up. `awaited` says what the outstanding request with a cookie waits for, and `None` if there
    /// is no such request. So the caller must forget a cookie that was answered before it goes on decoding.
    ///
    /// # Errors
    /// If the server violates the protocol; the decoder must not be used after that.
    #[inline]
    pub fn next_reply(
        &mut self,
        input: &mut &[u8],
        mut awaited: impl FnMut(u64) -> Option<Awaited>,
    ) -> Result<Option<Reply>, ReplyError> {
        loop {
            if !self.skip(input) {
                return Ok(None);
            }
            if let Some(reply) = self.after_skip.take() {
                return Ok(Some(reply));
            }
            let Some((payload, part)) = self.next_head(input, &mut awaited)? else { return Ok(None) };
            self.skip = payload;
            self.after_skip = self.account(&part)?;
        }
    }

    /// Like [`ReplyDecoder::next_reply`], but also tells of the data of reads, and leaves their bytes to the
    /// caller.
    ///
    /// # Errors
    /// If the server violates the protocol; the decoder must not be used after that.
    #[inline]
    pub fn next_received(
        &mut self,
        input: &mut &[u8],
        mut awaited: impl FnMut(u64) -> Option<Awaited>,
    ) -> Result<Option<Received>, ReplyError> {
        loop {
            if !self.skip(input) {
                return Ok(None);
            }
            if let Some(reply) = self.after_skip.take() {
                return Ok(Some(Received::Reply(reply)));
            }
            let Some((payload, part)) = self.next_head(input, &mut awaited)? else { return Ok(None) };
            self.after_skip = self.account(&part)?;
            let cookie = part.cookie;
            match part.content {
                Content::Data { start, length } => return Ok(Some(Received::Data { cookie, start, length })),
                Content::Zeroes { start, length } => {
                    return Ok(Some(Received::Zeroes { cookie, start, length }));
                }
                Content::None => self.skip = payload,
            }
        }
    }

    /// Takes off bytes that are to be skipped. False if more of them are to come.
    #[inline]
    fn skip(&mut self, input: &mut &[u8]) -> bool {
        if self.skip > 0 {
            let step = usize::try_from(self.skip).unwrap_or(usize::MAX).min(input.len());
            *input = &input[step..];
            self.skip -= step as u64;
        }
        self.skip == 0
    }

    /// The next whole header: directly from the input, or joined from what was kept and the input.
    #[inline]
    fn next_head(
        &mut self,
        input: &mut &[u8],
        awaited: &mut impl FnMut(u64) -> Option<Awaited>,
    ) -> Result<Option<(u64, Part)>, ReplyError> {
        if self.have == 0
            && let Head::Whole { head, payload, part } = parse_head(input, self.structured, awaited)?
        {
            *input = &input[head..];
            return Ok(Some((payload, part)));
        }
        loop {
            match parse_head(&self.head[..self.have], self.structured, awaited)? {
                Head::Whole { payload, part, .. } => {
                    self.have = 0;
                    return Ok(Some((payload, part)));
                }
                Head::Need(length) => {
                    let step = (length - self.have).min(input.len());
                    let (taken, rest) = input.split_at(step);
                    self.head[self.have..self.have + step].copy_from_slice(taken);
                    *input = rest;
                    self.have += step;
                    if self.have < length {
                        return Ok(None);
                    }
                }
            }
        }
    }

    /// Adds a message to what has come of its reply. Returns the reply, if that was its last message.
    #[inline]
    fn account(&mut self, part: &Part) -> Result<Option<Reply>, ReplyError> {
        let cookie = part.cookie;
        let place = self.partial.binary_search_by_key(&cookie, |partial| partial.cookie);
        let mut new = Partial { cookie, data: Coverage::default(), error: 0, errors: 0 };
        let sum = place.ok().and_then(|place| self.partial.get_mut(place)).unwrap_or(&mut new);
        sum.add(part)?;
        if !part.last {
            if let Err(place) = place {
                self.partial.insert(place, new);
            }
            return Ok(None);
        }
        let (found, asked, error) = (sum.data.bytes(), part.awaited.data, sum.error);
        if error == 0 && found < asked {
            return Err(ReplyError::TooLittle { found, asked });
        }
        if let Ok(place) = place {
            self.partial.remove(place);
        }
        Ok(Some(Reply { cookie, error }))
    }
}

impl Partial {
    #[inline]
    fn add(&mut self, part: &Part) -> Result<(), ReplyError> {
        if self.error == 0 {
            self.error = part.error;
        }
        self.errors += u32::from(part.error != 0);
        if self.errors > MAX_ERRORS {
            return Err(ReplyError::TooManyErrors(self.cookie));
        }
        let (Content::Data { start, length } | Content::Zeroes { start, length }) = part.content else {
            return Ok(());
        };
        self.data.add(start, length).map_err(|misplaced| match misplaced {
            Misplaced::Twice => {
                ReplyError::SentTwice { offset: part.awaited.offset + u64::from(start), length }
            }
            Misplaced::Scattered => ReplyError::Scattered,
        })
    }
}

#[inline]
fn parse_head(
    bytes: &[u8],
    structured: bool,
    awaited: &mut impl FnMut(u64) -> Option<Awaited>,
) -> Result<Head, ReplyError> {
    let Some(magic) = u32_at(bytes, 0) else { return Ok(Head::Need(4)) };
    match magic {
        wire::SIMPLE_REPLY_MAGIC => parse_simple(bytes, structured, awaited),
        wire::STRUCTURED_REPLY_MAGIC if structured => parse_chunk(bytes, awaited),
        _ => Err(ReplyError::BadMagic(magic)),
    }
}

/// NBD protocol, "Simple reply message".
#[inline]
fn parse_simple(
    bytes: &[u8],
    structured: bool,
    awaited: &mut impl FnMut(u64) -> Option<Awaited>,
) -> Result<Head, ReplyError> {
    let (Some(error), Some(cookie)) = (u32_at(bytes, 4), u64_at(bytes, 8)) else {
        return Ok(Head::Need(SIMPLE_REPLY_LENGTH));
    };
    let awaited = awaited(cookie).ok_or(ReplyError::UnknownCookie(cookie))?;
    if structured && awaited.data > 0 {
        return Err(ReplyError::SimpleReplyToRead);
    }
    let content = match awaited.data {
        length @ 1.. if error == 0 => Content::Data { start: 0, length },
        _ => Content::None,
    };
    let part = Part { cookie, content, error, last: true, awaited };
    Ok(Head::Whole { head: SIMPLE_REPLY_LENGTH, payload: u64::from(content.length()), part })
}

/// NBD protocol, "Structured reply chunk message" and "Structured reply types".
fn parse_chunk(bytes: &[u8], awaited: &mut impl FnMut(u64) -> Option<Awaited>) -> Result<Head, ReplyError> {
    let (Some(flags), Some(kind), Some(cookie), Some(length)) =
        (u16_at(bytes, 4), u16_at(bytes, 6), u64_at(bytes, 8), u32_at(bytes, 16))
    else {
        return Ok(Head::Need(CHUNK_HEADER_LENGTH));
    };
    let awaited = awaited(cookie).ok_or(ReplyError::UnknownCookie(cookie))?;
    let last = flags & chunk_flag::DONE != 0;
    let bad_length = ReplyError::BadChunkLength { kind, length };
    let (fields, content, error) = match kind {
        chunk_type::NONE if length == 0 && last => (0, Content::None, 0),
        chunk_type::OFFSET_DATA if awaited.data > 0 => {
            let data = length.checked_sub(8).filter(|data| *data > 0).ok_or(bad_length)?;
            let Some(offset) = u64_at(bytes, CHUNK_HEADER_LENGTH) else {
                return Ok(Head::Need(CHUNK_HEADER_LENGTH + 8));
            };
            (8, Content::Data { start: within(awaited, offset, data)?, length: data }, 0)
        }
        chunk_type::OFFSET_HOLE if awaited.data > 0 => {
            if length != 12 {
                return Err(bad_length);
            }
            let (Some(offset), Some(data)) =
                (u64_at(bytes, CHUNK_HEADER_LENGTH), u32_at(bytes, CHUNK_HEADER_LENGTH + 8))
            else {
                return Ok(Head::Need(CHUNK_HEADER_LENGTH + 12));
            };
            (12, Content::Zeroes { start: within(awaited, offset, data)?, length: data }, 0)
        }
        kind if kind & chunk_type::ERROR_BIT != 0 => {
            if !(6..=MAX_ERROR_PAYLOAD).contains(&length) {
                return Err(bad_length);
            }
            let (Some(error), Some(text)) =
                (u32_at(bytes, CHUNK_HEADER_LENGTH), u16_at(bytes, CHUNK_HEADER_LENGTH + 4))
            else {
                return Ok(Head::Need(CHUNK_HEADER_LENGTH + 6));
            };
            if u32::from(text) > (length - 6).min(MAX_ERROR_TEXT) {
                return Err(bad_length);
            }
            if error == 0 {
                return Err(ReplyError::ErrorWithoutNumber);
            }
            (6, Content::None, error)
        }
        chunk_type::NONE => return Err(bad_length),
        _ => return Err(ReplyError::UnexpectedChunk(kind)),
    };
    let payload = u64::from(length) - fields as u64;
    Ok(Head::Whole {
        head: CHUNK_HEADER_LENGTH + fields,
        payload,
        part: Part { cookie, content, error, last, awaited },
    })
}

/// Where in its read the data lies. Checks that there is some, and that all of it lies inside the read.
fn within(awaited: Awaited, offset: u64, length: u32) -> Result<u32, ReplyError> {
    let start = offset.checked_sub(awaited.offset).and_then(|start| u32::try_from(start).ok());
    let fits = |start: &u32| length > 0 && length <= awaited.data.saturating_sub(*start);
    start.filter(fits).ok_or(ReplyError::OutsideOfRead { offset, length })
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().copied().map(u16::from_be_bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().copied().map(u32::from_be_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().copied().map(u64::from_be_bytes)
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod props;
