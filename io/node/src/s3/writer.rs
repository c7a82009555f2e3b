//! An upload in parts, some of them in flight at a time.
//!
//! An object that fits into one part is sent in one request at the end. The server refuses that request if
//! the name is taken (`If-None-Match`).

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use object_store::multipart::{MultipartStore, PartId};
use object_store::path::Path;
use object_store::{ObjectStore, PutMode, PutPayload};
use tokio_util::task::AbortOnDropHandle;

use super::Bucket;
use super::client::counted;
use super::failure::of;
use super::plan::{in_flight, part_size};
use super::tags::Tags;
use crate::error::{ErrorKind, NodeError, PATIENCE, patience, while_sending, within};
use crate::name::Note;
use crate::passed::Passed;

/// The most bytes of an upload's id that are kept.
const LONGEST_ID: usize = 1_200;

/// A part that is being sent.
struct InFlight {
    bytes: u64,
    sent: AbortOnDropHandle<Result<PartId, NodeError>>,
}

/// An object that is being sent.
pub(crate) struct Writer {
    bucket: Arc<Bucket>,
    what: String,
    path: Path,
    bytes: Option<u64>,
    /// The upload's id; `None` until the first part is full.
    upload: Option<String>,
    /// The finished parts, without a gap from the first.
    parts: Vec<PartId>,
    /// The bytes of those that were there before, in the same order.
    kept: Vec<u64>,
    /// The bytes of the finished parts.
    offset: u64,
    sent: Passed,
    /// The parts behind the finished ones, in their order.
    in_flight: VecDeque<InFlight>,
    /// The next part.
    filling: Vec<Bytes>,
    filled: u64,
    notes: Vec<Note>,
}

/// The upload's id and the object's key, if this is a writer's first note.
pub(super) fn upload_of(note: &Note) -> Option<(&str, &str)> {
    note.as_str().strip_prefix("upload ")?.split_once(' ')
}

/// The bytes and the tag of a part, if this is one of a writer's later notes.
fn part_of(note: &Note) -> Option<(u64, PartId)> {
    let (bytes, tag) = note.as_str().strip_prefix("part ")?.split_once(' ')?;
    Some((bytes.parse().ok()?, PartId { content_id: tag.to_owned() }))
}

impl Writer {
    pub(super) fn begin(bucket: Arc<Bucket>, what: String, path: Path, bytes: Option<u64>) -> Self {
        let (upload, parts, in_flight) = (None, Vec::new(), VecDeque::new());
        let (sent, filling, notes) = (Passed::default(), Vec::new(), Vec::new());
        let kept = Vec::new();
        Self {
            bucket,
            what,
            path,
            bytes,
            upload,
            parts,
            kept,
            offset: 0,
            sent,
            in_flight,
            filling,
            filled: 0,
            notes,
        }
    }

    /// The writer behind the parts that the notes name.
    pub(super) fn resume(
        bucket: Arc<Bucket>,
        what: String,
        path: Path,
        notes: &[Note],
        bytes: Option<u64>,
    ) -> Result<Self, NodeError> {
        let upload = notes.first().and_then(upload_of).filter(|(_, key)| *key == path.as_ref());
        let (id, _) = upload.ok_or_else(|| NodeError::gone(&what, "no note of an upload"))?;
        let mut writer = Self::begin(bucket, what, path, bytes);
        writer.upload = Some(id.to_owned());
        for note in notes.iter().skip(1) {
            let part = part_of(note).filter(|(bytes, _)| writer.offset.checked_add(*bytes).is_some());
            let (bytes, part) = part.ok_or_else(|| NodeError::gone(&writer.what, "another note"))?;
            writer.offset += bytes;
            writer.parts.push(part);
            writer.kept.push(bytes);
        }
        writer.sent.set(writer.offset);
        Ok(writer)
    }

    /// The tags of the parts that were there before.
    pub(crate) fn tags(&self) -> Tags {
        let tags = self.parts.iter().map(|part| part.content_id.as_str());
        Tags::new(self.kept.iter().copied().zip(tags))
    }

