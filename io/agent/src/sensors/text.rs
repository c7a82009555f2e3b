//! What the kernel and the daemons say, as text: parsers without any I/O, so that a fuzzer can feed them.
//!
//! Whoever can log in to a target chooses a part of these texts: its name and its alias. So nothing here is
//! taken for granted, and a parser answers with [`Unfit`] instead of guessing.

pub mod address;
pub mod block;
pub mod lio;
pub mod mounts;
pub mod tcp;
pub mod tgt;

use std::fmt;

/// The most bytes of a name. Names of initiators and targets have at most 223 (RFC 7143, section 4.2.7.1).
pub const MOST_NAME_BYTES: usize = 255;

/// The most characters of an unfit text that are told.
const MOST_TOLD: usize = 60;

/// A text that is not what its place accepts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unfit {
    /// What was found: its first 60 characters.
    pub found: String,
    /// What is accepted.
    pub accepted: &'static str,
}

impl Unfit {
    /// `found` where `accepted` would do.
    pub fn new(found: &str, accepted: &'static str) -> Self {
        Self { found: found.chars().take(MOST_TOLD).collect(), accepted }
    }
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} where {} is accepted", self.found, self.accepted)
    }
}

/// The name of a target, an initiator, a backstore or a device.
///
/// # Errors
/// If it is empty or too long, or has a character that would break a line of the log.
pub fn name(text: &str) -> Result<String, Unfit> {
    let fits = (1..=MOST_NAME_BYTES).contains(&text.len()) && !text.contains(char::is_control);
    let accepted = "a name of 1 to 255 bytes without control characters";
    if fits { Ok(text.to_owned()) } else { Err(Unfit::new(text, accepted)) }
}

#[cfg(test)]
mod props;
