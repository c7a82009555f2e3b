//! Makes connections in the transmission phase from a URI, in blocking calls.
//!
//! The calls run where they may wait: before anything is served, and for a reconnection on a thread of its
//! own. The look-up of a name may take any time.
//!
//! **A peer that disappears silently** is for the kernel to notice, because only the kernel sees
//! acknowledgements. It probes an idle connection, and gives it up after ten seconds. It gives up after
//! thirty seconds if the data stay unacknowledged, or if the server does not take them. A time limit of
//! weir's own on answers would cut off a slow flush, which is no sign of a failure.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, ToSocketAddrs};
use std::num::NonZeroU32;
use std::time::Duration;

use socket2::{Domain, SockAddr, Socket, TcpKeepalive, Type};
use thiserror::Error;
use weir_clock::Clock;
use weir_model::{Instant, Span};
use weir_nbd::client::{Address, ClientHandshake, Connecting, HandshakeError, Target};

use super::abilities::Abilities;

/// How long connecting and negotiating may take, for each connection.
const CONNECT_WITHIN: Span = Span::from_secs(5);
/// When an idle connection is first probed, the time between two probes, and the number of probes before it
/// is given up.
const PROBE_AFTER: Duration = Duration::from_secs(4);
const PROBE_EVERY: Duration = Duration::from_secs(2);
const PROBES: u32 = 3;
/// How long data may stay unacknowledged, or wait for the server to take them.
const UNACKNOWLEDGED: Duration = Duration::from_secs(30);

/// Connections that are ready for requests, and the abilities of the export behind them.
#[derive(Debug)]
pub(crate) struct Established {
    pub(super) connections: Vec<Negotiated>,
    pub(super) abilities: Abilities,
}

/// One connection that is ready for requests.
#[derive(Debug)]
pub(super) struct Negotiated {
    pub(super) socket: Socket,
    pub(super) structured_replies: bool,
}

/// Why there is no connection.
#[derive(Debug, Error)]
pub enum ConnectError {
    /// The network or the host refused the connection.
    #[error("cannot connect: {0}")]
    Unreachable(#[from] io::Error),
    /// A process accepts the connection there, and does not answer.
    #[error("the server did not finish the handshake within {} s", CONNECT_WITHIN.as_micros() / 1_000_000)]
    Silent,
    /// The server refuses, or the peer is no NBD server.
    #[error(transparent)]
    Refused(#[from] HandshakeError),
    /// weir cannot serve the export.
    #[error("the export {0}")]
    Unusable(String),
    /// The export is not what it was before; the text says how.
    #[error("the export has changed: {0}")]
    Changed(String),
}

/// Connects to `target`: `most` times if a flush on one connection covers all, otherwise once. If the server
/// lets in fewer, there are fewer.
///
/// # Errors
/// If there is no connection at all.
pub(super) fn connect(target: &Target, most: NonZeroU32) -> Result<Established, ConnectError> {
    let (first, abilities) = connect_once(target)?;
    let mut connections = vec![first];
    while abilities.multi_conn && connections.len() < most.get() as usize {
        match connect_once(target) {
            Ok((next, same)) if same == abilities => connections.push(next),
            Ok((_, other)) => {
                let how = abilities.difference(&other).unwrap_or_default();
                return Err(ConnectError::Changed(how));
            }
            Err(error) => {
                let (upstream, connections) = (target.to_string(), connections.len());
                tracing::warn!(upstream, connections, %error, "the server lets in fewer connections than asked for");
                break;
            }
        }
    }
    Ok(Established { connections, abilities })
}

fn connect_once(target: &Target) -> Result<(Negotiated, Abilities), ConnectError> {
    let clock = Clock::new();
    let limit = Limit { clock, end: clock.now() + CONNECT_WITHIN };
    let socket = open(target, limit)?;
    let mut handshake = ClientHandshake::new(target.export(), true)?;
    let mut buffer = [0; 4096];
    loop {
        let count = read(&socket, &mut buffer, limit)?;
        if count == 0 {
            return Err(handshake.handle_end().into());
        }
        let progress = handshake.handle_input(&buffer[..count]);
        let sent = write(&socket, &handshake.take_output(), limit);
        match progress? {
            Connecting::NeedMore => sent?,
            Connecting::Ready { export, rest } => {
                if !rest.is_empty() {
                    return Err(
                        HandshakeError::BadReply("bytes after the handshake that nobody asked for").into()
                    );
                }
                let abilities = Abilities::of(&export).map_err(ConnectError::Unusable)?;
                socket.set_nonblocking(true)?;
                return Ok((Negotiated { socket, structured_replies: export.structured_replies }, abilities));
            }
        }
    }
}

/// A connected socket, to the first address that accepts.
fn open(target: &Target, limit: Limit) -> Result<Socket, ConnectError> {
    match target.address() {
        Address::Unix(path) => {
            let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
            socket.connect_timeout(&SockAddr::unix(path)?, limit.left()?)?;
            Ok(socket)
        }
        Address::Tcp { host, port } => {
            let mut refusal = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
            for address in (host.as_str(), *port).to_socket_addrs()? {
                match open_tcp(address, limit) {
                    Ok(socket) => return Ok(socket),
                    Err(error) => refusal = error,
                }
            }
            Err(refusal.into())
        }
    }
}

fn open_tcp(address: SocketAddr, limit: Limit) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    let left = limit.left().map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?;
    socket.connect_timeout(&address.into(), left)?;
    socket.set_tcp_nodelay(true)?;
    let probes = TcpKeepalive::new().with_time(PROBE_AFTER).with_interval(PROBE_EVERY).with_retries(PROBES);
    socket.set_tcp_keepalive(&probes)?;
    socket.set_tcp_user_timeout(Some(UNACKNOWLEDGED))?;
    Ok(socket)
}

/// Reads; zero at the end of the stream. A connection that breaks during the handshake counts as closed by
/// the server, also if it was reset.
fn read(mut socket: &Socket, into: &mut [u8], limit: Limit) -> Result<usize, ConnectError> {
    loop {
        socket.set_read_timeout(Some(limit.left()?))?;
        match socket.read(into) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {} // a ring of this thread may do that
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Ok(0),
            Err(error) if is_timeout(&error) => return Err(ConnectError::Silent),
            read => return Ok(read?),
        }
    }
}

fn write(mut socket: &Socket, bytes: &[u8], limit: Limit) -> Result<(), ConnectError> {
    socket.set_write_timeout(Some(limit.left()?))?;
    match socket.write_all(bytes) {
        Err(error) if is_timeout(&error) => Err(ConnectError::Silent),
        written => Ok(written?),
    }
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

/// The instant by which a connection must be ready.
#[derive(Clone, Copy)]
struct Limit {
    clock: Clock,
    end: Instant,
}

impl Limit {
    /// The time that is left; at least a millisecond, because zero would mean no limit to a socket.
    fn left(self) -> Result<Duration, ConnectError> {
        let left = self.end.saturating_since(self.clock.now());
        if left < Span::from_millis(1) { Err(ConnectError::Silent) } else { Ok(left.into()) }
    }
}
