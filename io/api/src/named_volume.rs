//! The name of a volume in a path.

use axum::extract::rejection::PathRejection;
use axum::extract::{FromRequestParts, Path};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;

use crate::refusal::{refused, shortened};

/// The name. A path whose bytes are no text is refused as everything else is: the router's own refusal is not
/// JSON.
pub(crate) struct NamedVolume(pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for NamedVolume {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Response> {
        let name: Result<Path<String>, PathRejection> = Path::from_request_parts(parts, state).await;
        name.map(|Path(name)| Self(name)).map_err(|_| {
            let path = shortened(parts.uri.path());
            let found = "found the name of a volume that is no UTF-8";
            refused(StatusCode::BAD_REQUEST, format!("{path}: {found}; accepted: the name of a volume"))
        })
    }
}
