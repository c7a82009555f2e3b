//! A bucket of an S3 server as a node.
//!
//! An upload of several parts is not visible before it is completed, and its parts can be sent by several
//! processes, one after another. So the notes are the upload's id and each part's size and tag.
//!
//! | file | what it does |
//! |---|---|
//! | `client` | the HTTP client of the library, with bounded answers |
//! | `failure` | S3's errors as a node's |
//! | `tags` | whether parts of an earlier upload have the data of the source |
//! | `plan` | how large the parts are |
//! | `writer`, `reader` | bytes to an object and from it, several requests at a time |

mod client;
mod failure;
mod plan;
mod reader;
mod tags;
mod writer;

use std::sync::Arc;
use std::time::Duration;

use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::list::{PaginatedListOptions, PaginatedListStore};
use object_store::multipart::MultipartStore;
use object_store::path::Path;
use object_store::signer::{SignedUrlOptions, Signer};
use object_store::{ObjectMeta, ObjectStoreExt, RetryConfig};
use reqwest::{Method, StatusCode};
use url::Url;

use crate::error::{ErrorKind, NodeError, PATIENCE, PROBE_PATIENCE, within};
use crate::http::{failed, refused};
use crate::name::{Note, ObjectName};

use client::Bounded;
use failure::of;
pub(crate) use reader::Reader;
pub use tags::Tags;
pub(crate) use writer::Writer;

/// How often the library sends a request again that got no answer, or an answer that asks for it.
const RETRIES: RetryConfig = RetryConfig {
    backoff: object_store::BackoffConfig {
        init_backoff: Duration::from_millis(100),
        max_backoff: Duration::from_secs(5),
        base: 2.0,
    },
    max_retries: 4,
    retry_timeout: PATIENCE,
};

/// How long a URL is valid that asks about an upload.
const VALID: Duration = Duration::from_secs(60);

/// A bucket in which objects are.
pub(crate) struct Bucket {
    store: AmazonS3,
    /// For the one question that the library does not ask.
    client: reqwest::Client,
    prefix: String,
}

/// Who may use a bucket.
pub(crate) struct Keys<'k> {
    pub(crate) id: &'k str,
    pub(crate) secret: &'k str,
    pub(crate) token: Option<&'k str>,
}

impl Bucket {
    pub(crate) fn new(
        endpoint: &Url,
        region: &str,
        bucket: &str,
        prefix: &str,
        keys: &Keys<'_>,
    ) -> Result<Self, NodeError> {
        let client = crate::http::client(endpoint)?;
        let store = AmazonS3Builder::new()
            .with_endpoint(endpoint.as_str().trim_end_matches('/'))
            .with_region(region)
            .with_bucket_name(bucket)
            .with_access_key_id(keys.id)
            .with_secret_access_key(keys.secret)
            .with_allow_http(true)
            .with_retry(RETRIES)
            .with_http_connector(Bounded::new(client.clone()));
        let store = if let Some(token) = keys.token { store.with_token(token) } else { store };
        let store = store.build().map_err(|error| of("bucket", &error))?;
        Ok(Self { store, client, prefix: prefix.to_owned() })
    }

    /// Lists one key at most: `HEAD` of a name that is not there answers the same without a bucket.
    pub(crate) async fn probe(&self) -> Result<(), NodeError> {
        let options = PaginatedListOptions { max_keys: Some(1), ..Default::default() };
        let prefix = if self.prefix.is_empty() { String::new() } else { format!("{}/", self.prefix) };
        let listed = async {
            let listed = self.store.list_paginated(Some(&prefix), options).await;
            listed.map(drop).map_err(|error| of("bucket", &error))
        };
        within(PROBE_PATIENCE, "bucket", listed).await.map_err(|error| match error.kind() {
            // The library tries again until the time is over.
            ErrorKind::Stalled => {
                NodeError::new(ErrorKind::Unreachable, "bucket", "no answer", "one within 5 seconds")
            }
            ErrorKind::NotFound => NodeError::line(ErrorKind::Unreachable, &error.to_string()),
            _ => error,
        })
    }

