//! What can go wrong with a peer: errors in replies, and reasons to close the connection.

use thiserror::Error;

use crate::Command;
use crate::wire;

/// An error in a reply (specification, "Error values"). The protocol has no others, so a device's error
/// becomes one of these by [`NbdError::from_errno`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum NbdError {
    /// `NBD_EPERM`: also a write to a read-only export.
    #[error("operation not permitted")]
    Perm,
    /// `NBD_EIO`.
    #[error("input/output error")]
    Io,
    /// `NBD_ENOMEM`.
    #[error("cannot allocate memory")]
    NoMem,
    /// `NBD_EINVAL`.
    #[error("invalid argument")]
    Inval,
    /// `NBD_ENOSPC`: also a write beyond the end.
    #[error("no space left on device")]
    NoSpc,
    /// `NBD_EOVERFLOW`: a structured read that is too long.
    #[error("value too large")]
    Overflow,
    /// `NBD_ENOTSUP`: only for a fast zero request that would not be fast.
    #[error("operation not supported")]
    NotSup,
    /// `NBD_ESHUTDOWN`.
    #[error("server is shutting down")]
    Shutdown,
}

impl NbdError {
    /// The number that is sent.
    pub const fn code(self) -> u32 {
        match self {
            Self::Perm => wire::error::PERM,
            Self::Io => wire::error::IO,
            Self::NoMem => wire::error::NOMEM,
            Self::Inval => wire::error::INVAL,
            Self::NoSpc => wire::error::NOSPC,
            Self::Overflow => wire::error::OVERFLOW,
            Self::NotSup => wire::error::NOTSUP,
            Self::Shutdown => wire::error::SHUTDOWN,
        }
    }

    /// The answer to `command` if its device failed with the Linux error number `errno`.
    ///
    /// The numbers on the wire look like errno but are fewer. The specification reserves `NBD_ENOTSUP` for
    /// fast zero requests, and `NBD_EOVERFLOW` for requests that ask for too much, so a device's error never
    /// becomes `NBD_EOVERFLOW`. An errno without a counterpart becomes an I/O error: a client then retries,
    /// or gives the device up, and does not look for a fault in its request.
    pub const fn from_errno(errno: i32, command: &Command) -> Self {
        match errno {
            linux::EPERM | linux::EACCES | linux::EROFS => Self::Perm,
            linux::ENOMEM => Self::NoMem,
            linux::EINVAL => Self::Inval,
            linux::EFBIG | linux::ENOSPC | linux::EDQUOT => Self::NoSpc,
            linux::EOPNOTSUPP if command.fast_zero => Self::NotSup,
            linux::EOPNOTSUPP => Self::Inval,
            _ => Self::Io,
        }
    }
}

/// Why the connection must be closed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum CloseReason {
    /// The client ended the handshake by itself (`NBD_OPT_ABORT`); the output still has the answer to that.
    #[error("the client ended the handshake")]
    Aborted,
    /// The client's answer to the greeting has flags that were not offered.
    #[error("unknown client flags {0:#x}")]
    UnknownClientFlags(u32),
    /// An option did not start with its magic number: the stream is out of step, or the peer does not speak
    /// NBD.
    #[error("bad option magic {0:#x}")]
    BadOptionMagic(u64),
    /// More options than [`HandshakeLimits::max_options`](crate::HandshakeLimits::max_options).
    #[error("too many options")]
    TooManyOptions,
    /// An option with more data than are skipped, or `NBD_OPT_EXPORT_NAME` with more data than are stored.
    #[error("option {option} has {length} bytes of data")]
    OptionTooLong {
        /// The option.
        option: u32,
        /// How many bytes of data it announced.
        length: u32,
    },
    /// An option other than `NBD_OPT_EXPORT_NAME` from a client that does not speak fixed newstyle. The
    /// protocol has no answer to it.
    #[error("option {0} without fixed newstyle")]
    NotFixedNewstyle(u32),
    /// `NBD_OPT_EXPORT_NAME` named an export that does not exist. The protocol has no error answer to that
    /// option.
    #[error("unknown export in NBD_OPT_EXPORT_NAME")]
    UnknownExport,
    /// A request did not start with its magic number: the stream is out of step.
    #[error("bad request magic {0:#x}")]
    BadRequestMagic(u32),
}

/// The error numbers of Linux that have a counterpart in the protocol. They are the same on every
/// architecture that Rust has a standard library for, except `EOPNOTSUPP` and `EDQUOT` on MIPS and SPARC.
mod linux {
    pub(super) const EPERM: i32 = 1;
    pub(super) const ENOMEM: i32 = 12;
    pub(super) const EACCES: i32 = 13;
    pub(super) const EINVAL: i32 = 22;
    pub(super) const EFBIG: i32 = 27;
    pub(super) const ENOSPC: i32 = 28;
    pub(super) const EROFS: i32 = 30;
    pub(super) const EOPNOTSUPP: i32 = 95;
    pub(super) const EDQUOT: i32 = 122;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CommandKind;

    fn command(kind: CommandKind, fast_zero: bool) -> Command {
        Command { fast_zero, ..Command::new(kind, 1, 0, 512) }
    }

    #[test]
    fn quota_and_file_size_limits_are_no_space() {
        for errno in [linux::ENOSPC, linux::EDQUOT, linux::EFBIG] {
            let error = NbdError::from_errno(errno, &command(CommandKind::Write, false));
            assert_eq!(error, NbdError::NoSpc);
        }
    }

    #[test]
    fn not_supported_is_told_only_to_a_fast_zero_request() {
        let fast = command(CommandKind::WriteZeroes, true);
        let slow = command(CommandKind::WriteZeroes, false);
        assert_eq!(NbdError::from_errno(linux::EOPNOTSUPP, &fast), NbdError::NotSup);
        assert_eq!(NbdError::from_errno(linux::EOPNOTSUPP, &slow), NbdError::Inval);
    }

    #[test]
    fn an_errno_without_a_counterpart_is_an_io_error() {
        for errno in [5, 61, 75, 110, 9999, -1, 0] {
            assert_eq!(NbdError::from_errno(errno, &command(CommandKind::Read, false)), NbdError::Io);
        }
    }
}
