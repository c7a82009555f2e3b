//! What stands where in a file.
//!
//! ```text
//! "weir decisions 4\n"                  in clear, so that a file says what it is; 4 is the version of all that follows
//! zstd stream, with a checksum:
//!     block, block, ...                 length in bytes (u32, little endian), then so many bytes:
//!                                       of the first the header, of all others records
//!     0 (u32), ending (u8)              absent if the writer died
//! header: version of weir, name of the pool
//! record: nanoseconds since the record before (the first: since the machine's start, CLOCK_BOOTTIME),
//!         entry
//! ```
//!
//! Header and records are in the encoding of `postcard`: numbers as long as they need to be, enums as the
//! number of their variant. JSON would say more to a reader with a text editor, but takes some hundred
//! nanoseconds and bytes for an entry where this takes some ten of each. The price is that the file is read
//! only by who knows [`Entry`](weir_engine::Entry) as it was written: **a change of `Entry`, or of anything
//! in it, is a new [`VERSION`]**.
//!
//! Blocks are what is handed from one thread to another, and a bound on what a damaged file can ask to be
//! read at once.

use serde::{Deserialize, Serialize};

/// With what a file begins, before the version.
pub(crate) const MAGIC: &str = "weir decisions ";

/// The version of the format.
pub const VERSION: u32 = 4;

/// Bytes in a block, unless a single record is longer: some thousand records.
pub(crate) const BLOCK: usize = 64 * 1024;

/// The longest block that a reader takes.
pub(crate) const LONGEST_BLOCK: usize = 16 * 1024 * 1024;

/// Who wrote the file, of what.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, Debug)]
pub(crate) struct Header {
    /// The version of weir that decided.
    pub(crate) weir: String,
    /// The pool.
    pub(crate) pool: String,
}

/// How a recording ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// With its engine: nothing is missing.
    Complete,
    /// The disk could not keep up, and what came after was not recorded.
    Overrun,
    /// In the middle: the process was killed, or the file was cut off.
    CutOff,
}

impl Ending {
    /// As it is written; a file that is cut off says nothing.
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Complete => 0,
            Self::Overrun => 1,
            Self::CutOff => 2,
        }
    }

    /// What was written.
    pub(crate) const fn from_code(code: u8) -> Option<Self> {
        match code {
            0 => Some(Self::Complete),
            1 => Some(Self::Overrun),
            _ => None,
        }
    }
}
