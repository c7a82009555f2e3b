//! Why a client did not get what it asked for.

use std::io;
use std::path::PathBuf;

use thiserror::Error;
use tonic::{Code, Status};
use weir_cluster::with_causes;

use crate::proto::Refusal;

/// Why a client did not get what it asked for.
#[derive(Debug, Error)]
pub enum ClientError {
    /// The coordinator's address cannot be read, or its certificate cannot be used.
    #[error("coordinator {address}: {why}; accepted: host:port")]
    Address {
        /// The address.
        address: String,
        /// What is wrong.
        why: String,
    },
    /// No coordinator answers.
    #[error("coordinator {place}: {why}; is weir transfers serve at work there?")]
    Unreachable {
        /// Its address or socket.
        place: String,
        /// What was found.
        why: String,
    },
    /// The coordinator refuses what makes no sense, now or later: the user can mend it.
    #[error("{0}")]
    Wrong(String),
    /// A transfer was refused or has ended.
    #[error("{why}")]
    Refused {
        /// The sort.
        refusal: Refusal,
        /// The coordinator's words.
        why: String,
    },
    /// A file of this machine.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// What is to be stored changed while it was read.
    #[error("{}: found other data than at the start; accepted: a file that nobody writes to meanwhile", .0.display())]
    Changed(PathBuf),
    /// What was read is not what was stored.
    #[error("{0}")]
    Corrupt(String),
}

impl ClientError {
    /// The error for an answer of the coordinator's.
    pub(super) fn of(place: &str, status: &Status) -> Self {
        match status.code() {
            Code::InvalidArgument | Code::NotFound | Code::FailedPrecondition | Code::PermissionDenied => {
                Self::Wrong(status.message().to_owned())
            }
            _ => Self::Unreachable {
                place: place.to_owned(),
                why: with_causes(status.message().to_owned(), status),
            },
        }
    }

    /// Whether the user asked for something that makes no sense, so that nothing was begun.
    pub const fn is_usage(&self) -> bool {
        matches!(
            self,
            Self::Address { .. }
                | Self::Wrong(_)
                | Self::Changed(_)
                | Self::Refused { refusal: Refusal::Wrong | Refusal::Exists, .. }
        )
    }
}
