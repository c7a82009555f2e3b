//! Why a load could not be run. Each message is one line: the place, the value found, and the values
//! accepted.

use std::io;

use thiserror::Error;
use weir_nbd::client::{HandshakeError, ReplyError};

use crate::SpecError;

/// Why there is no report.
#[derive(Debug, Error)]
pub enum LoadError {
    /// A value of the spec makes no sense.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// No server listens there, or the system refused the connection.
    #[error("{target}: cannot connect: {source}")]
    Connect {
        /// The URI.
        target: String,
        /// The system's error.
        source: io::Error,
    },
    /// The server answers, but refuses a session.
    #[error("{target}: {source}")]
    Handshake {
        /// The URI.
        target: String,
        /// The reason.
        source: HandshakeError,
    },
    /// The server accepted the connection and does not answer.
    #[error("{target}: the server did not finish the handshake within {seconds} s; is it an NBD server?")]
    Silent {
        /// The URI.
        target: String,
        /// How long the generator waited.
        seconds: u64,
    },
    /// The export cannot take this load.
    #[error("{target}: {field} is {found}; the export accepts {accepted}")]
    Export {
        /// The URI.
        target: String,
        /// The field of [`LoadSpec`](crate::LoadSpec).
        field: &'static str,
        /// Its value.
        found: String,
        /// The values that the export accepts.
        accepted: String,
    },
    /// The export cannot take a recorded request.
    #[error(
        "{target}: request {number} of the replay is {length} bytes at {offset}; the export accepts {accepted}"
    )]
    Request {
        /// The URI.
        target: String,
        /// The number of the request, from one.
        number: u64,
        /// Its first byte.
        offset: u64,
        /// Its number of bytes.
        length: u32,
        /// The lengths and offsets that the export accepts.
        accepted: String,
    },
    /// The server closed the connection in the middle of the load.
    #[error(
        "{target}: the server closed the connection with {outstanding} requests outstanding, after {replies} replies"
    )]
    Closed {
        /// The URI.
        target: String,
        /// Requests on that connection that were not answered.
        outstanding: usize,
        /// Requests on that connection that were answered.
        replies: u64,
    },
    /// The server violated the protocol.
    #[error("{target}: {source}")]
    Protocol {
        /// The URI.
        target: String,
        /// The violation.
        source: ReplyError,
    },
    /// The connection broke.
    #[error("{target}: {source}, with {outstanding} requests outstanding, after {replies} replies")]
    Broken {
        /// The URI.
        target: String,
        /// The system's error.
        source: io::Error,
        /// Requests on that connection that were not answered.
        outstanding: usize,
        /// Requests on that connection that were answered.
        replies: u64,
    },
    /// The caller cancelled the load before it began.
    #[error("cancelled before the load began")]
    Cancelled,
    /// This machine has no timer left.
    #[error("cannot make a timer: {0}")]
    Timer(#[source] io::Error),
}
