//! A download: the body of one answer.

use bytes::Bytes;
use reqwest::Response;

use crate::error::{NodeError, PATIENCE, within};
use crate::http::failed;

/// An object that is being fetched.
pub(crate) struct Reader {
    what: String,
    size: u64,
    /// `None` if there is nothing to fetch.
    answer: Option<Response>,
}

impl Reader {
    pub(super) fn new(what: String, size: u64, answer: Option<Response>) -> Self {
        Self { what, size, answer }
    }

    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, NodeError> {
        let Some(answer) = &mut self.answer else { return Ok(None) };
        loop {
            let chunk = async { answer.chunk().await.map_err(|error| failed(&self.what, &error)) };
            let chunk = within(PATIENCE, &self.what, chunk).await?;
            if chunk.as_ref().is_none_or(|chunk| !chunk.is_empty()) {
                return Ok(chunk);
            }
        }
    }
}
