//! A collection of a WebDAV server as a node (RFC 4918).
//!
//! An upload is a `PUT` into the collection `.weir-partial`, and then a `MOVE` to the name with
//! `Overwrite: F`, which the server refuses if the name is taken.
//!
//! - WebDAV cannot go on with a `PUT`. So there is no resume: a writer begins from the start.
//! - WebDAV cannot ask for durability. What the server has acknowledged is as durable as the server makes it.
//! - A read is one `GET`, so all its bytes are of one version of the object.

mod reader;
mod writer;

use bytes::Bytes;
use reqwest::header::{AUTHORIZATION, CONTENT_RANGE, HeaderValue, RANGE};
use reqwest::{Client, Method, RequestBuilder, Response, StatusCode};
use url::Url;

use crate::error::{ErrorKind, NodeError, PATIENCE, PROBE_PATIENCE, within};
use crate::http::{client, failed, refused};
use crate::name::{Note, ObjectName, PARTIALS, PartialId};

pub(crate) use reader::Reader;
pub(crate) use writer::Writer;

/// The most that is read of what a server says of a resource, in bytes.
const LONGEST_PROPERTIES: usize = 64 << 10;

/// A collection in which objects are.
#[derive(Clone)]
pub(crate) struct Collection {
    client: Client,
    /// The collection. Its path ends with a slash.
    url: Url,
    /// What to say in each request, if the server asks for a user.
    authorization: Option<HeaderValue>,
}

impl Collection {
    pub(crate) fn new(url: Url, user: Option<(&str, &str)>) -> Result<Self, NodeError> {
        let client = client(&url)?;
        let authorization = user.and_then(|(user, password)| {
            // reqwest writes the header, so that nobody else has to know how.
            let request = client.get(url.clone()).basic_auth(user, Some(password)).build().ok()?;
            request.headers().get(AUTHORIZATION).cloned()
        });
        Ok(Self { client, url, authorization })
    }

    pub(crate) async fn probe(&self) -> Result<(), NodeError> {
        let what = "collection";
        let request = self.request(Method::from_bytes(b"PROPFIND").unwrap_or_default(), self.url.clone());
        let asked = self.send(what, request.header("Depth", "0"));
        let answer = within(PROBE_PATIENCE, what, asked).await.map_err(|error| match error.kind() {
            ErrorKind::Stalled => {
                NodeError::new(ErrorKind::Unreachable, what, "no answer", "one within 5 seconds")
            }
            _ => error,
        })?;
        if answer.status().is_success() { Ok(()) } else { Err(absent(refused(what, answer).await)) }
    }

    pub(crate) async fn size(&self, name: &ObjectName) -> Result<Option<u64>, NodeError> {
        self.length(&format!("object {name}"), self.url_of(name.as_str())).await
    }

    pub(crate) async fn begin(
        &self,
        name: &ObjectName,
        id: &PartialId,
        bytes: Option<u64>,
    ) -> Result<Writer, NodeError> {
        self.make(PARTIALS).await?;
        Ok(Writer::start(self.clone(), name.clone(), id, bytes))
    }

    pub(crate) async fn read(&self, name: &ObjectName, from: u64) -> Result<Reader, NodeError> {
        let what = format!("object {name}");
        let mut request = self.request(Method::GET, self.url_of(name.as_str()));
        if from > 0 {
            request = request.header(RANGE, format!("bytes={from}-"));
        }
        let answer = self.patiently(&what, request).await?;
        let range =
            answer.headers().get(CONTENT_RANGE).and_then(|range| range.to_str().ok()).map(parse_range);
        match (answer.status(), range) {
            (StatusCode::NOT_FOUND | StatusCode::GONE, _) => Err(NodeError::missing(&what)),
            (StatusCode::OK, _) if from == 0 => match content_length(&answer) {
                Some(size) => Ok(Reader::new(what, size, Some(answer))),
                None => Err(NodeError::new(
                    ErrorKind::Other,
                    what,
                    "no Content-Length",
                    "an object with its size",
                )),
            },
            (StatusCode::PARTIAL_CONTENT, Some((Some(first), Some(size)))) if first == from => {
                Ok(Reader::new(what, size, Some(answer)))
            }
            (StatusCode::RANGE_NOT_SATISFIABLE, _) => {
                match self.length(&what, self.url_of(name.as_str())).await? {
                    Some(size) if size == from => Ok(Reader::new(what, size, None)),
                    Some(size) => Err(NodeError::beyond(what, from, size)),
                    None => Err(NodeError::missing(what)),
                }
            }
            (status, _) if status.is_success() => {
                let found = format!("status {status} and another range");
                Err(NodeError::new(ErrorKind::Other, what, found, format!("206, with the bytes from {from}")))
            }
            _ => Err(refused(&what, answer).await),
        }
    }

