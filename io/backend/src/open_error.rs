//! Why a backend could not be opened, for the operator.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::ConnectError;

/// Why a backend could not be opened.
#[derive(Debug, Error)]
pub enum OpenError {
    /// The kernel refused.
    #[error("{}: cannot {what}: {source}", path.display())]
    Refused {
        /// The file.
        path: PathBuf,
        /// The operation that the server tried.
        what: &'static str,
        /// The kernel's reason.
        source: io::Error,
    },
    /// There is no such file, and no size to create it with.
    #[error("{}: does not exist; give a size, and it is created", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// Neither a regular file nor a block device.
    #[error("{}: is a {found}; a regular file or a block device is accepted", path.display())]
    WrongType {
        /// The file.
        path: PathBuf,
        /// The type of the file.
        found: &'static str,
    },
    /// Another volume, server or mount uses the file.
    #[error(
        "{}: is in use: locked by another volume or server, or a device that is mounted; \
         each file can be served by one only",
        path.display()
    )]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// The file is larger than the size asked for. If it were cut off, data would be lost.
    #[error(
        "{}: has {found} bytes, more than the size of {size} bytes; \
         accepted is a size of at least {found} bytes, or none",
        path.display()
    )]
    FileLarger {
        /// The file.
        path: PathBuf,
        /// Its size in bytes.
        found: u64,
        /// The size asked for, in bytes.
        size: u64,
    },
    /// The block device is smaller than the size asked for.
    #[error(
        "{}: has {found} bytes, fewer than the size of {size} bytes; \
         accepted is a size of at most {found} bytes, or none",
        path.display()
    )]
    DeviceSmaller {
        /// The device.
        path: PathBuf,
        /// Its size in bytes.
        found: u64,
        /// The size asked for, in bytes.
        size: u64,
    },
    /// There would be nothing to serve: the file is missing or empty, and no size above zero is given.
    #[error("{}: has no bytes to serve; a size above zero is needed", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// A backend without a size of its own needs one.
    #[error("a {backend} backend needs a size above zero")]
    SizeNeeded {
        /// The kind of backend.
        backend: &'static str,
    },
    /// The address space has no room for a device in memory.
    #[error("a {backend} backend of {size} bytes does not fit into the address space: {source}")]
    NoMemory {
        /// The kind of backend.
        backend: &'static str,
        /// The size asked for, in bytes.
        size: u64,
        /// The kernel's reason.
        source: io::Error,
    },
    /// The array stores less than the size asked for.
    #[error(
        "array {array} stores {capacity} bytes, fewer than the size of {size} bytes; accepted is a size of at most {capacity} bytes"
    )]
    ArraySmaller {
        /// The array's name.
        array: String,
        /// Its capacity in bytes.
        capacity: u64,
        /// The size asked for, in bytes.
        size: u64,
    },
    /// There is no connection to another server.
    #[error("{target}: {source}")]
    Upstream {
        /// The server's address and the export, as the operator wrote them.
        target: String,
        /// The reason.
        source: ConnectError,
    },
    /// The kernel refuses an io_uring.
    #[error("cannot set up an io_uring: {0}")]
    Ring(#[source] io::Error),
}
