//! S3's errors as a node's.

use std::error::Error;

use object_store::client::{HttpError, HttpErrorKind};

use crate::error::{ErrorKind, NodeError};
use crate::http::plain;

/// The codes of S3, and statuses of HTTP, that the library does not tell apart. It hands on the text only.
const CODES: &[(&str, ErrorKind)] = &[
    ("NoSuchUpload", ErrorKind::Gone),
    ("QuotaExceeded", ErrorKind::Full),
    ("XMinioStorageFull", ErrorKind::Full),
    ("EntityTooLarge", ErrorKind::Full),
    ("code: 507", ErrorKind::Full),
    ("AccessDenied", ErrorKind::Denied),
    ("code: 401", ErrorKind::Denied),
    ("code: 403", ErrorKind::Denied),
    ("code: 502", ErrorKind::Unreachable),
    ("code: 503", ErrorKind::Unreachable),
    ("code: 504", ErrorKind::Stalled),
];

/// The library's error about `what`.
pub(super) fn of(what: &str, error: &object_store::Error) -> NodeError {
    let text = error.to_string();
    let code = CODES.iter().find(|(code, _)| text.contains(code)).map(|(_, kind)| *kind);
    let kind = code.unwrap_or_else(|| kind_of(error));
    NodeError::line(kind, &format!("{what}: {}", plain(&text)))
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
