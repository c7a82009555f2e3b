//! A client's request, once it was checked.

use weir_model::IoKind;

/// A request that was checked. `offset + length` lies inside the export.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Command {
    /// The client's name for the request, repeated in each reply to it.
    pub cookie: u64,
    /// What to do.
    pub kind: CommandKind,
    /// First byte; zero for a flush and a disconnect.
    pub offset: u64,
    /// Number of bytes: zero for a flush and a disconnect, above zero for all others.
    pub length: u32,
    /// Whether to answer only when the change is durable; never set on a command that changes nothing.
    pub fua: bool,
    /// Whether zeroes must be written, and no hole be made; only for `WriteZeroes`.
    pub no_hole: bool,
    /// Whether to fail with [`NbdError::NotSup`](crate::NbdError::NotSup) if making zeroes is not faster than
    /// a write; only for `WriteZeroes`.
    pub fast_zero: bool,
    /// Whether the reply must have at most one chunk with content; only for `Read`.
    pub dont_fragment: bool,
    /// Whether the reply must have one extent only; only for `BlockStatus`.
    pub one_extent: bool,
}

/// What a request does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CommandKind {
    /// Read.
    Read,
    /// Write; the payload of `length` bytes follows the header.
    Write,
    /// Make durable the writes that were answered.
    Flush,
    /// The range is of no value any more.
    Trim,
    /// The range shall read as zeroes.
    WriteZeroes,
    /// The range will be read soon.
    Cache,
    /// Which parts of the range are allocated.
    BlockStatus,
    /// The client leaves: finish what is in flight, then close. There is no reply.
    Disconnect,
}

impl Command {
    /// A command without any flag.
    pub const fn new(kind: CommandKind, cookie: u64, offset: u64, length: u32) -> Self {
        Self {
            cookie,
            kind,
            offset,
            length,
            fua: false,
            no_hole: false,
            fast_zero: false,
            dont_fragment: false,
            one_extent: false,
        }
    }
}

impl CommandKind {
    /// The kind of the engine's request for this command; `None` for a disconnect, which never gets to the
    /// engine.
    pub const fn io_kind(self) -> Option<IoKind> {
        match self {
            Self::Read => Some(IoKind::Read),
            Self::Write => Some(IoKind::Write),
            Self::Flush => Some(IoKind::Flush),
            Self::Trim => Some(IoKind::Trim),
            Self::WriteZeroes => Some(IoKind::WriteZeroes),
            Self::Cache => Some(IoKind::Cache),
            Self::BlockStatus => Some(IoKind::BlockStatus),
            Self::Disconnect => None,
        }
    }
}
