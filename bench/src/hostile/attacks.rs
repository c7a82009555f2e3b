//! The attacks of hostile peers. Each attack goes on: if the server closes a connection, the attacker opens
//! it again.
//!
//! An attacker shares the machine with the server, so it uses as little of it as it can. It waits where a
//! real attacker would wait for the network.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use super::super::handshake::negotiate;
use super::Front;

/// Connections with a write that is never finished.
const UNFINISHED: usize = 64;
/// The connections that are closed together, and the requests that each leaves behind.
const CLOSED_TOGETHER: usize = 64;
const LEFT_BEHIND: u32 = 256;
/// The silent connections: more than `limits.connections` lets in by default.
const SILENT: usize = 10_600;
/// The connections to the metrics. Half of them begin a request.
const HTTP: usize = 4_000;

const READ: u16 = 0;
const WRITE: u16 = 1;

/// How often an attacker looks whether its connections are still there.
const LOOK: Duration = Duration::from_millis(100);
/// The pause between two connections that will be refused: 5,000 a second.
const PACE: Duration = Duration::from_micros(200);
/// How long an attacker waits for an answer. A server that does not answer has gained this time.
const PATIENCE: Option<Duration> = Some(Duration::from_secs(1));

/// The header of a 32 MiB write and one byte of it, on each of many connections.
pub(super) fn unfinished_writes(front: &Front, stop: &AtomicBool) {
    let open = || {
        let mut socket = enter(&front.socket, "other")?;
        socket.write_all(&request(WRITE, 32 << 20))?;
        socket.write_all(&[0])?;
        socket.set_nonblocking(true)?;
        Ok(socket)
    };
    hold(UNFINISHED, open, stop, |_| Ok(()));
}

/// Opens many connections with many requests that wait for their volume's rate, and closes all at once, again
/// and again.
pub(super) fn mass_close(front: &Front, stop: &AtomicBool) {
    let requests = request(READ, 4096).repeat(LEFT_BEHIND as usize);
    while !stop.load(Ordering::Acquire) {
        let open = || {
            let mut socket = enter(&front.socket, "capped")?;
            socket.set_write_timeout(PATIENCE)?;
            socket.write_all(&requests)?;
            Ok::<_, io::Error>(socket)
        };
        let sockets: Vec<_> = (0..CLOSED_TOGETHER).filter_map(|_| open().ok()).collect();
        thread::sleep(LOOK);
        drop(sockets);
    }
}

/// Opens more connections than there are places, and sends nothing.
pub(super) fn silent_connections(front: &Front, stop: &AtomicBool) {
    let open = || {
        let socket = UnixStream::connect(&front.socket)?;
        socket.set_nonblocking(true)?;
        Ok(socket)
    };
    hold(SILENT, open, stop, |_| Ok(()));
}

/// Connections to the metrics: half idle, half with a header that never ends.
pub(super) fn http(front: &Front, stop: &AtomicBool) {
    let mut number = 0_usize;
    let open = || {
        let mut socket = connect(front.metrics)?;
        number += 1;
        if number.is_multiple_of(2) {
            socket.write_all(b"GET /metrics HTTP/1.1\r\n")?;
        }
        socket.set_nonblocking(true)?;
        Ok(socket)
    };
    let mut line = b"X-More: ".to_vec();
    line.resize(1024, b'x');
    line.extend_from_slice(b"\r\n");
    // On the idle connections, the line begins a request that makes no sense. The server answers or closes
    // them.
    hold(HTTP, open, stop, |socket: &mut TcpStream| socket.write_all(&line));
}

/// Connections that ask for an export that does not exist, as fast as [`PACE`] lets them.
pub(super) fn refused_connections(front: &Front, stop: &AtomicBool) {
    while !stop.load(Ordering::Acquire) {
        let _ = enter(&front.socket, "nobody"); // which is refused, and that is the point
        thread::sleep(PACE);
    }
}

/// Keeps `count` connections open, and does `more` to each from time to time.
fn hold<S: Read>(
    count: usize,
    mut open: impl FnMut() -> io::Result<S>,
    stop: &AtomicBool,
    mut more: impl FnMut(&mut S) -> io::Result<()>,
) {
    let mut sockets: Vec<S> = Vec::new();
    while !stop.load(Ordering::Acquire) {
        while sockets.len() < count && !stop.load(Ordering::Acquire) {
            match open() {
                Ok(socket) => sockets.push(socket),
                Err(_) => break, // no place or no descriptor: in a while
            }
        }
        thread::sleep(LOOK);
        sockets.retain_mut(|socket| is_open(socket) && is_bearable(&more(socket)));
    }
}

/// Whether the server still holds the connection. The bytes that it sends are thrown away.
fn is_open(socket: &mut impl Read) -> bool {
    match socket.read(&mut [0; 512]) {
        Ok(count) => count > 0,
        Err(error) => error.kind() == ErrorKind::WouldBlock,
    }
}

/// Whether the connection still works. A server that takes no more bytes has not closed it.
fn is_bearable(outcome: &io::Result<()>) -> bool {
    outcome.as_ref().err().is_none_or(|error| error.kind() == ErrorKind::WouldBlock)
}

fn enter(socket: &Path, export: &str) -> io::Result<UnixStream> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(PATIENCE)?;
    negotiate(&mut stream, export)?;
    Ok(stream)
}

fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    TcpStream::connect_timeout(&address, Duration::from_secs(1))
}

/// A request at offset zero, without flags (NBD protocol, "Request message").
fn request(command: u16, length: u32) -> Vec<u8> {
    let mut bytes = 0x2560_9513_u32.to_be_bytes().to_vec();
    bytes.extend(0_u16.to_be_bytes());
    bytes.extend(command.to_be_bytes());
    bytes.extend([0; 16]);
    bytes.extend(length.to_be_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_server_closes_is_opened_again_until_the_attack_is_over() {
        let stop = AtomicBool::new(false);
        let (mut opened, mut kept) = (0, Vec::new());
        let open = || {
            let (here, there) = UnixStream::pair()?;
            here.set_nonblocking(true)?;
            opened += 1;
            match opened {
                1 => drop(there),
                4 => stop.store(true, Ordering::Release),
                _ => kept.push(there),
            }
            Ok(here)
        };
        hold(3, open, &stop, |_| Ok(()));
        assert_eq!(opened, 4);
    }

    #[test]
    fn a_request_has_28_bytes() {
        assert_eq!(request(READ, 4096).len(), 28);
    }
}
