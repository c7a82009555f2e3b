//! Exports as the handshake describes them, and the session that it agrees on.

use crate::wire::transmission_flag as flag;

/// The sizes that requests should and must keep to (specification, "Size constraints"), in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockSizes {
    /// Offsets and lengths must be multiples of this: a power of two from 1 to 65,536.
    pub minimum: u32,
    /// Requests of multiples of this are efficient: a power of two, at least 512 and at least `minimum`.
    pub preferred: u32,
    /// The longest read and write; at least `preferred`.
    pub maximum: u32,
}

/// The sizes that the specification assumes if none were agreed on: 1 byte, 4 KiB and 32 MiB.
impl Default for BlockSizes {
    fn default() -> Self {
        Self { minimum: 1, preferred: 4096, maximum: 32 << 20 }
    }
}

/// An export, as it is described to clients.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExportInfo {
    /// The name under which it is listed; UTF-8 without NUL, at most [`MAX_STRING`](crate::wire::MAX_STRING)
    /// bytes.
    pub name: String,
    /// A text for people; empty if there is none.
    pub description: String,
    /// In bytes.
    pub size: u64,
    /// Whether requests that would change it are refused.
    pub read_only: bool,
    /// Whether the device can tell at once if it makes zeroes faster than it writes
    /// (`NBD_FLAG_SEND_FAST_ZERO`).
    pub fast_zero: bool,
    /// Whether a flush on one connection covers the writes that were answered on all others
    /// (`NBD_FLAG_CAN_MULTI_CONN`).
    pub multi_conn: bool,
    /// The sizes that requests should and must keep to.
    pub block: BlockSizes,
}

impl ExportInfo {
    /// The transmission flags: what a client may ask of the export, given whether structured replies were
    /// negotiated before.
    pub const fn transmission_flags(&self, structured_replies: bool) -> u16 {
        let mut flags = flag::HAS_FLAGS | flag::SEND_FLUSH | flag::SEND_FUA | flag::SEND_CACHE;
        if self.read_only {
            flags |= flag::READ_ONLY;
        } else {
            flags |= flag::SEND_TRIM | flag::SEND_WRITE_ZEROES;
            if self.fast_zero {
                flags |= flag::SEND_FAST_ZERO;
            }
        }
        if self.multi_conn {
            flags |= flag::CAN_MULTI_CONN;
        }
        if structured_replies {
            flags |= flag::SEND_DF;
        }
        flags
    }
}

/// The exports that exist at this moment. The driver implements this trait.
pub trait Exports {
    /// The names of all exports, in the order in which they are to be listed.
    fn names(&self) -> Vec<String>;

    /// The export that a client means by `name`; the empty name means the default export, if there is one.
    fn find(&self, name: &str) -> Option<ExportInfo>;
}

/// What a handshake agreed on. It decides how each request is judged and answered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Session {
    /// The export that the client chose.
    pub export: ExportInfo,
    /// Whether structured replies were negotiated. If so, reads must be answered with them.
    pub structured_replies: bool,
    /// Whether the client chose the metadata context `base:allocation` for this export. If not,
    /// `BLOCK_STATUS` is refused.
    pub base_allocation: bool,
}
