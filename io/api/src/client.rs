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
    /// No server is there, or it did not take the request.
    #[error("{0}: no answer ({1}); is the server running?")]
    NotSent(Server, String),
    /// The request was sent, and no answer came: in time, or at all.
    #[error("{0}: no answer ({1})")]
    NoAnswer(Server, String),
    /// The request was sent, and what answered is no HTTP, too long, or broken off.
    #[error("{0}: found an answer that cannot be read ({1}); accepted: an answer of weir")]
    Unreadable(Server, String),
    /// The server refuses, with these words.
    #[error("{0}")]
    Refused(String),
    /// The answer does not come from this version of weir.
    #[error("{0}: the answer is not one of this version of weir: {1}")]
    NotWeir(Server, String),
}

/// Why a request has no answer that can be read.
enum Trouble {
    /// The request was not sent.
    NotSent(String),
    /// It may have been sent, and nothing came back.
    Silent(String),
    /// Something came back.
    Unreadable(String),
}

impl AskError {
    /// Whether the server may have done what it was asked for: the request was sent, and its answer is not
    /// known.
    pub const fn may_be_done(&self) -> bool {
        match self {
            Self::NoAnswer(..) | Self::Unreadable(..) | Self::NotWeir(..) => true,
            Self::NotSent(..) | Self::Refused(_) => false,
        }
    }
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
    match ask(stream, Method::GET, host, path, String::new(), most_bytes).await {
        Err(Trouble::NotSent(why) | Trouble::Silent(why) | Trouble::Unreadable(why)) => Err(why),
        Ok((status, text)) if status.is_success() => Ok(text),
        Ok((status, text)) => {
            let text = reason(&text).unwrap_or(text);
            let text: String = text.chars().take(MOST_TOLD).collect();
            Err(format!("the server refuses ({}): {text:?}", status.as_u16()))
        }
    }
}

impl Server {
    /// The server at `http://host:port` or `unix:/path`; `None` if the text is neither. A URL with an `@` is
    /// none: a password may stand before it, and the URL is shown in errors.
    pub fn read(text: &str) -> Option<Self> {
        if let Some(path) = text.strip_prefix("unix:") {
            return Some(Self::Unix(path.into()));
        }
        let rest = text.strip_prefix("http://").filter(|rest| !rest.contains('@'))?.trim_end_matches('/');
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
        let mut is_connected = false;
        let asked = async {
            let unreached = |error: std::io::Error| Trouble::NotSent(error.to_string());
            match self {
                Self::Http { authority, prefix } => {
                    let stream = TcpStream::connect(authority).await.map_err(unreached)?;
                    is_connected = true;
                    ask(stream, method, authority, &format!("{prefix}{path}"), body, LONGEST_ANSWER).await
                }
                Self::Unix(socket) => {
                    let stream = UnixStream::connect(socket).await.map_err(unreached)?;
                    is_connected = true;
                    ask(stream, method, "localhost", path, body, LONGEST_ANSWER).await
                }
            }
        };
        let answer = timeout(ANSWER_TIMEOUT, asked).await.unwrap_or_else(|_| {
            let late = format!("within {ANSWER_TIMEOUT:?}");
            Err(if is_connected { Trouble::Silent(late) } else { Trouble::NotSent(late) })
        });
        let server = || self.clone();
        match answer {
            Ok((status, text)) if status.is_success() => Ok(text),
            Ok((status, text)) => Err(match reason(&text) {
                Some(reason) => AskError::Refused(printable(&reason)),
                None => AskError::NotWeir(server(), format!("it refuses {path} with {status}")),
            }),
            Err(Trouble::NotSent(why)) => Err(AskError::NotSent(server(), why)),
            Err(Trouble::Silent(why)) => Err(AskError::NoAnswer(server(), why)),
            Err(Trouble::Unreadable(why)) => Err(AskError::Unreadable(server(), why)),
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
) -> Result<(StatusCode, String), Trouble> {
    let unsent = |error: &dyn fmt::Display| Trouble::NotSent(error.to_string());
    let (mut sender, connection) = handshake(TokioIo::new(stream)).await.map_err(|error| unsent(&error))?;
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(HOST, host)
        .header(CONTENT_TYPE, "application/json")
        .body(Full::new(Bytes::from(body)))
        .map_err(|error| unsent(&error))?;
    let answer = async {
        let answer = sender.send_request(request).await.map_err(|error| match error {
            error if error.is_canceled() => unsent(&error),
            error if error.is_parse() => Trouble::Unreadable(error.to_string()),
            error => Trouble::Silent(error.to_string()),
        })?;
        let status = answer.status();
        let body = Limited::new(answer.into_body(), most_bytes);
        let body = body.collect().await.map_err(|error| {
            Trouble::Unreadable(match error.downcast_ref::<LengthLimitError>() {
                Some(_) => format!("it is longer than {}", shown(most_bytes)),
                None => error.to_string(),
            })
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
        for secret in ["http://user:pw@gateway:9810", "http://pw@gateway", "http://user:p/w@gateway"] {
            assert_eq!(Server::read(secret), None, "{secret}");
        }
    }

    /// The error of a POST to a server that reads the request, sends `answer` and closes.
    async fn error_of(answer: &'static [u8]) -> AskError {
        use std::io::{Read, Write};

        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Server::read(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
        let peer = std::thread::spawn(move || {
            let (mut peer, _) = listener.accept().unwrap();
            let (mut read, mut part) = (Vec::new(), [0; 4096]);
            while !read.ends_with(b"\"all\"") {
                let length = peer.read(&mut part).unwrap();
                read.extend_from_slice(&part[..length]);
            }
            peer.write_all(answer).unwrap();
        });
        let error = server.post("/v1/changes", &"all").await.unwrap_err();
        peer.join().unwrap();
        error
    }

    #[tokio::test]
    async fn after_the_request_was_sent_it_may_be_done_whatever_comes_back() {
        let silent = error_of(b"").await;
        assert!(silent.may_be_done() && silent.to_string().contains("no answer ("), "{silent}");
        assert!(silent.to_string().ends_with(')'), "it was there, and took the request: {silent}");
        for unreadable in
            [&b"SSH-2.0-OpenSSH_9.6\r\n\r\n"[..], b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"]
        {
            let error = error_of(unreadable).await;
            assert!(error.may_be_done(), "{error}");
            assert!(!error.to_string().contains("is the server running"), "it has answered: {error}");
        }
    }

    #[tokio::test]
    async fn what_a_server_refuses_or_never_gets_is_not_done() {
        let refused = error_of(b"HTTP/1.1 422 No\r\nContent-Length: 14\r\n\r\n{\"error\":\"no\"}").await;
        assert!(!refused.may_be_done() && refused.to_string() == "no", "{refused}");
        let absent = Server::read("unix:/nowhere/weir.sock").unwrap();
        let absent = absent.post("/v1/changes", &"all").await.unwrap_err();
        assert!(!absent.may_be_done(), "{absent}");
        assert!(absent.to_string().ends_with("is the server running?"), "{absent}");
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
        assert!(refused.contains("64 MiB") && !refused.contains("running"), "{refused}");
        // What is under way in the sockets is a few MiB.
        let mebibytes = endless.join().unwrap();
        assert!(mebibytes < 96, "{mebibytes}");
    }
}
