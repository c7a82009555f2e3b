//! The addresses that a gateway listens on, and why it cannot listen on one.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use thiserror::Error;

/// Where clients connect to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Address {
    /// TCP; port 0 takes a free one.
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
    /// Another server is about to take the path, or was stopped while it was.
    #[error("{0}: another process has held {0}.lock for 5 s; accepted: a path of its own for each server")]
    Locked(PathBuf),
    /// Something that is no socket is in the way.
    #[error("{0}: exists and is not a socket; accepted: a free path, or a socket that a server left behind")]
    NotASocket(PathBuf),
    /// The system refused.
    #[error("{address}: cannot listen: {source}; accepted: an address of this host that is free")]
    Refused {
        /// The address asked for.
        address: Address,
        /// What the system said.
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
