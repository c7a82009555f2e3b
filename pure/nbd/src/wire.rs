//! Every number of the protocol that weir speaks, under the name that the specification gives it.
//!
//! Source: `doc/proto.md` of the NetworkBlockDevice/nbd project, section "Values". A module stands for the
//! common prefix of the names there: `NBD_OPT_GO` is [`option::GO`]. They are plain integers and not enums: a
//! peer may send any integer, and an answer repeats it. All integers travel in network byte order.

/// First eight bytes of the greeting: `NBDMAGIC` in ASCII (`INIT_PASSWD`).
pub const NBD_MAGIC: u64 = 0x4e42_444d_4147_4943;
/// Second eight bytes of the greeting, and the start of each option: `IHAVEOPT` in ASCII.
pub const OPTION_MAGIC: u64 = 0x4948_4156_454f_5054;
/// Start of each reply to an option.
pub const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
/// Start of each request (`NBD_REQUEST_MAGIC`).
pub const REQUEST_MAGIC: u32 = 0x2560_9513;
/// Start of each simple reply (`NBD_SIMPLE_REPLY_MAGIC`).
pub const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;
/// Start of each chunk of a structured reply (`NBD_STRUCTURED_REPLY_MAGIC`).
pub const STRUCTURED_REPLY_MAGIC: u32 = 0x668e_33ef;

/// Bytes of the greeting: two magic numbers and the handshake flags.
pub const GREETING_LENGTH: usize = 18;
/// Bytes of an option before its data: magic, option, length.
pub const OPTION_HEADER_LENGTH: usize = 16;
/// Bytes of a reply to an option before its data: magic, option, type, length.
pub const OPTION_REPLY_HEADER_LENGTH: usize = 20;
/// Bytes of zeroes that end the reply to [`option::EXPORT_NAME`] unless [`client_flag::NO_ZEROES`] was set.
pub const EXPORT_NAME_ZEROES: usize = 124;
/// Bytes of a request before its payload: magic, command flags, command, cookie, offset, length.
pub const REQUEST_LENGTH: usize = 28;
/// Bytes of a simple reply before its payload: magic, error, cookie.
pub const SIMPLE_REPLY_LENGTH: usize = 16;
/// Bytes of a chunk of a structured reply before its payload: magic, flags, type, cookie, length.
pub const CHUNK_HEADER_LENGTH: usize = 20;
/// The longest string (an export's name, a message) that the protocol allows, in bytes.
pub const MAX_STRING: usize = 4096;

/// Flags of 16 bits in the server's greeting (`NBD_FLAG_*`, "Handshake flags").
pub mod handshake_flag {
    /// The server speaks fixed newstyle.
    pub const FIXED_NEWSTYLE: u16 = 1 << 0;
    /// The server can leave out the 124 zeroes.
    pub const NO_ZEROES: u16 = 1 << 1;
}

/// Flags of 32 bits in the client's answer to the greeting (`NBD_FLAG_C_*`).
pub mod client_flag {
    /// The client speaks fixed newstyle.
    pub const FIXED_NEWSTYLE: u32 = 1 << 0;
    /// The 124 zeroes are to be left out.
    pub const NO_ZEROES: u32 = 1 << 1;
}

/// Flags of 16 bits that describe an export (`NBD_FLAG_*`, "Transmission flags").
pub mod transmission_flag {
    /// Always set.
    pub const HAS_FLAGS: u16 = 1 << 0;
    /// Every write will be refused.
    pub const READ_ONLY: u16 = 1 << 1;
    /// FLUSH is understood.
    pub const SEND_FLUSH: u16 = 1 << 2;
    /// The flag FUA is understood.
    pub const SEND_FUA: u16 = 1 << 3;
    /// The medium rotates.
    pub const ROTATIONAL: u16 = 1 << 4;
    /// TRIM is understood.
    pub const SEND_TRIM: u16 = 1 << 5;
    /// `WRITE_ZEROES` and its flag `NO_HOLE` are understood.
    pub const SEND_WRITE_ZEROES: u16 = 1 << 6;
    /// The flag DF of READ is understood; only with structured replies.
    pub const SEND_DF: u16 = 1 << 7;
    /// A flush on one connection covers what was answered on all of them.
    pub const CAN_MULTI_CONN: u16 = 1 << 8;
    /// CACHE is understood.
    pub const SEND_CACHE: u16 = 1 << 10;
    /// The flag `FAST_ZERO` of `WRITE_ZEROES` is understood.
    pub const SEND_FAST_ZERO: u16 = 1 << 11;
}

/// Options that a client sends in the handshake (`NBD_OPT_*`).
pub mod option {
    /// Choose an export and start; cannot be answered with an error.
    pub const EXPORT_NAME: u32 = 1;
    /// End the session.
    pub const ABORT: u32 = 2;
    /// List the exports.
    pub const LIST: u32 = 3;
    /// Go on in TLS.
    pub const STARTTLS: u32 = 5;
    /// Describe an export.
    pub const INFO: u32 = 6;
    /// Describe an export, choose it and start.
    pub const GO: u32 = 7;
    /// Use structured replies.
    pub const STRUCTURED_REPLY: u32 = 8;
    /// List the metadata contexts of an export.
    pub const LIST_META_CONTEXT: u32 = 9;
    /// Choose the metadata contexts of an export.
    pub const SET_META_CONTEXT: u32 = 10;
}