    /// The upload's id, empty if there is none yet.
    pub(super) fn upload(&self) -> &str {
        self.upload.as_deref().unwrap_or_default()
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

    pub(crate) async fn write(&mut self, mut data: Bytes) -> Result<(), NodeError> {
        // A part becomes a note as soon as possible, so that little is lost if this process ends.
        while self.in_flight.front().is_some_and(|part| part.sent.is_finished()) {
            self.finish_part().await?;
        }
        while !data.is_empty() {
            let size = part_size(self.parts.len() + self.in_flight.len(), self.bytes);
            if self.filled == size {
                // Only now is it known that this part is not the last.
                self.send_part(size).await?;
                continue;
            }
            let fits = usize::try_from(size - self.filled).unwrap_or(usize::MAX).min(data.len());
            self.filled += fits as u64;
            self.filling.push(data.split_to(fits));
        }
        Ok(())
    }

    /// Sends what has been filled, when there is room for it in flight.
    async fn send_part(&mut self, size: u64) -> Result<(), NodeError> {
        let upload = self.begin_upload().await?;
        while self.in_flight.len() >= in_flight(size) {
            self.finish_part().await?;
        }
        let index = self.parts.len() + self.in_flight.len();
        let (bytes, payload) = self.take_filled();
        let (bucket, path, what) = (self.bucket.clone(), self.path.clone(), self.what.clone());
        let (all, progress) = (self.sent.clone(), self.sent.clone());
        let send = async move {
            let put = counted(all, bucket.store.put_part(&path, &upload, index, payload));
            let sent = async { put.await.map_err(|error| of(&what, &error)) };
            while_sending(patience(bytes), &progress, &what, sent).await
        };
        self.in_flight.push_back(InFlight { bytes, sent: AbortOnDropHandle::new(tokio::spawn(send)) });
        Ok(())
    }

    /// Waits for the first part in flight.
    async fn finish_part(&mut self) -> Result<(), NodeError> {
        let Some(part) = self.in_flight.pop_front() else { return Ok(()) };
        let sent = part.sent.await.unwrap_or_else(|_| Err(NodeError::ended(&self.what)));
        let note = sent.and_then(|sent| {
            let note = format!("part {} {}", part.bytes, sent.content_id).parse();
            note.map(|note| (note, sent)).map_err(|error| self.odd(&error))
        });
        let (note, sent) = note?;
        self.notes.push(note);
        self.parts.push(sent);
        self.offset += part.bytes;
        Ok(())
    }

    /// The id of the upload, which begins here unless it has begun.
    async fn begin_upload(&mut self) -> Result<String, NodeError> {
        if let Some(upload) = &self.upload {
            return Ok(upload.clone());
        }
        let created = async {
            self.bucket.store.create_multipart(&self.path).await.map_err(|error| of(&self.what, &error))
        };
        let id = within(PATIENCE, &self.what, created).await?;
        if id.is_empty() || id.len() > LONGEST_ID || id.contains(' ') {
            let found = format!("an upload id of {} bytes", id.len());
            return Err(NodeError::new(ErrorKind::Other, &self.what, found, "1 to 1200, without a space"));
        }
        let note = format!("upload {id} {}", self.path).parse().map_err(|error| self.odd(&error))?;
        self.notes.push(note);
        self.upload = Some(id.clone());
        Ok(id)
    }

    pub(crate) async fn finish(mut self) -> Result<(), NodeError> {
        if self.upload.is_none() {
            return self.put().await;
        }
        if self.filled > 0 {
            self.send_part(self.filled).await?;
        }
        while !self.in_flight.is_empty() {
            self.finish_part().await?;
        }
        // Two writers that complete at the same moment may both find the name free, and the later one then
        // replaces the object of the first. S3 can refuse that (`If-None-Match`), but the library does not
        // ask for it when it completes an upload.
        match self.bucket.head(&self.what, &self.path).await {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
            Ok(_) => return Err(NodeError::taken(&self.what)),
        }
        let (store, upload) = (&self.bucket.store, self.upload().to_owned());
        let parts = std::mem::take(&mut self.parts);
        let completed = async {
            store.complete_multipart(&self.path, &upload, parts).await.map_err(|error| of(&self.what, &error))
        };
        // A server may put the parts together before it answers.
        within(patience(self.offset.min(16 << 30)), &self.what, completed).await.map(drop)
    }

    /// Sends an object of one part.
    async fn put(mut self) -> Result<(), NodeError> {
        let (bytes, payload) = self.take_filled();
        let put = async {
            let put = self.bucket.store.put_opts(&self.path, payload, PutMode::Create.into());
            counted(self.sent.clone(), put).await.map_err(|error| match error {
                object_store::Error::AlreadyExists { .. } => NodeError::taken(&self.what),
                error => of(&self.what, &error),
            })
        };
        while_sending(patience(bytes), &self.sent, &self.what, put).await.map(drop)
    }

    fn take_filled(&mut self) -> (u64, PutPayload) {
        (std::mem::take(&mut self.filled), std::mem::take(&mut self.filling).into_iter().collect())
    }

    /// The server has sent an id or a tag that cannot be noted.
    fn odd(&self, error: &crate::name::NameError) -> NodeError {
        NodeError::line(ErrorKind::Other, &format!("{}: {error}", self.what))
    }
}
