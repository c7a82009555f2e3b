//! Bytes to a partial, some requests ahead of their answers.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;

use super::Reader;
use super::session::{InFlight, Session, WINDOW, start};
use crate::error::{ErrorKind, NodeError};
use crate::name::Note;
use crate::passed::Passed;

/// Where a partial is, and what it becomes.
pub(super) struct Paths {
    /// The object, for messages.
    pub(super) what: String,
    pub(super) root: String,
    pub(super) partial: String,
    pub(super) object: String,
    /// The folders that the object lies in, the outermost first.
    pub(super) folders: Vec<String>,
}

/// A partial that is being written.
pub(crate) struct Writer {
    session: Arc<Session>,
    handle: String,
    paths: Paths,
    /// The next byte to send.
    position: u64,
    /// The bytes without a gap from the first that the server has acknowledged.
    offset: u64,
    sent: Passed,
    /// The bytes of each write behind these, in their order.
    in_flight: VecDeque<(u64, InFlight<()>)>,
    notes: Vec<Note>,
}

impl Writer {
    pub(super) fn new(
        session: Arc<Session>,
        handle: String,
        offset: u64,
        paths: Paths,
        notes: Vec<Note>,
    ) -> Self {
        let (sent, in_flight) = (Passed::new(offset), VecDeque::new());
        Self { session, handle, paths, position: offset, offset, sent, in_flight, notes }
    }

    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    pub(crate) fn sent(&self) -> Passed {
        self.sent.clone()
    }

    pub(crate) fn take_notes(&mut self) -> Vec<Note> {
        std::mem::take(&mut self.notes)
    }

    pub(crate) fn read_back(&self, from: u64) -> Result<Reader, NodeError> {
        Reader::new(self.paths.what.clone(), self.session.clone(), self.handle.clone(), from, self.offset)
    }

    pub(crate) async fn write(&mut self, mut data: Bytes) -> Result<(), NodeError> {
        let (longest, _) = self.session.lengths();
        while !data.is_empty() {
            while self.in_flight.len() >= WINDOW {
                self.acknowledge().await?;
            }
            let piece = data.split_to(usize::try_from(longest).unwrap_or(usize::MAX).min(data.len()));
            let (session, handle) = (self.session.clone(), self.handle.clone());
            let (what, at, length) = (self.paths.what.clone(), self.position, piece.len() as u64);
            let request = async move { session.write(&what, &handle, at, piece.into()).await };
            self.in_flight.push_back((length, start(Box::pin(request)).await));
            self.position += length;
        }
        Ok(())
    }

    pub(crate) async fn finish(mut self) -> Result<(), NodeError> {
        while !self.in_flight.is_empty() {
            self.acknowledge().await?;
        }
        let (session, what) = (&self.session, &self.paths.what);
        session.sync(what, &self.handle).await?;
        let size = session.size(what, &self.handle).await?;
        if size != self.offset {
            let found = format!("{size} bytes in the partial");
            return Err(NodeError::new(ErrorKind::Other, what, found, self.offset));
        }
        session.close(what, &self.handle).await?;
        self.publish().await
    }

    /// Waits for the answer to the first write in flight.
    async fn acknowledge(&mut self) -> Result<(), NodeError> {
        let Some((length, answer)) = self.in_flight.pop_front() else { return Ok(()) };
        match answer.await {
            Ok(()) => {
                self.offset += length;
                self.sent.add(length);
                Ok(())
            }
            Err(error) => Err(self.session.why(error, &self.paths.root).await),
        }
    }

    /// Gives the partial its name, if nothing has it.
    async fn publish(&mut self) -> Result<(), NodeError> {
        let (session, what, object) = (&self.session, &self.paths.what, &self.paths.object);
        for folder in &self.paths.folders {
            match session.stat(what, folder).await? {
                Some(found) if found.is_dir() => {}
                Some(_) => return Err(NodeError::taken(what)),
                None => session.make(what, folder).await?,
            }
        }
        if session.stat(what, object).await?.is_some() {
            return Err(NodeError::taken(what));
        }
        if let Err(error) = session.rename(what, &self.paths.partial, object).await {
            let is_taken = error.kind() == ErrorKind::Other && session.stat(what, object).await?.is_some();
            return Err(if is_taken { NodeError::taken(what) } else { error });
        }
        // A new name is durable with its folder, and a new folder with the one above it.
        session.sync_folder(&self.paths.root).await;
        for folder in &self.paths.folders {
            session.sync_folder(folder).await;
        }
        Ok(())
    }
}
