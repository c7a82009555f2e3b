//! The meaning of a server's bytes, by the specification. This is the test's own reading, one whole message
//! at a time, and it shares nothing with weir's decoder.
//!
//! The judge follows the stream up to the first message that breaks the protocol. If a client gets any other
//! answer, or an answer after that message, it does not come from the server.

use std::collections::BTreeMap;

use crate::harness::command;

const SIMPLE: u32 = 0x6744_6698;
const CHUNK: u32 = 0x668e_33ef;

/// A request that came to a server.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub(super) command: u16,
    pub(super) cookie: u64,
    pub(super) offset: u64,
    pub(super) length: u32,
}

/// The data of a read, empty for all other requests; or the number of an error.
pub(super) type Answer = Result<Vec<u8>, u32>;

/// Reads the bytes that a server sends on one connection.
pub(super) struct Judge {
    structured: bool,
    unanswered: BTreeMap<u64, Asked>,
    /// The replies of which some chunks have come and the last has not, by cookie.
    parts: BTreeMap<u64, Parts>,
    unread: Vec<u8>,
    /// Whether the protocol was broken.
    is_lost: bool,
}

/// The part of a structured reply that has come.
#[derive(Default)]
struct Parts {
    data: Vec<u8>,
    /// Start and end of each stretch of `data` that has come.
    stretches: Vec<(usize, usize)>,
    error: Option<u32>,
}

/// Why a message has no meaning yet, or never will.
enum Unclear {
    CutOff,
    Broken,
}

/// The length of a message, and the answer that it completes.
type Meaning = (usize, Option<(Asked, Answer)>);

impl Judge {
    /// A judge at the start of the transmission phase.
    pub(super) fn new(structured: bool) -> Self {
        Self {
            structured,
            unanswered: BTreeMap::new(),
            parts: BTreeMap::new(),
            unread: Vec::new(),
            is_lost: false,
        }
    }

    /// Notes a request that the server has received.
    ///
    /// # Errors
    /// If another request with the same cookie is not answered yet.
    pub(super) fn ask(&mut self, asked: Asked) -> Result<(), String> {
        match self.unanswered.insert(asked.cookie, asked) {
            // After a message that breaks the protocol, nobody knows which requests were answered.
            Some(other) if !self.is_lost => Err(format!("{asked:?} has the cookie of {other:?}")),
            _ => Ok(()),
        }
    }

    /// Reads bytes that the server sends. Returns the requests that they answer, with the answers.
    pub(super) fn hear(&mut self, bytes: &[u8]) -> Vec<(Asked, Answer)> {
        let mut answers = Vec::new();
        if self.is_lost {
            return answers;
        }
        self.unread.extend_from_slice(bytes);
        let unread = std::mem::take(&mut self.unread);
        let mut rest = &unread[..];
        loop {
            match self.message(rest) {
                Ok((length, answer)) => {
                    answers.extend(answer);
                    rest = &rest[length..];
                }
                Err(Unclear::CutOff) => {
                    self.unread = rest.to_vec();
                    return answers;
                }
                Err(Unclear::Broken) => {
                    self.is_lost = true;
                    return answers;
                }
            }
        }
    }

    fn message(&mut self, bytes: &[u8]) -> Result<Meaning, Unclear> {
        match u32_at(bytes, 0)? {
            SIMPLE => self.simple(bytes),
            CHUNK if self.structured => self.chunk(bytes),
            _ => Err(Unclear::Broken),
        }
    }

    /// NBD protocol, "Simple reply message".
    fn simple(&mut self, bytes: &[u8]) -> Result<Meaning, Unclear> {
        let (error, asked) = (u32_at(bytes, 4)?, self.asked(u64_at(bytes, 8)?)?);
        let is_read = asked.command == command::READ;
        if is_read && self.structured {
            return Err(Unclear::Broken);
        }
        let data = if is_read && error == 0 { taken(bytes, 16, asked.length)? } else { &[] };
        let answer = match (self.parts.remove(&asked.cookie).and_then(|parts| parts.error), error) {
            (Some(error), _) => Err(error),
            (None, 0) => Ok(data.to_vec()),
            (None, error) => Err(error),
        };
        self.unanswered.remove(&asked.cookie);
        Ok((16 + data.len(), Some((asked, answer))))
    }

