//! The layout of a file.
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
//! Header and records are in the encoding of `postcard`. A number is as long as it needs to be, and an enum
//! is the number of its variant. An entry takes some ten nanoseconds and some ten bytes. As JSON, which a
//! person could read, it would take some hundred of each.
//!
//! The cost is that only a program that knows the stored form of an [`Entry`](weir_engine::Entry) can read
//! the file. **A change of that form, or of a type in it, is a new [`VERSION`].** `recording/stored.rs` of
//! the engine has the form. `tests/earlier.rs` replays a file of this version that an earlier program wrote.
//!
//! The engine's thread hands one block after the other to the writing thread. A block's length also bounds
//! how much a damaged file can make a reader read at once.

use serde::{Deserialize, Serialize};

/// The beginning of a file, before the version.
pub(crate) const MAGIC: &str = "weir decisions ";

/// The version of the format.
pub const VERSION: u32 = 4;

/// Bytes in a block, some thousand records. A single record that is longer has a block of its own.
pub(crate) const BLOCK: usize = 64 * 1024;

/// The longest block that a reader accepts.
pub(crate) const LONGEST_BLOCK: usize = 16 * 1024 * 1024;

/// A file's statement about itself.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, Debug)]
pub(crate) struct Header {
    /// The version of weir that recorded.
    pub(crate) weir: String,
    /// The pool.
    pub(crate) pool: String,
}

/// How a recording ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// The recording ended with its engine: nothing is missing.
    Complete,
    /// The disk could not keep up. Later entries are not recorded.
    Overrun,
    /// The file ends in the middle: the process was killed, or the file was cut off.
    CutOff,
}

impl Ending {
    /// The code in the file. A file that is cut off has none.
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Complete => 0,
            Self::Overrun => 1,
            Self::CutOff => 2,
        }
    }

    /// The ending of a code in a file.
    pub(crate) const fn from_code(code: u8) -> Option<Self> {
        match code {
            0 => Some(Self::Complete),
            1 => Some(Self::Overrun),
            _ => None,
        }
    }
}
