//! An upload: one `PUT` whose body is a stream, and a task that waits for its answer.

use bytes::Bytes;
use reqwest::Body;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::task::AbortOnDropHandle;

use super::{Collection, Piece};
use crate::error::{ErrorKind, NodeError, PATIENCE, patience, while_sending};
use crate::http::refused;
use crate::name::{Note, ObjectName, PartialId};
use crate::passed::{Counted, Passed};

/// How many pieces may wait for the connection.
const AHEAD: usize = 4;

/// The most bytes that a server is taken to keep in memory before it answers.
const CACHED: u64 = 1 << 30;

/// A partial that is being sent. The request ends when the writer is dropped, in the middle of its body.
pub(crate) struct Writer {
    what: String,
    collection: Collection,
    name: ObjectName,
    id: PartialId,
    pieces: mpsc::Sender<Piece>,
    /// What the server says to the `PUT`; `None` once it is known.
    answer: Option<AbortOnDropHandle<Result<(), NodeError>>>,
    /// The bytes of the pieces that were handed to the task.
    taken: u64,
    sent: Passed,
    notes: Vec<Note>,
}

impl Writer {
    pub(super) fn start(
        collection: Collection,
        name: ObjectName,
        id: &PartialId,
        bytes: Option<u64>,
    ) -> Self {
        let (pieces, queue) = mpsc::channel(AHEAD);
        let what = format!("partial {id}");
        let sent = Passed::default();
        let counted = sent.clone();
        let count = move |bytes| counted.add(bytes);
        let body = Body::wrap_stream(Counted::new(ReceiverStream::new(queue), count));
        let request = collection.put(id, bytes, body);
        let (sender, title) = (collection.clone(), what.clone());
        let answer = async move {
            let answer = sender.send(&title, request).await?;
            if answer.status().is_success() { Ok(()) } else { Err(refused(&title, answer).await) }
        };
        let answer = Some(AbortOnDropHandle::new(tokio::spawn(answer)));
        let (id, notes) = (id.clone(), vec![Note::file(id)]);
        Self { what, collection, name, id, pieces, answer, taken: 0, sent, notes }
    }

    pub(crate) fn offset(&self) -> u64 {
        self.taken
    }

    pub(crate) fn sent(&self) -> Passed {
        self.sent.clone()
    }

    pub(crate) fn take_notes(&mut self) -> Vec<Note> {
        std::mem::take(&mut self.notes)
    }

    pub(crate) async fn write(&mut self, data: Bytes) -> Result<(), NodeError> {
        // An empty piece would end a body in chunks.
        if data.is_empty() {
            return Ok(());
        }
        let length = data.len() as u64;
        let (pieces, what) = (self.pieces.clone(), self.what.clone());
        let answer = self.answer.as_mut().ok_or_else(|| NodeError::ended(&what))?;
        let progress = async {
            tokio::select! {
                // What the server says before the end of the body is why it takes no more.
                biased;
                answer = answer => Err(early(&what, answer.unwrap_or_else(|_| Err(NodeError::ended(&what))))),
                // While nobody takes pieces any more, the answer is under way.
                () = async {
                    if pieces.send(Ok(data)).await.is_err() {
                        std::future::pending::<()>().await;
                    }
                } => Ok(()),
            }
        };
        let progress = while_sending(PATIENCE, &self.sent, &what, progress).await;
        match progress {
            Ok(()) => self.taken += length,
            Err(_) => self.answer = None,
        }
        progress
    }

    pub(crate) async fn finish(self) -> Result<(), NodeError> {
        let Self { what, collection, name, id, pieces, answer, taken, sent, .. } = self;
        drop(pieces);
        let answer = answer.ok_or_else(|| NodeError::ended(&what))?;
        let answered = async { answer.await.unwrap_or_else(|_| Err(NodeError::ended(&what))) };
        while_sending(patience(taken.min(CACHED)), &sent, &what, answered).await?;
        collection.publish(&id, taken, &name).await
    }
}

/// The error of an answer before the end of the body.
fn early(what: &str, answer: Result<(), NodeError>) -> NodeError {
    let success =
        || NodeError::new(ErrorKind::Other, what, "success before the end", "an answer after the end");
    answer.map_or_else(|error| error, |()| success())
}
