//! The HTTP client of the library, with bounded answers.
//!
//! The library reads each answer into memory, however long the server makes it. No right answer is longer
//! than a piece of an object.

use async_trait::async_trait;
use http_body_util::{BodyExt, Limited};
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpResponseBody,
    HttpService,
};
use reqwest::Client;

use super::reader::PIECE;

/// The most bytes of the answer to a success: a piece of an object, or a list.
const LARGEST: usize = PIECE + (1 << 20);
/// The most bytes of the answer to an error.
const LARGEST_ERROR: usize = 64 << 10;

/// A client whose answers are bounded.
#[derive(Clone, Debug)]
pub(super) struct Bounded(Client);

impl Bounded {
    pub(super) fn new(client: Client) -> Self {
        Self(client)
    }
}

impl HttpConnector for Bounded {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.clone()))
    }
}

#[async_trait]
impl HttpService for Bounded {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let (head, body) = self.0.call(request).await?.into_parts();
        let limit = if head.status.is_success() { LARGEST } else { LARGEST_ERROR };
        let body = Limited::new(body, limit).map_err(|error| match error.downcast::<HttpError>() {
            Ok(error) => *error,
            Err(error) => HttpError::new_boxed(HttpErrorKind::Decode, error),
        });
        Ok(HttpResponse::from_parts(head, HttpResponseBody::new(body)))
    }
}
