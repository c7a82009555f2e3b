//! The addresses that a gateway listens on, and why it cannot listen on one.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use thiserror::Error;

/// An address that clients connect to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Address {
    /// TCP; for port 0 the system chooses a free port.
    Tcp(SocketAddr),
    /// A Unix stream socket.
    Unix(PathBuf),
}

/// Why an address cannot be listened on.
#[derive(Debug, Error)]
pub enum ListenError {
    /// Another server answers on the path.
    #[error("{0}: a live server listens on this socket; accepted: a path of its own for each server")]
    TakenByLiveServer(PathBuf),
    /// Another server is binding the path at this moment, or was stopped while it did.
    #[error("{0}: another process has held {0}.lock for 5 s; accepted: a path of its own for each server")]
    Locked(PathBuf),
    /// A file that is no socket has this path.
    #[error("{0}: exists and is not a socket; accepted: a free path, or a socket that a server left behind")]
    NotASocket(PathBuf),
    /// The system refused to bind the address.
    #[error("{address}: cannot listen: {source}; accepted: an address of this host that is free")]
    Refused {
        /// The address that was to be bound.
        address: Address,
        /// The error of the system.
        source: io::Error,
    },
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}
