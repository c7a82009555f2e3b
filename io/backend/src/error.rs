//! The error of a request, for the code that maps it to a protocol's errors.

use std::fmt;

use rustix::io::Errno;
use thiserror::Error;
use weir_model::IoKind;

/// A request that a device failed to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub struct BlockError {
    /// The sort of failure.
    pub kind: BlockErrorKind,
    /// The kind of the request.
    pub op: IoKind,
    /// The request's first byte.
    pub offset: u64,
    /// The request's number of bytes.
    pub length: u32,
    /// The kernel's own number.
    pub errno: Errno,
}

/// The sorts of failure that protocols tell apart.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum BlockErrorKind {
    /// The medium or the way to it failed.
    Io,
    /// No space is left, or none that the server's user may take.
    NoSpace,
    /// The device does not support the request.
    NotSupported,
    /// Not allowed: read-only or sealed.
    Permission,
    /// The kernel is short of memory.
    NoMemory,
    /// The request makes no sense for this device: it lies outside of it.
    Invalid,
}

impl BlockError {
    /// The failure of `op` on `length` bytes at `offset`.
    pub(crate) fn new(op: IoKind, offset: u64, length: u32, errno: Errno) -> Self {
        Self { kind: BlockErrorKind::of(errno), op, offset, length, errno }
    }
}

impl BlockErrorKind {
    fn of(errno: Errno) -> Self {
        match errno {
            Errno::NOSPC | Errno::DQUOT | Errno::FBIG => Self::NoSpace,
            Errno::OPNOTSUPP | Errno::NOSYS => Self::NotSupported,
            Errno::PERM | Errno::ACCESS | Errno::ROFS => Self::Permission,
            Errno::NOMEM => Self::NoMemory,
            Errno::INVAL => Self::Invalid,
            _ => Self::Io,
        }
    }
}

/// Formats the error as in `write of 4096 bytes at 8192: No space left on device (os error 28)`.
impl fmt::Display for BlockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.op {
            IoKind::Flush => write!(f, "flush: {}", self.errno),
            op => write!(f, "{} of {} bytes at {}: {}", op.name(), self.length, self.offset, self.errno),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_what_where_and_why() {
        let error = BlockError::new(IoKind::Write, 8192, 4096, Errno::NOSPC);
        assert_eq!(error.kind, BlockErrorKind::NoSpace);
        assert_eq!(error.to_string(), "write of 4096 bytes at 8192: No space left on device (os error 28)");
        let error = BlockError::new(IoKind::Flush, 0, 0, Errno::IO);
        assert_eq!(error.to_string(), "flush: Input/output error (os error 5)");
    }
}