    /// NBD protocol, "Structured reply chunk message" and "Structured reply types".
    fn chunk(&mut self, bytes: &[u8]) -> Result<Meaning, Unclear> {
        let (is_last, kind) = (u16_at(bytes, 4)? & 1 != 0, u16_at(bytes, 6)?);
        let (asked, length) = (self.asked(u64_at(bytes, 8)?)?, u32_at(bytes, 16)?);
        let is_read = asked.command == command::READ;
        let parts = self.parts.entry(asked.cookie).or_default();
        match kind {
            0 if length == 0 && is_last => {}
            1 if is_read && length > 8 => {
                let offset = u64_at(bytes, 20)?;
                let data = || taken(bytes, 28, length - 8);
                parts.add(&asked, offset, length - 8, data)?;
            }
            2 if is_read && length == 12 => {
                let (offset, zeroes) = (u64_at(bytes, 20)?, u32_at(bytes, 28)?);
                parts.add(&asked, offset, zeroes, || Ok(&[]))?;
            }
            _ if kind >= 1 << 15 && (6..=4096 + 14).contains(&length) => {
                let (error, text) = (u32_at(bytes, 20)?, u32::from(u16_at(bytes, 24)?));
                if error == 0 || text > (length - 6).min(4096) {
                    return Err(Unclear::Broken);
                }
                taken(bytes, 20, length)?;
                parts.error.get_or_insert(error);
            }
            _ => return Err(Unclear::Broken),
        }
        let length = 20 + length as usize;
        if !is_last {
            return Ok((length, None));
        }
        let parts = self.parts.remove(&asked.cookie).unwrap_or_default();
        self.unanswered.remove(&asked.cookie);
        let answer = match parts.error {
            Some(error) => Err(error),
            None if is_read && parts.bytes() < asked.length as usize => return Err(Unclear::Broken),
            None => Ok(parts.data),
        };
        Ok((length, Some((asked, answer))))
    }

    fn asked(&self, cookie: u64) -> Result<Asked, Unclear> {
        self.unanswered.get(&cookie).copied().ok_or(Unclear::Broken)
    }
}

impl Parts {
    /// Adds data, or zeroes if `data` is `None`, after a check of their place.
    fn add<'a>(
        &mut self,
        asked: &Asked,
        offset: u64,
        length: u32,
        data: impl FnOnce() -> Result<&'a [u8], Unclear>,
    ) -> Result<(), Unclear> {
        let end = offset.checked_add(length.into()).ok_or(Unclear::Broken)?;
        if length == 0 || offset < asked.offset || end > asked.offset + u64::from(asked.length) {
            return Err(Unclear::Broken);
        }
        let place = |at: u64| usize::try_from(at - asked.offset).expect("it lies within a read");
        let (start, end) = (place(offset), place(end));
        if self.stretches.iter().any(|(other, other_end)| start < *other_end && *other < end) {
            return Err(Unclear::Broken);
        }
        let data = data()?;
        self.data.resize(asked.length as usize, 0);
        self.data[start..][..data.len()].copy_from_slice(data);
        self.stretches.push((start, end));
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.stretches.iter().map(|(start, end)| end - start).sum()
    }
}

fn taken(bytes: &[u8], at: usize, length: u32) -> Result<&[u8], Unclear> {
    bytes.get(at..at + length as usize).ok_or(Unclear::CutOff)
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Result<[u8; N], Unclear> {
    bytes.get(at..).and_then(<[u8]>::first_chunk).copied().ok_or(Unclear::CutOff)
}

fn u16_at(bytes: &[u8], at: usize) -> Result<u16, Unclear> {
    array(bytes, at).map(u16::from_be_bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> Result<u32, Unclear> {
    array(bytes, at).map(u32::from_be_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> Result<u64, Unclear> {
    array(bytes, at).map(u64::from_be_bytes)
}
