//! Bytes from a file, some requests ahead of the caller.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;

use super::session::{InFlight, Session, WINDOW, start};
use crate::error::{ErrorKind, NodeError};

/// A file that is being fetched.
pub(crate) struct Reader {
    what: String,
    session: Arc<Session>,
    handle: String,
    size: u64,
    /// The first byte that no request in flight asks for.
    asked: u64,
    in_flight: VecDeque<InFlight<Bytes>>,
}

impl Reader {
    pub(super) fn new(
        what: String,
        session: Arc<Session>,
        handle: String,
        from: u64,
        size: u64,
    ) -> Result<Self, NodeError> {
        if from > size {
            return Err(NodeError::beyond(what, from, size));
        }
        Ok(Self { what, session, handle, size, asked: from, in_flight: VecDeque::new() })
    }

    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, NodeError> {
        let (_, longest) = self.session.lengths();
        while self.in_flight.len() < WINDOW && self.asked < self.size {
            let length = longest.min(self.size - self.asked);
            let (session, handle, what) = (self.session.clone(), self.handle.clone(), self.what.clone());
            let request = fetch(session, handle, what, self.asked, length);
            self.in_flight.push_back(start(Box::pin(request)).await);
            self.asked += length;
        }
        match self.in_flight.pop_front() {
            Some(piece) => piece.await.map(Some),
            None => Ok(None),
        }
    }
}

/// Exactly `length` bytes from `at`. A server may send fewer at a time.
async fn fetch(
    session: Arc<Session>,
    handle: String,
    what: String,
    at: u64,
    length: u64,
) -> Result<Bytes, NodeError> {
    let mut piece = Vec::new();
    while (piece.len() as u64) < length {
        let (next, rest) = (at + piece.len() as u64, length - piece.len() as u64);
        let rest = u32::try_from(rest).unwrap_or(u32::MAX);
        let more = session.read(&what, &handle, next, rest).await?;
        if more.is_empty() || more.len() > rest as usize {
            let found = format!("{} bytes at {next}", more.len());
            return Err(NodeError::new(ErrorKind::Other, what, found, format!("1 to {rest}")));
        }
        if piece.is_empty() { piece = more } else { piece.extend(more) }
    }
    Ok(piece.into())
}
