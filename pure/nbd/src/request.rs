//! Requests: 28 bytes in, a command that is safe to execute out.
//!
//! Requests are refused here, in one place, before they cost anything. So all code that gets a [`Command`]
//! may rely on its range being inside the export. A refused write still has its payload behind the header. So
//! the refusal says how many bytes to skip; otherwise the stream would be out of step.

use crate::wire::{self, REQUEST_LENGTH, command_flag as flag};
use crate::{BlockSizes, CloseReason, Command, CommandKind, NbdError, Session};

/// The longest payload whose length still fits into 32 bits with the offset that a data chunk puts before it.
const LONGEST_PAYLOAD: u32 = u32::MAX - 8;

/// What a request header turned out to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Parsed {
    /// Execute it and answer. For a write, `length` bytes of payload follow.
    Execute(Command),
    /// Skip `skip` bytes of payload, then answer with the error ([`push_error`](crate::push_error)).
    Refuse {
        /// The cookie of the request.
        cookie: u64,
        /// The error to answer with.
        error: NbdError,
        /// Bytes of payload that follow the header; above zero only for a write.
        skip: u32,
    },
    /// Close the connection: the stream is out of step.
    Close(CloseReason),
}

/// Judges the header of a request. Never allocates or panics, whatever the bytes are.
///
/// The specification leaves two answers open. A length of zero is refused with `EINVAL`, except for a flush
/// and a disconnect, because no later code has a use for it. A disconnect is obeyed, whatever its other
/// fields are.
pub fn parse_request(session: &Session, header: &[u8; REQUEST_LENGTH]) -> Parsed {
    let magic = u32::from_be_bytes(field(header, 0));
    if magic != wire::REQUEST_MAGIC {
        return Parsed::Close(CloseReason::BadRequestMagic(magic));
    }
    let request = Header::decode(header);
    match check(session, &request) {
        Ok(command) => Parsed::Execute(command),
        Err(error) => {
            let skip = if request.command == wire::command::WRITE { request.length } else { 0 };
            Parsed::Refuse { cookie: request.cookie, error, skip }
        }
    }
}

impl CommandKind {
    const fn from_wire(command: u16) -> Option<Self> {
        match command {
            wire::command::READ => Some(Self::Read),
            wire::command::WRITE => Some(Self::Write),
            wire::command::DISC => Some(Self::Disconnect),
            wire::command::FLUSH => Some(Self::Flush),
            wire::command::TRIM => Some(Self::Trim),
            wire::command::CACHE => Some(Self::Cache),
            wire::command::WRITE_ZEROES => Some(Self::WriteZeroes),
            wire::command::BLOCK_STATUS => Some(Self::BlockStatus),
            _ => None,
        }
    }

    const fn modifies(self) -> bool {
        matches!(self, Self::Write | Self::Trim | Self::WriteZeroes)
    }

    /// The flags that the specification allows on this command in `session`. FUA is allowed on every command:
    /// clients are known to set it where it means nothing.
    const fn allowed_flags(self, session: &Session) -> u16 {
        let own = match self {
            Self::Read if session.structured_replies => flag::DF,
            Self::WriteZeroes if session.export.fast_zero => flag::NO_HOLE | flag::FAST_ZERO,
            Self::WriteZeroes => flag::NO_HOLE,
            Self::BlockStatus => flag::REQ_ONE,
            _ => 0,
        };
        flag::FUA | own
    }
}

/// The fields of a request, unchecked.
struct Header {
    flags: u16,
    command: u16,
    cookie: u64,
    offset: u64,
    length: u32,
}

impl Header {
    fn decode(header: &[u8; REQUEST_LENGTH]) -> Self {
        Self {
            flags: u16::from_be_bytes(field(header, 4)),
            command: u16::from_be_bytes(field(header, 6)),
            cookie: u64::from_be_bytes(field(header, 8)),
            offset: u64::from_be_bytes(field(header, 16)),
            length: u32::from_be_bytes(field(header, 24)),
        }
    }
}

#[expect(clippy::indexing_slicing, reason = "every field that is asked for lies within the 28 bytes")]
fn field<const N: usize>(header: &[u8; REQUEST_LENGTH], at: usize) -> [u8; N] {
    std::array::from_fn(|i| header[at + i])
}

fn check(session: &Session, request: &Header) -> Result<Command, NbdError> {
    let kind = CommandKind::from_wire(request.command).ok_or(NbdError::Inval)?;
    if kind == CommandKind::Disconnect {
        return Ok(Command::new(kind, request.cookie, 0, 0));
    }
    if request.flags & !kind.allowed_flags(session) != 0 {
        return Err(NbdError::Inval);
    }
    if kind.modifies() && session.export.read_only {
        return Err(NbdError::Perm);
    }
    if kind == CommandKind::BlockStatus && !session.base_allocation {
        return Err(NbdError::Inval);
    }
    if kind == CommandKind::Flush {
        // Offset and length are reserved, "and MUST be set to all-zero".
        if request.offset != 0 || request.length != 0 {
            return Err(NbdError::Inval);
        }
    } else {
        check_range(session, kind, request.offset, request.length)?;
    }
    let has = |flag| request.flags & flag != 0;
    Ok(Command {
        cookie: request.cookie,
        kind,
        offset: request.offset,
        length: request.length,
        fua: has(flag::FUA) && kind.modifies(),
        no_hole: has(flag::NO_HOLE),
        fast_zero: has(flag::FAST_ZERO),
        dont_fragment: has(flag::DF),
        one_extent: has(flag::REQ_ONE),
    })
}

fn check_range(session: &Session, kind: CommandKind, offset: u64, length: u32) -> Result<(), NbdError> {
    let BlockSizes { minimum, maximum, .. } = session.export.block;
    if length == 0 || !offset.is_multiple_of(minimum.into()) || !length.is_multiple_of(minimum) {
        return Err(NbdError::Inval);
    }
    if length > maximum.min(LONGEST_PAYLOAD) {
        match kind {
            // `NBD_EOVERFLOW` is defined for reads with structured replies only, and for no write at all.
            CommandKind::Read if session.structured_replies => return Err(NbdError::Overflow),
            CommandKind::Read | CommandKind::Write => return Err(NbdError::Inval),
            // The maximum bounds payloads, and these commands have none.
            _ => {}
        }
    }
    let inside = offset.checked_add(length.into()).is_some_and(|end| end <= session.export.size);
    match kind {
        _ if inside => Ok(()),
        CommandKind::Write | CommandKind::WriteZeroes => Err(NbdError::NoSpc),
        _ => Err(NbdError::Inval),
    }
}

#[cfg(test)]
mod props;
#[cfg(test)]
mod tests;
