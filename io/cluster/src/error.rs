//! Errors that an operator has to put right.

use std::error::Error;
use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Why a controller and a gateway cannot talk to each other.
#[derive(Debug, Error)]
pub enum ClusterError {
    /// A file of the TLS configuration cannot be read.
    #[error("{what} {}: {source}", path.display())]
    File {
        /// The role of the file: authority, certificate or key.
        what: &'static str,
        /// The file's path.
        path: PathBuf,
        /// The reason why it cannot be read.
        source: io::Error,
    },
    /// A file of the TLS configuration has another content than it should.
    #[error("{what} {}: found no {pem} in it; accepted: PEM", path.display())]
    Pem {
        /// The role of the file: authority, certificate or key.
        what: &'static str,
        /// The file's path.
        path: PathBuf,
        /// The part that is missing in the file.
        pem: &'static str,
    },
    /// The certificate, the key and the authority do not go together.
    #[error("certificate {}: {why}", certificate.display())]
    Tls {
        /// The certificate.
        certificate: PathBuf,
        /// The reason.
        why: String,
    },
    /// The controller's address cannot be read.
    #[error("controller {address}: {why}; accepted: a name or an address, a colon and a port")]
    Address {
        /// The address as it was given.
        address: String,
        /// The mistake in it.
        why: String,
    },
    /// The controller cannot listen on its socket.
    #[error("cannot listen: {0}")]
    Listen(#[from] io::Error),
}

/// An error and its causes in a line. tonic only says "transport error"; the reason is three causes further
/// down.
pub(crate) fn line(error: &dyn Error) -> String {
    with_causes(error.to_string(), error)
}

/// A line about an error, and what it does not say yet of the error's causes.
pub fn with_causes(mut line: String, error: &dyn Error) -> String {
    let mut cause = error.source();
    while let Some(error) = cause {
        let text = error.to_string();
        if !line.contains(&text) {
            line = format!("{line}: {text}");
        }
        cause = error.source();
    }
    line
}