    pub(crate) async fn remove(&self, name: &ObjectName) -> Result<(), NodeError> {
        let (what, url) = (format!("object {name}"), self.url_of(name.as_str()));
        // A server removes a collection with everything in it. No collection is an object.
        if self.is_collection(&what, url.clone()).await? {
            return Ok(());
        }
        self.delete(&what, url).await.map(drop)
    }

    /// Whether a resource is a collection.
    async fn is_collection(&self, what: &str, url: Url) -> Result<bool, NodeError> {
        let propfind = Method::from_bytes(b"PROPFIND").unwrap_or_default();
        let request = self.request(propfind, url).header("Depth", "0");
        let mut answer = self.patiently(what, request).await?;
        match answer.status() {
            StatusCode::NOT_FOUND | StatusCode::GONE => return Ok(false),
            status if status.is_success() => {}
            _ => return Err(refused(what, answer).await),
        }
        let mut said = Vec::new();
        while said.len() < LONGEST_PROPERTIES {
            let chunk = async { answer.chunk().await.map_err(|error| failed(what, &error)) };
            match within(PATIENCE, what, chunk).await? {
                Some(chunk) => said.extend(chunk.iter().take(LONGEST_PROPERTIES - said.len())),
                None => break,
            }
        }
        // RFC 4918, section 15.9: the type of a collection is an element of that name, of any prefix.
        let text = String::from_utf8_lossy(&said);
        let is_element = |rest: &str| rest.trim_start().starts_with(['>', '/']);
        let of = |start: &str| text.split(start).skip(1).any(is_element);
        Ok(of("<collection") || of(":collection"))
    }

    pub(crate) async fn discard(&self, notes: &[Note]) -> Result<bool, NodeError> {
        let Some(id) = Note::file_id(notes) else { return Ok(false) };
        self.delete(&format!("partial {id}"), self.url_of_partial(&id)).await
    }

    /// Gives a partial of `size` bytes its name, if nothing has it.
    async fn publish(&self, id: &PartialId, size: u64, name: &ObjectName) -> Result<(), NodeError> {
        let (what, partial) = (format!("object {name}"), self.url_of_partial(id));
        // Nobody says that a server refuses a body that ended early.
        if self.length(&what, partial.clone()).await? != Some(size) {
            let found = "another number of bytes in the partial";
            return Err(NodeError::new(ErrorKind::Other, what, found, format!("{size}, as sent")));
        }
        for folder in name.folders() {
            self.make(folder).await?;
        }
        let request = self.request(Method::from_bytes(b"MOVE").unwrap_or_default(), partial);
        let request = request.header("Overwrite", "F");
        let request = request.header("Destination", self.url_of(name.as_str()).as_str());
        let answer = self.patiently(&what, request).await?;
        match answer.status() {
            StatusCode::PRECONDITION_FAILED => Err(NodeError::taken(&what)),
            status if status.is_success() => self.check(&what, name, size).await,
            _ => Err(refused(&what, answer).await),
        }
    }

    /// Checks that an object is where it was moved to. Some servers decode the name of the target twice, and
    /// then a name with a "?" is another one.
    async fn check(&self, what: &str, name: &ObjectName, size: u64) -> Result<(), NodeError> {
        if self.size(name).await? == Some(size) {
            return Ok(());
        }
        let (found, accepted) = ("success and no such object", "a server that moves to the name it is given");
        Err(NodeError::new(ErrorKind::Other, what, found, accepted))
    }

    /// Makes a collection whose parent exists, unless it is there.
    async fn make(&self, path: &str) -> Result<(), NodeError> {
        let what = format!("collection {path}");
        let mkcol = Method::from_bytes(b"MKCOL").unwrap_or_default();
        let answer = self.patiently(&what, self.request(mkcol, self.url_of(&format!("{path}/")))).await?;
        match answer.status() {
            // It is there.
            StatusCode::METHOD_NOT_ALLOWED => Ok(()),
            status if status.is_success() => Ok(()),
            _ => Err(absent(refused(&what, answer).await)),
        }
    }

