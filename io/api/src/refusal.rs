//! Refusals over HTTP: each has a JSON object with its reason.
//!
//! The router answers an unknown path, and a method that a path does not take, with an empty body. A script
//! would have to know which answers have a reason and which do not. So [`with_reason`] gives those a body
//! too.

use axum::Json;
use axum::body::HttpBody;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};

/// The most characters of a path or a method that a refusal repeats.
const MOST_REPEATED: usize = 60;

/// The body of each answer that is no success.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Refusal {
    /// What is wrong, where, what was found and what would be accepted.
    pub(crate) error: String,
}

/// An answer that refuses with this reason.
pub(crate) fn refused(status: StatusCode, error: impl Into<String>) -> Response {
    (status, Json(Refusal { error: error.into() })).into_response()
}

/// Passes the request on, and gives an answer without a success and without a body a reason. `paths` are
/// those that the server has.
pub(crate) async fn with_reason(
    State(paths): State<&'static [&'static str]>,
    request: Request,
    next: Next,
) -> Response {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let answer = next.run(request).await;
    let is_told = answer.status().is_success() || answer.body().size_hint().exact() != Some(0);
    if is_told {
        return answer;
    }
    let (status, path) = (answer.status(), shortened(&path));
    let reason = match status {
        StatusCode::NOT_FOUND => format!("{path}: found no such path; accepted: {}", paths.join(", ")),
        StatusCode::METHOD_NOT_ALLOWED => {
            let allowed = answer.headers().get(header::ALLOW).and_then(|value| value.to_str().ok());
            let found = shortened(method.as_str());
            format!("{path}: found the method {found}; accepted: {}", allowed.unwrap_or("another one"))
        }
        _ => format!("{path}: {status}; the server's log may say why"),
    };
    let mut refusal = refused(status, reason);
    // Among them is `Allow`, which RFC 9110 asks for beside 405.
    for (name, value) in answer.headers() {
        if name != header::CONTENT_LENGTH {
            refusal.headers_mut().entry(name).or_insert(value.clone());
        }
    }
    refusal
}

pub(crate) fn shortened(text: &str) -> String {
    let mut shortened: String = text.chars().take(MOST_REPEATED).collect();
    if shortened.len() < text.len() {
        shortened.push_str("...");
    }
    shortened
}

/// The head and the body of an answer, in lower case and as it is.
#[cfg(test)]
pub(crate) async fn answered(
    routes: crate::serve::Routes,
    method: &str,
    path: &str,
    body: &str,
) -> (String, String) {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use crate::serve::{ApiLimits, answer};

    let (mut client, server) = duplex(64 << 10);
    let length = body.len();
    let head = format!("{method} {path} HTTP/1.1\r\nHost: weir\r\nContent-Length: {length}\r\n");
    let request = format!("{head}Content-Type: application/json\r\n\r\n{body}");
    client.write_all(request.as_bytes()).await.unwrap();
    answer(server, routes.with_reasons(), ApiLimits::DEFAULT).await;
    let mut text = String::new();
    client.read_to_string(&mut text).await.unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    (head.to_lowercase(), body.to_owned())
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::routing::get;

    use super::*;
    use crate::serve::Routes;

    async fn answered(method: &str, path: &str) -> (String, String) {
        let router = Router::new()
            .route("/v1/status", get(|| async { "all is well" }))
            .route("/v1/mute", get(|| async { StatusCode::INTERNAL_SERVER_ERROR }));
        let routes = Routes { router, paths: &["/v1/status", "/v1/mute"] };
        super::answered(routes, method, path, "").await
    }

    fn error(body: &str) -> String {
        serde_json::from_str::<Refusal>(body).unwrap().error
    }

    #[tokio::test]
    async fn a_path_that_is_not_there_and_a_method_that_is_not_taken_have_a_reason_as_json() {
        let (head, body) = answered("GET", "/v1/nothing").await;
        assert!(
            head.starts_with("http/1.1 404 ") && head.contains("content-type: application/json"),
            "{head}"
        );
        assert_eq!(error(&body), "/v1/nothing: found no such path; accepted: /v1/status, /v1/mute");
        let (head, body) = answered("POST", "/v1/status").await;
        assert!(head.starts_with("http/1.1 405 ") && head.contains("allow: get,head"), "{head}");
        assert_eq!(error(&body), "/v1/status: found the method POST; accepted: GET,HEAD");
        let (_, body) = answered("GET", "/v1/mute").await;
        assert!(error(&body).starts_with("/v1/mute: 500 "), "{body}");
        let (_, body) = answered("GET", &format!("/{}", "x".repeat(10_000))).await;
        assert!(error(&body).len() < 150, "{body}");
    }

    #[tokio::test]
    async fn an_answer_with_a_body_is_left_as_it_is() {
        let (head, body) = answered("GET", "/v1/status").await;
        assert!(head.starts_with("http/1.1 200 ") && body == "all is well", "{head} {body}");
    }
}
