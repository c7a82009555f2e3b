//! A server that misbehaves as it is told to, in a thread of the test.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::thread::JoinHandle;

use tempfile::TempDir;
use tokio::sync::oneshot;
use weir_load::{LoadError, LoadSpec};
use weir_model::Span;
use weir_nbd::wire::{self, option, option_reply};

use super::{load, load_until};

const DEPTH: usize = 4;

/// A server that shakes hands with one client and then runs `script`.
struct Scripted {
    spec: LoadSpec,
    thread: JoinHandle<()>,
    _dir: TempDir,
}

impl Scripted {
    fn new(script: impl FnOnce(UnixStream) + Send + 'static) -> Self {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        let thread = std::thread::spawn(move || {
            let (mut client, _) = listener.accept().unwrap();
            shake_hands(&mut client);
            script(client);
        });
        let target = format!("nbd+unix:///?socket={}", path.display()).parse().unwrap();
        let depth = u32::try_from(DEPTH).unwrap();
        Self { spec: LoadSpec { depth, ..LoadSpec::new(target) }, thread, _dir: dir }
    }

    fn error(self) -> LoadError {
        let error = load(&self.spec).unwrap_err();
        self.thread.join().unwrap();
        error
    }
}

/// Sends a greeting, and then an export of a mebibyte for any name that `GO` asks for.
fn shake_hands(client: &mut UnixStream) {
    client.write_all(&wire::NBD_MAGIC.to_be_bytes()).unwrap();
    client.write_all(&wire::OPTION_MAGIC.to_be_bytes()).unwrap();
    client.write_all(&3u16.to_be_bytes()).unwrap();
    let go_for_the_default_export = 4 + wire::OPTION_HEADER_LENGTH + 8;
    client.read_exact(&mut vec![0; go_for_the_default_export]).unwrap();
    let export = [&0u16.to_be_bytes()[..], &(1u64 << 20).to_be_bytes(), &1u16.to_be_bytes()].concat();
    for (kind, data) in [(option_reply::INFO, export.as_slice()), (option_reply::ACK, &[])] {
        client.write_all(&wire::OPTION_REPLY_MAGIC.to_be_bytes()).unwrap();
        client.write_all(&option::GO.to_be_bytes()).unwrap();
        client.write_all(&kind.to_be_bytes()).unwrap();
        client.write_all(&u32::try_from(data.len()).unwrap().to_be_bytes()).unwrap();
        client.write_all(data).unwrap();
    }
}

/// Reads all requests that the client has outstanding. Returns the cookie of the last.
fn read_requests(client: &mut UnixStream) -> u64 {
    let mut requests = [[0; wire::REQUEST_LENGTH]; DEPTH];
    requests.iter_mut().for_each(|request| client.read_exact(request).unwrap());
    u64::from_be_bytes(requests[DEPTH - 1][8..16].try_into().unwrap())
}

fn simple_reply(cookie: u64, payload: usize) -> Vec<u8> {
    let mut out = wire::SIMPLE_REPLY_MAGIC.to_be_bytes().to_vec();
    out.extend(0u32.to_be_bytes());
    out.extend(cookie.to_be_bytes());
    out.extend(vec![0; payload]);
    out
}

#[test]
fn a_connection_that_is_closed_in_the_middle_is_told_with_what_was_lost() {
    let server = Scripted::new(|mut client| {
        let cookie = read_requests(&mut client);
        client.write_all(&simple_reply(cookie, 4096)).unwrap();
        client.read_exact(&mut [0; wire::REQUEST_LENGTH]).unwrap();
    });
    let error = server.error().to_string();
    let expected = "the server closed the connection with 4 requests outstanding, after 1 replies";
    assert!(error.ends_with(expected), "{error}");
}

#[test]
fn a_reply_that_nobody_asked_for_ends_the_run() {
    let server = Scripted::new(|mut client| {
        let cookie = read_requests(&mut client);
        client.write_all(&simple_reply(cookie + 1, 4096)).unwrap();
        let _ = client.read_to_end(&mut Vec::new());
    });
    assert!(matches!(server.error(), LoadError::Protocol { .. }));
}

#[test]
fn a_second_reply_to_one_request_ends_the_run() {
    let server = Scripted::new(|mut client| {
        let cookie = read_requests(&mut client);
        let twice = [simple_reply(cookie, 4096), simple_reply(cookie, 4096)].concat();
        client.write_all(&twice).unwrap();
        let _ = client.read_to_end(&mut Vec::new());
    });
    assert!(matches!(server.error(), LoadError::Protocol { .. }));
}

#[test]
fn noise_instead_of_replies_ends_the_run() {
    let server = Scripted::new(|mut client| {
        client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
        let _ = client.read_to_end(&mut Vec::new());
    });
    let error = server.error().to_string();
    assert!(error.contains("magic 0x48545450"), "{error}");
}

#[test]
fn a_server_that_stalls_does_not_hold_up_a_cancelled_run_and_what_it_owes_is_told() {
    let (stalled, cancel) = oneshot::channel();
    let server = Scripted::new(|mut client| {
        read_requests(&mut client);
        stalled.send(()).unwrap();
        let mut rest = Vec::new();
        client.read_to_end(&mut rest).unwrap();
        assert_eq!(rest.len(), wire::REQUEST_LENGTH);
        assert_eq!(rest[6..8], wire::command::DISC.to_be_bytes(), "the client says good-bye");
    });
    let spec = LoadSpec { drain_limit: Span::from_millis(10), ..server.spec };
    let (report, _) = load_until(&spec, async { cancel.await.unwrap() }).unwrap();
    assert_eq!((report.offered, report.completed, report.unanswered), (4, 0, 4));
    server.thread.join().unwrap();
}

#[test]
fn a_run_can_be_cancelled_while_the_server_does_not_answer_the_connection() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("socket");
    let _listener = UnixListener::bind(&path).unwrap();
    let target = format!("nbd+unix:///?socket={}", path.display()).parse().unwrap();
    let error = load_until(&LoadSpec::new(target), async {}).unwrap_err();
    assert!(matches!(error, LoadError::Cancelled));
}