    /// Removes a resource. Whether it was there.
    async fn delete(&self, what: &str, url: Url) -> Result<bool, NodeError> {
        let answer = self.patiently(what, self.request(Method::DELETE, url)).await?;
        match answer.status() {
            StatusCode::NOT_FOUND | StatusCode::GONE => Ok(false),
            status if status.is_success() => Ok(true),
            _ => Err(refused(what, answer).await),
        }
    }

    /// The bytes of a resource, if it is there.
    async fn length(&self, what: &str, url: Url) -> Result<Option<u64>, NodeError> {
        let answer = self.patiently(what, self.request(Method::HEAD, url)).await?;
        match answer.status() {
            StatusCode::NOT_FOUND | StatusCode::GONE => Ok(None),
            status if status.is_success() => match content_length(&answer) {
                Some(size) => Ok(Some(size)),
                None => Err(NodeError::new(
                    ErrorKind::Other,
                    what,
                    "no Content-Length",
                    "an object with its size",
                )),
            },
            _ => Err(refused(what, answer).await),
        }
    }

    fn request(&self, method: Method, url: Url) -> RequestBuilder {
        let request = self.client.request(method, url);
        match &self.authorization {
            Some(authorization) => request.header(AUTHORIZATION, authorization),
            None => request,
        }
    }

    async fn send(&self, what: &str, request: RequestBuilder) -> Result<Response, NodeError> {
        request.send().await.map_err(|error| failed(what, &error))
    }

    async fn patiently(&self, what: &str, request: RequestBuilder) -> Result<Response, NodeError> {
        within(PATIENCE, what, self.send(what, request)).await
    }

    /// The URL of a path below the collection.
    fn url_of(&self, path: &str) -> Url {
        let mut url = self.url.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path.split('/'));
        }
        url
    }

    fn url_of_partial(&self, id: &PartialId) -> Url {
        self.url_of(&format!("{PARTIALS}/{id}"))
    }

    /// The request that uploads a partial. A body of known size says so; some servers take no other.
    fn put(&self, id: &PartialId, bytes: Option<u64>, body: reqwest::Body) -> RequestBuilder {
        let request = self.request(Method::PUT, self.url_of_partial(id)).body(body);
        match bytes {
            Some(bytes) => request.header(reqwest::header::CONTENT_LENGTH, bytes),
            None => request,
        }
    }
}

/// The size that an answer states. reqwest's own is that of the body, and the answer to `HEAD` has none.
fn content_length(answer: &Response) -> Option<u64> {
    answer.headers().get(reqwest::header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// The first byte and the size of all in a `Content-Range`, such as `bytes 5-9/10`.
fn parse_range(range: &str) -> (Option<u64>, Option<u64>) {
    let (part, size) =
        range.strip_prefix("bytes ").and_then(|range| range.split_once('/')).unwrap_or_default();
    let first = part.split_once('-').and_then(|(first, _)| first.parse().ok());
    (first, size.parse().ok())
}

/// That the collection itself is not there is no message about an object.
fn absent(error: NodeError) -> NodeError {
    match error.kind() {
        ErrorKind::NotFound => NodeError::line(ErrorKind::Unreachable, &error.to_string()),
        _ => error,
    }
}

/// A piece of a body, for the stream that reqwest sends.
type Piece = Result<Bytes, std::convert::Infallible>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_encoded_into_the_url_of_the_collection() {
        let collection = Collection::new("http://h:1/a%20b/".parse().unwrap(), None).unwrap();
        let url = |path: &str| collection.url_of(path).to_string();
        assert_eq!(url("c d/100%/ü?#"), "http://h:1/a%20b/c%20d/100%25/%C3%BC%3F%23");
        assert_eq!(url(".weir-partial/"), "http://h:1/a%20b/.weir-partial/");
    }

    #[test]
    fn a_range_says_where_it_begins_and_how_long_all_is() {
        assert_eq!(parse_range("bytes 5-9/10"), (Some(5), Some(10)));
        assert_eq!(parse_range("bytes */10"), (None, Some(10)));
        assert_eq!(parse_range("bytes 5-9/*"), (Some(5), None));
        assert_eq!(parse_range("lines 1"), (None, None));
    }
}
