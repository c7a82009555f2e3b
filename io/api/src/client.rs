//! Asks a running server: over TCP at its metrics address, or at its control socket.
//!
//! The client uses the HTTP library of the server's side, with one connection for each question. A usual HTTP
//! client would bring pools, redirects and proxies, but no Unix sockets.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1::handshake;
use hyper::header::{CONTENT_TYPE, HOST};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;

use crate::refusal::Refusal;

/// How long a server may take to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// The longest answer that is read, in bytes: the state of some 25,000 volumes. Another program at the
/// address may send more, and it must not fill the memory.
const LONGEST_ANSWER: usize = 64 << 20;

/// The most characters of a refusal that are told.
const MOST_TOLD: usize = 100;

/// A server that can be asked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Server {
    /// At its metrics address: `host:port`, and the prefix of its paths if a proxy stands before it.
    Http {
        /// `host:port`.
        authority: String,
        /// Empty, or a path without a `/` at its end.
        prefix: String,
    },
    /// At its control socket.
    Unix(PathBuf),
}

/// Why there is no answer.
#[derive(Debug, Error)]
pub enum AskError {
    /// No server is there, it did not answer in time, or the answer is no HTTP.
    #[error("{0}: no answer ({1}); is the server running?")]
    NoAnswer(Server, String),
    /// The server refuses, with these words.
    #[error("{0}")]
    Refused(String),
    /// The answer does not come from this version of weir.
    #[error("{0}: the answer is not one of this version of weir: {1}")]
    NotWeir(Server, String),
}

/// What a server answers to a GET of `path` over `stream`, if its status says that all is well. No more of an
/// answer is read than `most_bytes`. It may take for ever: the caller bounds the time.
///
/// # Errors
/// If the answer is no HTTP, is longer, or says that something is wrong; in words, without line ends.
pub async fn get_over(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    host: &str,
    path: &str,
    most_bytes: usize,
) -> Result<String, String> {
    match ask(stream, Method::GET, host, path, String::new(), most_bytes).await? {
        (status, text) if status.is_success() => Ok(text),
        (status, text) => {
            let text = reason(&text).unwrap_or(text);
            let text: String = text.chars().take(MOST_TOLD).collect();
            Err(format!("the server refuses ({}): {text:?}", status.as_u16()))
        }
    }
}

impl Server {
    /// The server at `http://host:port` or `unix:/path`; `None` if the text is neither.
    pub fn read(text: &str) -> Option<Self> {
        if let Some(path) = text.strip_prefix("unix:") {
            return Some(Self::Unix(path.into()));
        }
        let rest = text.strip_prefix("http://")?.trim_end_matches('/');
        let (authority, prefix) = rest
            .split_once('/')
            .map_or((rest, String::new()), |(authority, prefix)| (authority, format!("/{prefix}")));
        let port = if authority.ends_with(']') || !authority.contains(':') { ":80" } else { "" };
        Some(Self::Http { authority: format!("{authority}{port}"), prefix })
    }

    /// The server's answer to a GET of `path`.
    ///
    /// # Errors
    /// If there is no server that answers, or it refuses.
    pub async fn get(&self, path: &str) -> Result<String, AskError> {
        self.ask(Method::GET, path, String::new()).await
    }

    /// The server's answer to a POST of `body` to `path`.
    ///
    /// # Errors
    /// If there is no server that answers, or it refuses.
    ///
    /// # Panics
    /// If `body` cannot be written as JSON.
    pub async fn post(&self, path: &str, body: &impl Serialize) -> Result<String, AskError> {
        let body = serde_json::to_string(body).expect("what is sent is plain data");
        self.ask(Method::POST, path, body).await
    }

