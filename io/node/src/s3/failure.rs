//! S3's errors as a node's.

use std::error::Error;

use object_store::client::{HttpError, HttpErrorKind};

use crate::error::{ErrorKind, NodeError};
use crate::http::{causes, plain};

/// What the library does not tell apart: codes of S3 and statuses of HTTP. It hands on their text only. No
/// name of an object looks like that, because the text has names as they stand in URLs.
const SAYINGS: &[(&str, ErrorKind)] = &[
    ("<Code>NoSuchUpload</Code>", ErrorKind::Gone),
    ("<Code>NoSuchBucket</Code>", ErrorKind::Unreachable),
    ("<Code>QuotaExceeded</Code>", ErrorKind::Full),
    ("<Code>XMinioStorageFull</Code>", ErrorKind::Full),
    ("<Code>EntityTooLarge</Code>", ErrorKind::Full),
    ("status code: 507", ErrorKind::Full),
    ("status code: 401", ErrorKind::Denied),
    ("status code: 403", ErrorKind::Denied),
    ("status code: 502", ErrorKind::Unreachable),
    ("status code: 503", ErrorKind::Unreachable),
    ("status code: 504", ErrorKind::Stalled),
];

/// The library's error about `what`.
pub(super) fn of(what: &str, error: &object_store::Error) -> NodeError {
    // The text of the cause has the object's name as it stands in the URL; the text above it, as it is.
    let text = error.source().map_or_else(|| error.to_string(), causes);
    let saying = SAYINGS.iter().find(|(saying, _)| text.contains(saying)).map(|(_, kind)| *kind);
    NodeError::line(saying.unwrap_or_else(|| kind_of(error)), &format!("{what}: {}", plain(&text)))
}

fn kind_of(error: &object_store::Error) -> ErrorKind {
    match error {
        object_store::Error::NotFound { .. } => ErrorKind::NotFound,
        object_store::Error::AlreadyExists { .. } => ErrorKind::Exists,
        object_store::Error::PermissionDenied { .. } | object_store::Error::Unauthenticated { .. } => {
            ErrorKind::Denied
        }
        _ => transport(error).map_or(ErrorKind::Other, |kind| match kind {
            HttpErrorKind::Timeout => ErrorKind::Stalled,
            HttpErrorKind::Decode => ErrorKind::Other,
            _ => ErrorKind::Unreachable,
        }),
    }
}

/// How the connection failed, if that is the cause.
fn transport(error: &object_store::Error) -> Option<HttpErrorKind> {
    let mut cause: Option<&(dyn Error + 'static)> = error.source();
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<HttpError>() {
            return Some(error.kind());
        }
        cause = error.source();
    }
    None
}
