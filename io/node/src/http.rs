//! The client of HTTP that WebDAV and S3 share: timeouts, TLS by ring, and errors in one bounded line.

use std::error::Error;
use std::time::Duration;

use reqwest::redirect::Policy;
use reqwest::{Client, Response, StatusCode};
use url::Url;

use crate::error::{ErrorKind, NodeError};

/// The longest that a connection may take to come about.
const CONNECT: Duration = Duration::from_secs(5);
/// The longest that a connection is kept for the next request. Servers close theirs after some 5 seconds, and
/// a body that is sent once cannot be sent again on another connection.
const IDLE: Duration = Duration::from_secs(3);
/// The most bytes of a server's answer to an error that are read.
const LONGEST_ANSWER: usize = 4 << 10;

/// A client. It follows no redirection: the body of an upload cannot be sent twice, and a password must not
/// go to another host.
///
/// # Errors
/// If the certificates of this host's authorities cannot be read, for a server over TLS.
pub(crate) fn client(server: &Url) -> Result<Client, NodeError> {
    // The first provider stays. That of another part of the program does as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = Client::builder().redirect(Policy::none()).no_proxy();
    let builder = builder.connect_timeout(CONNECT).pool_idle_timeout(IDLE);
    // The kernel takes a server whose window opens in small steps for one that takes nothing. The drivers
    // look for progress themselves.
    let builder = builder.tcp_user_timeout(None);
    // Reading the authorities' certificates takes time, and fails where there are none.
    let builder = if server.scheme() == "https" { builder } else { builder.tls_certs_only([]) };
    builder.build().map_err(|error| failed("HTTP client", &error))
}

/// The error of a request that got no answer.
pub(crate) fn failed(what: impl std::fmt::Display, error: &reqwest::Error) -> NodeError {
    let kind = if error.is_timeout() && !error.is_connect() {
        ErrorKind::Stalled
    } else if error.is_builder() {
        ErrorKind::Other
    } else {
        ErrorKind::Unreachable
    };
    NodeError::line(kind, &format!("{what}: {}", causes(error)))
}

/// How long each piece of the text of a refusal may take.
const TEXT_PATIENCE: Duration = Duration::from_secs(2);

/// The error of an answer that is no success, with the beginning of what the server says.
pub(crate) async fn refused(what: impl std::fmt::Display, mut answer: Response) -> NodeError {
    let status = answer.status();
    let mut said = Vec::new();
    while said.len() < LONGEST_ANSWER {
        // The status says what counts. A server that never ends its text holds up nobody.
        match tokio::time::timeout(TEXT_PATIENCE, answer.chunk()).await {
            Ok(Ok(Some(chunk))) => said.extend(chunk.iter().take(LONGEST_ANSWER - said.len())),
            _ => break,
        }
    }
    let said = String::from_utf8_lossy(&said);
    let said = plain(&said);
    let colon = if said.is_empty() { "" } else { ": " };
    let text = format!("{what}: found status {status}{colon}{said}; accepted: success");
    NodeError::line(kind_of(status), &text)
}

/// What a status of HTTP means for a caller.
pub(crate) fn kind_of(status: StatusCode) -> ErrorKind {
    match status.as_u16() {
        401 | 403 | 407 => ErrorKind::Denied,
        404 | 410 => ErrorKind::NotFound,
        408 | 504 => ErrorKind::Stalled,
        // 413: larger than the server takes.
        413 | 507 => ErrorKind::Full,
        502 | 503 => ErrorKind::Unreachable,
        _ => ErrorKind::Other,
    }
}

/// An error and its causes in a line. reqwest only says "error sending request"; the reason is further down.
pub(crate) fn causes(error: &dyn Error) -> String {
    let mut line = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let text = error.to_string();
        if !line.contains(&text) {
            line = format!("{line}: {text}");
        }
        cause = error.source();
    }
    line
}

/// The text of a page of HTML or XML, without its tags and in one line of at most 300 characters.
pub(crate) fn plain(page: &str) -> String {
    let mut in_tag = false;
    let text: String = page
        .chars()
        .filter_map(|c| match c {
            '<' => {
                in_tag = true;
                Some(' ')
            }
            '>' => {
                in_tag = false;
                None
            }
            _ => (!in_tag).then_some(c),
        })
        .collect();
    text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(300).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_becomes_one_short_line() {
        let page = "<html><h1>507 Insufficient\nStorage</h1>\n<p>disk &amp; quota</p>";
        assert_eq!(plain(page), "507 Insufficient Storage disk &amp; quota");
        assert_eq!(plain(&"ab ".repeat(1_000)).chars().count(), 300);
    }
}
