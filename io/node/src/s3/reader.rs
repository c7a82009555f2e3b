//! A download in ranges, some of them in flight at a time.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use object_store::path::Path;
use object_store::{GetOptions, ObjectMeta, ObjectStore};
use tokio_stream::StreamExt;
use tokio_util::task::AbortOnDropHandle;

use super::Bucket;
use super::failure::of;
use crate::error::{ErrorKind, NodeError, PATIENCE, within};
use crate::passed::Passed;

/// The bytes of a range.
pub(super) const PIECE: usize = 8 << 20;
/// How many ranges are in flight.
const AHEAD: usize = 4;

/// An object that is being fetched.
pub(crate) struct Reader {
    bucket: Arc<Bucket>,
    what: String,
    path: Path,
    size: u64,
    /// The version of the object at the beginning. A range of another version is an error.
    tag: Option<String>,
    /// The first byte that no request in flight asks for.
    asked: u64,
    in_flight: VecDeque<AbortOnDropHandle<Result<Bytes, NodeError>>>,
    arrived: Passed,
}

impl Reader {
    pub(super) fn start(
        bucket: Arc<Bucket>,
        what: String,
        path: Path,
        meta: &ObjectMeta,
        from: u64,
    ) -> Result<Self, NodeError> {
        if from > meta.size {
            return Err(NodeError::beyond(what, from, meta.size));
        }
        let (size, tag, in_flight) = (meta.size, meta.e_tag.clone(), VecDeque::new());
        let arrived = Passed::default();
        Ok(Self { bucket, what, path, size, tag, asked: from, in_flight, arrived })
    }

    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    pub(crate) fn arrived(&self) -> Passed {
        self.arrived.clone()
    }

    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, NodeError> {
        while self.in_flight.len() < AHEAD && self.asked < self.size {
            let end = self.size.min(self.asked + PIECE as u64);
            self.in_flight.push_back(self.fetch(self.asked, end));
            self.asked = end;
        }
        let Some(piece) = self.in_flight.pop_front() else { return Ok(None) };
        piece.await.unwrap_or_else(|_| Err(NodeError::ended(&self.what))).map(Some)
    }

    /// Asks for the bytes from `from` to before `end`.
    fn fetch(&self, from: u64, end: u64) -> AbortOnDropHandle<Result<Bytes, NodeError>> {
        let (bucket, path, what) = (self.bucket.clone(), self.path.clone(), self.what.clone());
        let range = Some((from..end).into());
        let options = GetOptions { range, if_match: self.tag.clone(), ..GetOptions::default() };
        let arrived = self.arrived.clone();
        let fetch = async move {
            let asked = async {
                bucket.store.get_opts(&path, options).await.map_err(|error| match error {
                    object_store::Error::Precondition { .. } => {
                        let accepted = "an object that stays as it was";
                        NodeError::new(ErrorKind::Other, &what, "another version of the object", accepted)
                    }
                    error => of(&what, &error),
                })
            };
            // A slow node has not stalled while something comes.
            let mut body = within(PATIENCE, &what, asked).await?.into_stream();
            let mut piece = BytesMut::with_capacity(usize::try_from(end - from).unwrap_or(PIECE));
            loop {
                let chunk = async { body.next().await.transpose().map_err(|error| of(&what, &error)) };
                let Some(chunk) = within(PATIENCE, &what, chunk).await? else { break };
                arrived.add(chunk.len() as u64);
                piece.extend_from_slice(&chunk);
            }
            if piece.len() as u64 == end - from {
                return Ok(piece.freeze());
            }
            let (found, accepted) = (format!("{} bytes of a range", piece.len()), end - from);
            Err(NodeError::new(ErrorKind::Other, &what, found, accepted))
        };
        AbortOnDropHandle::new(tokio::spawn(fetch))
    }
}