    pub(crate) async fn size(&self, name: &ObjectName) -> Result<Option<u64>, NodeError> {
        let what = format!("object {name}");
        match self.head(&what, &self.path(&what, name)?).await {
            Ok(meta) => Ok(Some(meta.size)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn begin(
        self: &Arc<Self>,
        name: &ObjectName,
        bytes: Option<u64>,
    ) -> Result<Writer, NodeError> {
        let what = format!("object {name}");
        let path = self.path(&what, name)?;
        Ok(Writer::begin(self.clone(), what, path, bytes))
    }

    pub(crate) async fn resume(
        self: &Arc<Self>,
        name: &ObjectName,
        notes: &[Note],
        bytes: Option<u64>,
    ) -> Result<Writer, NodeError> {
        let what = format!("object {name}");
        let path = self.path(&what, name)?;
        let writer = Writer::resume(self.clone(), what.clone(), path.clone(), notes, bytes)?;
        within(PATIENCE, &what, self.has_upload(&what, &path, writer.upload())).await?;
        Ok(writer)
    }

    pub(crate) async fn read(self: &Arc<Self>, name: &ObjectName, from: u64) -> Result<Reader, NodeError> {
        let what = format!("object {name}");
        let path = self.path(&what, name)?;
        let meta = self.head(&what, &path).await.map_err(|error| match error.kind() {
            ErrorKind::NotFound => NodeError::missing(&what),
            _ => error,
        })?;
        Reader::start(self.clone(), what, path, &meta, from)
    }

    pub(crate) async fn remove(&self, name: &ObjectName) -> Result<(), NodeError> {
        let what = format!("object {name}");
        let path = self.path(&what, name)?;
        let removed = async { self.store.delete(&path).await.map_err(|error| of(&what, &error)) };
        unless_missing(within(PATIENCE, &what, removed).await)
    }

    pub(crate) async fn discard(&self, notes: &[Note]) -> Result<(), NodeError> {
        let Some((id, key)) = notes.first().and_then(writer::upload_of) else { return Ok(()) };
        let what = format!("upload of {key}");
        let path = Path::parse(key).map_err(|error| NodeError::line(ErrorKind::Other, &error.to_string()))?;
        let id = id.to_owned();
        let aborted =
            async { self.store.abort_multipart(&path, &id).await.map_err(|error| of(&what, &error)) };
        let aborted = within(PATIENCE, &what, aborted).await;
        match aborted {
            Err(error) if error.kind() == ErrorKind::Gone => Ok(()),
            aborted => unless_missing(aborted),
        }
    }

    async fn head(&self, what: &str, path: &Path) -> Result<ObjectMeta, NodeError> {
        within(PATIENCE, what, async { self.store.head(path).await.map_err(|error| of(what, &error)) }).await
    }

    /// Checks that an upload can be gone on with. The library would only find out with the first part. It
    /// signs any URL, so this asks for the upload's parts (`ListParts`), one of them at most.
    async fn has_upload(&self, what: &str, path: &Path, id: &str) -> Result<(), NodeError> {
        let options = SignedUrlOptions::default().with_query([("uploadId", id), ("max-parts", "1")]);
        let url = self.store.signed_url_opts(Method::GET, path, VALID, &options).await;
        let url = url.map_err(|error| of(what, &error))?;
        let answer = self.client.get(url).send().await.map_err(|error| failed(what, &error.without_url()))?;
        match answer.status() {
            StatusCode::NOT_FOUND => Err(NodeError::gone(what, "no upload with this id")),
            status if status.is_success() => Ok(()),
            _ => Err(refused(what, answer).await),
        }
    }

    fn path(&self, what: &str, name: &ObjectName) -> Result<Path, NodeError> {
        let slash = if self.prefix.is_empty() { "" } else { "/" };
        let path = Path::parse(format!("{}{slash}{name}", self.prefix));
        path.map_err(|error| NodeError::line(ErrorKind::Other, &format!("{what}: {error}")))
    }
}

fn unless_missing(removed: Result<(), NodeError>) -> Result<(), NodeError> {
    match removed {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}
