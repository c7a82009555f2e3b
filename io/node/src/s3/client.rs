//! The HTTP client of the library, with bounded answers, and with a count of what a part has sent.
//!
//! The library reads each answer into memory, however long the server makes it. No right answer is longer
//! than a piece of an object.
//!
//! The library says when a part is there, and a part has 8 MiB or more. So the body of a part is counted
//! here, as the connection takes it. No argument of the library's reaches this far; the part stands beside
//! the task instead.

use std::error::Error;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use http_body_util::{BodyDataStream, BodyExt, Limited};
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpResponseBody,
    HttpService,
};
use reqwest::{Body, Client, Request};

use super::reader::PIECE;
use crate::passed::{Counted, Passed};

/// The most bytes of the answer to a success: a piece of an object, or a list.
const LARGEST: usize = PIECE + (1 << 20);
/// The most bytes of the answer to an error.
const LARGEST_ERROR: usize = 64 << 10;

tokio::task_local! {
    /// The part that this task sends.
    static PART: Part;
}

/// What is counted of a part.
#[derive(Clone)]
struct Part {
    /// All parts of the object together.
    all: Passed,
    /// The last attempt to send this part.
    attempt: Arc<Mutex<Arc<Attempt>>>,
}

/// An attempt to send a part. Its connection may take more of it after the next one has begun.
#[derive(Default)]
struct Attempt {
    sent: Passed,
    is_over: AtomicBool,
}

impl Part {
    /// Another attempt: what the one before has sent does not count.
    fn try_again(&self) -> Arc<Attempt> {
        let next = Arc::<Attempt>::default();
        let mut last = self.attempt.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *last, Arc::clone(&next));
        before.is_over.store(true, Ordering::Relaxed);
        self.all.take_back(before.sent.get());
        next
    }
}

/// Sends a part, and counts in `all` what the connection takes of it.
pub(super) async fn counted<T>(all: Passed, part: impl Future<Output = T>) -> T {
    PART.scope(Part { all, attempt: Arc::default() }, part).await
}

/// A client whose answers are bounded.
#[derive(Clone, Debug)]
pub(super) struct Bounded(Client);

impl Bounded {
    pub(super) fn new(client: Client) -> Self {
        Self(client)
    }

    /// Sends a request whose body is counted. Otherwise it is what the library does for its own client.
    async fn send(&self, part: Part, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let attempt = part.try_again();
        let (head, body) = request.into_parts();
        let url = head.uri.to_string().parse();
        let url = url.map_err(|error: url::ParseError| HttpError::new(HttpErrorKind::Unknown, error))?;
        let mut request = Request::new(head.method, url);
        *request.headers_mut() = head.headers;
        let count = move |bytes| {
            if !attempt.is_over.load(Ordering::Relaxed) {
                part.all.add(bytes);
                attempt.sent.add(bytes);
            }
        };
        *request.body_mut() = Some(Body::wrap_stream(Counted::new(BodyDataStream::new(body), count)));
        let answer = self.0.execute(request).await.map_err(failed)?;
        let (head, body) = http::Response::<Body>::from(answer).into_parts();
        Ok(HttpResponse::from_parts(head, HttpResponseBody::new(body.map_err(failed))))
    }
}

/// The kind of an error decides whether the library tries again. It is that which the library would give it.
fn failed(error: reqwest::Error) -> HttpError {
    let causes = std::iter::successors(error.source(), |cause| (*cause).source());
    let io = causes.into_iter().find_map(|cause| cause.downcast_ref::<io::Error>()).map(io::Error::kind);
    let kind = match io {
        _ if error.is_timeout() => HttpErrorKind::Timeout,
        _ if error.is_connect() => HttpErrorKind::Connect,
        _ if error.is_decode() => HttpErrorKind::Decode,
        Some(io::ErrorKind::TimedOut) => HttpErrorKind::Timeout,
        Some(
            io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::BrokenPipe
            | io::ErrorKind::UnexpectedEof,
        ) => HttpErrorKind::Interrupted,
        // A kept connection that the server closes as the request begins.
        _ if error.is_request() => HttpErrorKind::Request,
        _ => HttpErrorKind::Unknown,
    };
    HttpError::new(kind, error.without_url())
}

impl HttpConnector for Bounded {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.clone()))
    }
}

#[async_trait]
impl HttpService for Bounded {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let answer = match PART.try_with(Part::clone) {
            Ok(part) => self.send(part, request).await?,
            Err(_) => self.0.call(request).await?,
        };
        let (head, body) = answer.into_parts();
        let limit = if head.status.is_success() { LARGEST } else { LARGEST_ERROR };
        let body = Limited::new(body, limit).map_err(|error| match error.downcast::<HttpError>() {
            Ok(error) => *error,
            Err(error) => HttpError::new_boxed(HttpErrorKind::Decode, error),
        });
        Ok(HttpResponse::from_parts(head, HttpResponseBody::new(body)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_attempt_of_a_part_counts_also_if_an_earlier_one_is_still_read() {
        let part = Part { all: Passed::new(100), attempt: Arc::default() };
        let count = |attempt: &Attempt, bytes| {
            if !attempt.is_over.load(Ordering::Relaxed) {
                part.all.add(bytes);
                attempt.sent.add(bytes);
            }
        };
        let first = part.try_again();
        count(&first, 30);
        assert_eq!(part.all.get(), 130);
        let second = part.try_again();
        assert_eq!(part.all.get(), 100);
        count(&first, 5);
        count(&second, 40);
        assert_eq!(part.all.get(), 140);
        part.all.take_back(1_000);
        assert_eq!(part.all.get(), 0, "it never wraps");
    }
}
