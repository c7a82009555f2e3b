//! The error of a node: one sort that callers act on, and one line that people read.
//!
//! The drivers meet errors of four worlds: errno, HTTP, S3's codes and SFTP's. A caller only has to know
//! whether another node, another name or another attempt may help. So each driver maps to [`ErrorKind`].

use std::fmt;
use std::io;
use std::time::Duration;

use thiserror::Error;

use crate::passed::Passed;

/// The longest text of an error, in characters. A server writes a part of it.
const LONGEST: usize = 600;

/// How long a node may make no progress at all.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// How long a node may take to say that it is there.
pub(crate) const PROBE_PATIENCE: Duration = Duration::from_secs(5);

/// The slowest node whose piece of work is not given up: a quarter of a MiB/s.
const SLOWEST: u64 = 256 << 10;

/// Why a node could not do something.
///
/// The text says what was asked for, what was found and what would be accepted. It does not name the node,
/// because the caller knows it, and may have another name for it.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("{text}")]
pub struct NodeError {
    kind: ErrorKind,
    text: String,
}

/// The sorts of failure that a caller acts on differently.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ErrorKind {
    /// No object has this name.
    NotFound,
    /// The name is taken, or the id of a partial.
    Exists,
    /// No space is left, or none that this user may take.
    Full,
    /// The node does not let this user do it.
    Denied,
    /// The node does not answer.
    Unreachable,
    /// The node has made no progress for too long.
    Stalled,
    /// The partial is not there any more, or the protocol cannot go on with one: begin again.
    Gone,
    /// Anything else; the text says it.
    Other,
}

impl NodeError {
    /// An error whose text is `what: found FOUND; accepted: ACCEPTED`.
    pub(crate) fn new(
        kind: ErrorKind,
        what: impl fmt::Display,
        found: impl fmt::Display,
        accepted: impl fmt::Display,
    ) -> Self {
        Self::line(kind, &format!("{what}: found {found}; accepted: {accepted}"))
    }

    /// An error of the kernel, with its errno.
    pub(crate) fn io(what: impl fmt::Display, error: &io::Error) -> Self {
        Self::line(kind_of(error), &format!("{what}: {error}"))
    }

    /// No progress for [`PATIENCE`] or longer.
    pub(crate) fn stalled(what: impl fmt::Display) -> Self {
        Self::new(ErrorKind::Stalled, what, "no progress", "some progress every 30 seconds")
    }

    /// The name of an object is taken.
    pub(crate) fn taken(what: impl fmt::Display) -> Self {
        Self::new(ErrorKind::Exists, what, "something under this name", "a name that is not taken")
    }

    /// There is no object of this name.
    pub(crate) fn missing(what: impl fmt::Display) -> Self {
        Self::new(ErrorKind::NotFound, what, "nothing under this name", "the name of an object")
    }

    /// The partial to go on with is not there.
    pub(crate) fn gone(what: impl fmt::Display, found: impl fmt::Display) -> Self {
        Self::new(ErrorKind::Gone, what, found, "a partial that is still there, or a new one from the start")
    }

    /// A writer or reader was used again after it had failed.
    pub(crate) fn ended(what: impl fmt::Display) -> Self {
        Self::new(ErrorKind::Other, what, "an earlier failure", "a writer or reader that has not failed")
    }

    /// A read begins behind the end of what is there.
    pub(crate) fn beyond(what: impl fmt::Display, from: u64, size: u64) -> Self {
        Self::new(ErrorKind::Other, what, format_args!("byte {from}"), format_args!("at most {size}"))
    }

    /// An error with this text, in one bounded line without control characters.
    pub(crate) fn line(kind: ErrorKind, text: &str) -> Self {
        let text = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(LONGEST).collect();
        Self { kind, text }
    }

    /// The sort of failure.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

/// How long work on this many bytes may take, before the node counts as stalled.
pub(crate) fn patience(bytes: u64) -> Duration {
    PATIENCE + Duration::from_secs(bytes / SLOWEST)
}

/// What `work` comes to, unless it makes no progress for `limit`.
pub(crate) async fn within<T>(
    limit: Duration,
    what: impl fmt::Display,
    work: impl Future<Output = Result<T, NodeError>>,
) -> Result<T, NodeError> {
    tokio::time::timeout(limit, work).await.unwrap_or_else(|_| Err(NodeError::stalled(what)))
}

/// What `work` comes to, unless nothing leaves for the node for `limit`. However slow a node is that takes
/// something, it has not stalled: thirty transfers may share it.
pub(crate) async fn while_sending<T>(
    limit: Duration,
    sent: &Passed,
    what: impl fmt::Display,
    work: impl Future<Output = Result<T, NodeError>>,
) -> Result<T, NodeError> {
    let mut work = std::pin::pin!(work);
    loop {
        let before = sent.get();
        match tokio::time::timeout(limit, &mut work).await {
            Ok(done) => return done,
            Err(_) if sent.get() == before => return Err(NodeError::stalled(what)),
            Err(_) => {}
        }
    }
}

fn kind_of(error: &io::Error) -> ErrorKind {
    use rustix::io::Errno;
    match Errno::from_io_error(error) {
        Some(Errno::NOENT | Errno::NOTDIR) => ErrorKind::NotFound,
        Some(Errno::EXIST) => ErrorKind::Exists,
        Some(Errno::NOSPC | Errno::DQUOT | Errno::FBIG) => ErrorKind::Full,
        // A path that leads out of its root, or through a link in place of a directory.
        Some(Errno::XDEV | Errno::LOOP | Errno::ACCESS | Errno::PERM | Errno::ROFS) => ErrorKind::Denied,
        Some(Errno::STALE | Errno::HOSTDOWN | Errno::HOSTUNREACH | Errno::TIMEDOUT | Errno::NOTCONN) => {
            ErrorKind::Unreachable
        }
        _ => ErrorKind::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_node_that_takes_a_byte_now_and_then_has_not_stalled_and_one_that_takes_none_has() {
        let sent = Passed::default();
        let slow = async {
            let mut ticks = tokio::time::interval(PATIENCE * 2 / 3);
            for _ in 0..10 {
                ticks.tick().await;
                sent.add(1);
            }
            Ok(())
        };
        while_sending(PATIENCE, &sent, "object x", slow).await.expect("it makes progress");
        let dead = std::future::pending::<Result<(), NodeError>>();
        let error = while_sending(PATIENCE, &sent, "object x", dead).await.expect_err("nothing leaves");
        assert_eq!(error.kind(), ErrorKind::Stalled);
    }
}