/// Types of reply to an option (`NBD_REP_*`); bit 31 is set in those that are errors.
pub mod option_reply {
    /// Done.
    pub const ACK: u32 = 1;
    /// An entry of the list of exports.
    pub const SERVER: u32 = 2;
    /// One fact about an export; see [`info`](super::info).
    pub const INFO: u32 = 3;
    /// A metadata context.
    pub const META_CONTEXT: u32 = 4;
    /// Set in every type that is an error.
    pub const ERROR_BIT: u32 = 1 << 31;
    /// The option is not known.
    pub const ERR_UNSUP: u32 = ERROR_BIT | 1;
    /// The option is known and forbidden.
    pub const ERR_POLICY: u32 = ERROR_BIT | 2;
    /// The option's data make no sense, or it is not allowed now.
    pub const ERR_INVALID: u32 = ERROR_BIT | 3;
    /// The option cannot work on this platform.
    pub const ERR_PLATFORM: u32 = ERROR_BIT | 4;
    /// The server requires TLS first.
    pub const ERR_TLS_REQD: u32 = ERROR_BIT | 5;
    /// There is no such export.
    pub const ERR_UNKNOWN: u32 = ERROR_BIT | 6;
    /// The server is shutting down.
    pub const ERR_SHUTDOWN: u32 = ERROR_BIT | 7;
    /// The server requires clients that ask for the block sizes.
    pub const ERR_BLOCK_SIZE_REQD: u32 = ERROR_BIT | 8;
    /// The request or its reply is too large.
    pub const ERR_TOO_BIG: u32 = ERROR_BIT | 9;
}

/// Kinds of fact about an export (`NBD_INFO_*`).
pub mod info {
    /// Size and transmission flags.
    pub const EXPORT: u16 = 0;
    /// The name under which the server lists it.
    pub const NAME: u16 = 1;
    /// A text for people.
    pub const DESCRIPTION: u16 = 2;
    /// Minimum and preferred block size, maximum payload.
    pub const BLOCK_SIZE: u16 = 3;
}

/// Commands (`NBD_CMD_*`).
pub mod command {
    /// Read.
    pub const READ: u16 = 0;
    /// Write; the payload follows the header.
    pub const WRITE: u16 = 1;
    /// End the session; no reply.
    pub const DISC: u16 = 2;
    /// Make durable the writes that were answered.
    pub const FLUSH: u16 = 3;
    /// The range is of no value any more.
    pub const TRIM: u16 = 4;
    /// The range will be read soon.
    pub const CACHE: u16 = 5;
    /// The range shall read as zeroes.
    pub const WRITE_ZEROES: u16 = 6;
    /// Which parts of the range are allocated.
    pub const BLOCK_STATUS: u16 = 7;
}

/// Flags of a command (`NBD_CMD_FLAG_*`).
pub mod command_flag {
    /// Answer when it is durable; allowed on every command.
    pub const FUA: u16 = 1 << 0;
    /// `WRITE_ZEROES`: do not make a hole.
    pub const NO_HOLE: u16 = 1 << 1;
    /// READ: at most one chunk with content.
    pub const DF: u16 = 1 << 2;
    /// `BLOCK_STATUS`: one extent, no longer than the request.
    pub const REQ_ONE: u16 = 1 << 3;
    /// `WRITE_ZEROES`: fail at once if it is not faster than a write.
    pub const FAST_ZERO: u16 = 1 << 4;
}

/// Flags of a chunk of a structured reply (`NBD_REPLY_FLAG_*`).
pub mod chunk_flag {
    /// The last chunk of the reply.
    pub const DONE: u16 = 1 << 0;
}

/// Types of chunk of a structured reply (`NBD_REPLY_TYPE_*`); bit 15 is set in those that are errors.
pub mod chunk_type {
    /// Nothing; always the last.
    pub const NONE: u16 = 0;
    /// An offset and data.
    pub const OFFSET_DATA: u16 = 1;
    /// An offset and the length of a run of zeroes.
    pub const OFFSET_HOLE: u16 = 2;
    /// A metadata context and its extents.
    pub const BLOCK_STATUS: u16 = 5;
    /// Set in every type that is an error.
    pub const ERROR_BIT: u16 = 1 << 15;
    /// An error and a message.
    pub const ERROR: u16 = ERROR_BIT | 1;
    /// An error, a message and the offset at which it happened.
    pub const ERROR_OFFSET: u16 = ERROR_BIT | 2;
}

/// Errors in replies (`NBD_E*`).
pub mod error {
    /// Operation not permitted.
    pub const PERM: u32 = 1;
    /// Input/output error.
    pub const IO: u32 = 5;
    /// Cannot allocate memory.
    pub const NOMEM: u32 = 12;
    /// Invalid argument.
    pub const INVAL: u32 = 22;
    /// No space left on device.
    pub const NOSPC: u32 = 28;
    /// Value too large.
    pub const OVERFLOW: u32 = 75;
    /// Operation not supported.
    pub const NOTSUP: u32 = 95;
    /// The server is shutting down.
    pub const SHUTDOWN: u32 = 108;
}

/// Flags of an extent in the metadata context `base:allocation` (`NBD_STATE_*`).
pub mod state {
    /// Not allocated.
    pub const HOLE: u32 = 1 << 0;
    /// Reads as zeroes.
    pub const ZERO: u32 = 1 << 1;
}

/// The one metadata context that the specification itself defines.
pub const BASE_ALLOCATION: &str = "base:allocation";
