//! What servers of WebDAV and S3 answer to a read. The first piece chooses the protocol and the byte to begin
//! with; each other one is the whole answer to a request.
//!
//! The answers come over sockets, because the client's own parser of HTTP is a part of what reads them. Time
//! runs faster than the clock: the library of S3 waits before it tries again, and a server that says nothing
//! is given half a minute.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tempfile::NamedTempFile;
use weir_node::{Credentials, Node, NodeError, ObjectName};

use super::Target;
use crate::script::Script;
use crate::seen::Seen;

pub(super) const TARGET: Target = Target {
    name: "node-answers",
    run,
    seeds,
    words: &[
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 206 Partial Content\r\n",
        b"HTTP/1.1 404 Not Found\r\n",
        b"HTTP/1.1 416 Range Not Satisfiable\r\n",
        b"HTTP/1.1 302 Found\r\nLocation: /\r\n",
        b"Content-Length: 5\r\n",
        b"Content-Length: 18446744073709551615\r\n",
        b"Content-Length: 9223372036854775808\r\n",
        b"Content-Range: bytes 0-4/5\r\n",
        b"Content-Range: bytes 0-18446744073709551615/18446744073709551615\r\n",
        b"bytes 5-0/",
        b"bytes */",
        b"Transfer-Encoding: chunked\r\n",
        b"ffffffffffffffff\r\n",
        b"Content-Encoding: gzip\r\n",
        b"ETag: \"b\"\r\n",
        b"-1",
        b"\r\n\r\n",
    ],
    must_reach: &["webdav", "s3", "read", "read to its end", "refused", "broken"],
};

/// The most bytes of a piece.
const MOST_PIECE: usize = 9 << 20;

fn seeds() -> Vec<Script> {
    const DATE: &str = "Last-Modified: Wed, 21 Oct 2015 07:28:00 GMT\r\nETag: \"a\"\r\nConnection: close\r\n";
    let answer = |status: &str, range: &str, body: &str, length: usize| {
        let head = format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\n{range}{DATE}\r\n{body}");
        head.into_bytes()
    };
    let whole = || answer("200 OK", "", "hello", 5);
    let head = || answer("200 OK", "", "", 5);
    let part = |range: &str, body: &str| {
        answer("206 Partial Content", &format!("Content-Range: bytes {range}\r\n"), body, body.len())
    };
    vec![
        Script::new(vec![vec![0, 0], whole()]),
        Script::new(vec![vec![0, 2], part("2-4/5", "llo")]),
        Script::new(vec![vec![0, 5], answer("416 Range Not Satisfiable", "", "", 0), head()]),
        Script::new(vec![vec![0, 0], answer("200 OK", "", "short", 500)]),
        Script::new(vec![vec![0, 0], answer("404 Not Found", "", "<p>no</p>", 9)]),
        Script::new(vec![vec![1, 0], head(), part("0-4/5", "hello")]),
        Script::new(vec![vec![1, 2], head(), part("2-4/5", "llo")]),
        Script::new(vec![vec![1, 0], head(), answer("412 Precondition Failed", "", "", 0)]),
        Script::new(vec![vec![1, 0], answer("404 Not Found", "", "", 0)]),
    ]
}

fn run(script: &Script, seen: &mut Seen) {
    let Some((choice, answers)) = script.pieces.split_first() else { return };
    seen.message();
    let is_s3 = choice.first().is_some_and(|byte| byte % 2 == 1);
    let from = u64::from(choice.get(1).copied().unwrap_or_default());
    seen.reach(if is_s3 { "s3" } else { "webdav" });
    let server = Server::start(answers);
    let node = node_on(server.address, is_s3);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    let read = runtime.expect("a runtime of one thread").block_on(async {
        tokio::select! {
            read = read(&node, from, seen) => read,
            () = hurry() => unreachable!("time goes on for ever"),
        }
    });
    match read {
        Ok(bytes) => {
            let sent: usize = answers.iter().map(Vec::len).sum();
            assert!(bytes <= sent, "{bytes} bytes of {sent}");
            seen.reach("read to its end");
        }
        Err(error) => {
            let text = error.to_string();
            assert!(text.chars().count() <= 600 && !text.contains('\n'), "{text:?}");
        }
    }
}

/// Reads an object to its end. How many bytes there were.
async fn read(node: &Node, from: u64, seen: &mut Seen) -> Result<usize, NodeError> {
    let name: ObjectName = "of/the/server".parse().expect("a name");
    let mut reader = node.read(&name, from).await.inspect_err(|_| seen.reach("refused"))?;
    seen.reach("read");
    let mut bytes = 0;
    while let Some(piece) = reader.next().await.inspect_err(|_| seen.reach("broken"))? {
        assert!((1..=MOST_PIECE).contains(&piece.len()), "a piece of {} bytes", piece.len());
        bytes += piece.len();
    }
    Ok(bytes)
}

/// Lets 100 ms pass in each millisecond. While the thread waits, the runtime does not skip time by itself.
async fn hurry() {
    loop {
        let _ = tokio::task::spawn_blocking(|| std::thread::sleep(Duration::from_millis(1))).await;
        tokio::time::advance(Duration::from_millis(100)).await;
    }
}

fn node_on(address: SocketAddr, is_s3: bool) -> Node {
    let open = |url: String, credentials| Node::open(url.parse().expect("a URL"), credentials);
    if !is_s3 {
        return open(format!("webdav://{address}/"), None).expect("it needs nothing");
    }
    let file = NamedTempFile::new().expect("there is a folder for temporary files");
    std::fs::write(file.path(), "access_key_id = \"a\"\nsecret_access_key = \"b\"\n").expect("it is ours");
    let credentials = Credentials::read(file.path()).expect("they are right");
    open(format!("s3://bulk?endpoint=http://{address}"), Some(&credentials)).expect("it has credentials")
}

/// A server with an answer for each request, in their order. It ends when this is dropped.
struct Server {
    address: SocketAddr,
    answers: Arc<Mutex<VecDeque<Vec<u8>>>>,
}

/// What ends the server.
const END: &[u8] = b"END";

impl Server {
    fn start(answers: &[Vec<u8>]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("this machine has a loopback");
        let address = listener.local_addr().expect("it listens");
        let answers = Arc::new(Mutex::new(answers.iter().cloned().collect::<VecDeque<_>>()));
        let shared = Arc::clone(&answers);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if !serve(stream, &shared) {
                    return;
                }
            }
        });
        Self { address, answers }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        answers.clear();
        drop(answers);
        let end = TcpStream::connect(self.address).and_then(|mut stream| stream.write_all(END));
        end.expect("the server listens until it is told to end");
    }
}

/// Answers a request, and closes the connection. Whether to go on.
fn serve(stream: TcpStream, answers: &Mutex<VecDeque<Vec<u8>>>) -> bool {
    let mut stream = BufReader::new(stream);
    let mut line = Vec::new();
    while stream.read_until(b'\n', &mut line).is_ok_and(|length| length > 2) {
        if line == END {
            return false;
        }
        line.clear();
    }
    if line == END {
        return false;
    }
    let answer = answers.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    let _ = stream.get_mut().write_all(&answer.unwrap_or_default()); // the client may have gone
    true
}
