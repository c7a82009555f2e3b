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

/// What an initiator calls itself, and why that is no name if it is none. What no name may have is then
/// escaped, as `\\n` and `\\xff`, and the rest is cut off: an initiator is to be known all the same.
pub fn called(bytes: &[u8]) -> (String, Option<Unfit>) {
    let text = String::from_utf8_lossy(bytes);
    let unfit = match std::str::from_utf8(bytes) {
        Ok(text) => match name(text) {
            Ok(name) => return (name, None),
            Err(unfit) => unfit,
        },
        Err(_) => Unfit::new(&text, "UTF-8"),
    };
    (escaped(bytes), Some(unfit))
}

/// A name that none may have, as one that fits.
fn escaped(bytes: &[u8]) -> String {
    let mut shown = String::new();
    for chunk in bytes.utf8_chunks() {
        let characters = chunk.valid().chars().map(|character| character.escape_debug().to_string());
        let others = chunk.invalid().iter().map(|byte| byte.escape_ascii().to_string());
        for part in characters.chain(others) {
            if shown.len() + part.len() > MOST_NAME_BYTES {
                return shown;
            }
            shown.push_str(&part);
        }
    }
    if shown.is_empty() { "(no name)".to_owned() } else { shown }
}

#[cfg(test)]
mod props;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_name_is_escaped_and_cut_off_and_no_two_of_them_are_the_same() {
        assert_eq!(called(b"iqn.i:1"), ("iqn.i:1".to_owned(), None));
        let odd: [(&[u8], &str); 5] = [
            (b"iqn.\xff", "iqn.\\xff"),
            (b"iqn.\xfe", "iqn.\\xfe"),
            (b"\xffiqn.\n", "\\xffiqn.\\n"),
            ("é\u{1b}[2J".as_bytes(), "é\\u{1b}[2J"),
            (b"", "(no name)"),
        ];
        for (bytes, shown) in odd {
            let (text, unfit) = called(bytes);
            assert_eq!((&*text, unfit.is_some(), name(&text).is_ok()), (shown, true, true));
        }
        let (long, unfit) = called(&[0xff; 300]);
        assert!(unfit.is_some() && name(&long).is_ok() && long.len() > 250, "{long}");
    }
}