    async fn ask(&self, method: Method, path: &str, body: String) -> Result<String, AskError> {
        let asked = async {
            match self {
                Self::Http { authority, prefix } => {
                    let stream = TcpStream::connect(authority).await.map_err(|error| error.to_string())?;
                    ask(stream, method, authority, &format!("{prefix}{path}"), body, LONGEST_ANSWER).await
                }
                Self::Unix(socket) => {
                    let stream = UnixStream::connect(socket).await.map_err(|error| error.to_string())?;
                    ask(stream, method, "localhost", path, body, LONGEST_ANSWER).await
                }
            }
        };
        let answer = timeout(ANSWER_TIMEOUT, asked).await;
        match answer.unwrap_or_else(|_| Err(format!("within {ANSWER_TIMEOUT:?}"))) {
            Ok((status, text)) if status.is_success() => Ok(text),
            Ok((status, text)) => Err(match reason(&text) {
                Some(reason) => AskError::Refused(printable(&reason)),
                None => AskError::NotWeir(self.clone(), format!("it refuses {path} with {status}")),
            }),
            Err(error) => Err(AskError::NoAnswer(self.clone(), error)),
        }
    }
}

/// The reason in the body of a refusal; `None` if it is none of weir's.
fn reason(body: &str) -> Option<String> {
    serde_json::from_str(body).ok().map(|Refusal { error }| error)
}

/// A bound for people.
fn shown(bytes: usize) -> String {
    if bytes < 1 << 20 { format!("{} KiB", bytes >> 10) } else { format!("{} MiB", bytes >> 20) }
}

/// Replaces the characters that a terminal would obey: the program at the address may not be weir.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && c != '\n' { '?' } else { c }).collect()
}

/// Sends a request. Returns the status and the text of the answer.
async fn ask(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    method: Method,
    host: &str,
    path: &str,
    body: String,
    most_bytes: usize,
) -> Result<(StatusCode, String), String> {
    let text = |error: &dyn fmt::Display| error.to_string();
    let (mut sender, connection) = handshake(TokioIo::new(stream)).await.map_err(|error| text(&error))?;
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(HOST, host)
        .header(CONTENT_TYPE, "application/json")
        .body(Full::new(Bytes::from(body)))
        .map_err(|error| text(&error))?;
    let answer = async {
        let answer = sender.send_request(request).await.map_err(|error| text(&error))?;
        let status = answer.status();
        let body = Limited::new(answer.into_body(), most_bytes);
        let body = body.collect().await.map_err(|error| match error.downcast_ref::<LengthLimitError>() {
            Some(_) => format!("it is longer than {}", shown(most_bytes)),
            None => error.to_string(),
        })?;
        let body = body.to_bytes();
        Ok((status, String::from_utf8_lossy(&body).into_owned()))
    };
    // The connection makes progress only while it is polled. Its own errors show in the answer.
    tokio::pin!(answer);
    tokio::pin!(connection);
    tokio::select! {
        biased;
        answer = &mut answer => answer,
        _ = &mut connection => answer.await,
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Http { authority, prefix } => write!(f, "http://{authority}{prefix}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_named_by_a_url_or_a_socket() {
        let http = |authority: &str, prefix: &str| {
            Some(Server::Http { authority: authority.to_owned(), prefix: prefix.to_owned() })
        };
        assert_eq!(Server::read("http://127.0.0.1:9810/"), http("127.0.0.1:9810", ""));
        assert_eq!(Server::read("http://[::1]"), http("[::1]:80", ""));
        assert_eq!(Server::read("http://gateway/weir"), http("gateway:80", "/weir"));
        assert_eq!(Server::read("unix:/run/weir.sock"), Some(Server::Unix("/run/weir.sock".into())));
        assert_eq!(Server::read("weir.toml"), None);
    }

    #[tokio::test]
    async fn of_an_answer_without_end_no_more_is_read_than_the_bound() {
        use std::io::{Read, Write};

        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Server::read(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
        let endless = std::thread::spawn(move || {
            let (mut peer, _) = listener.accept().unwrap();
            let _ = peer.read(&mut [0; 4096]).unwrap();
            peer.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
            let chunk = vec![b'x'; 1 << 20];
            (0..512).take_while(|_| peer.write_all(&chunk).is_ok()).count()
        });
        let refused = server.get("/v1/status").await.unwrap_err().to_string();
        assert!(refused.contains("64 MiB"), "{refused}");
        // What is under way in the sockets is a few MiB.
        let mebibytes = endless.join().unwrap();
        assert!(mebibytes < 96, "{mebibytes}");
    }
}
