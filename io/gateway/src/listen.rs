//! Listening sockets: binding them without taking anything from a live server.

use std::fmt;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use socket2::TcpKeepalive;
use thiserror::Error;
use tokio::net::{TcpListener, UnixListener};

use crate::stream::Stream;

/// Where clients connect to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Address {
    /// TCP; port 0 takes a free one.
    Tcp(SocketAddr),
    /// A Unix stream socket.
    Unix(PathBuf),
}

/// A bound socket that accepts nothing yet. Dropping it removes the path of a Unix socket.
#[derive(Debug)]
pub struct Listener {
    address: Address,
    socket: Bound,
}

#[derive(Debug)]
enum Bound {
    Tcp(TcpListener),
    Unix { listener: UnixListener, inode: u64 },
}

/// Why an address cannot be listened on.
#[derive(Debug, Error)]
pub enum ListenError {
    /// Another server answers on the path.
    #[error("{0}: a live server listens on this socket; accepted: a path of its own for each server")]
    TakenByLiveServer(PathBuf),
    /// Something that is no socket is in the way.
    #[error("{0}: exists and is not a socket; accepted: a free path, or a socket that a server left behind")]
    NotASocket(PathBuf),
    /// The system refused.
    #[error("{address}: cannot listen: {source}; accepted: an address of this host that is free")]
    Refused {
        /// The address asked for.
        address: Address,
        /// What the system said.
        source: io::Error,
    },
}

impl Listener {
    /// Binds `address`. A Unix socket that a dead server left behind is replaced; nothing else ever is.
    ///
    /// # Errors
    /// If the address is in use, not permitted, or its path is taken by something else.
    ///
    /// # Panics
    /// Outside a tokio runtime with I/O enabled.
    pub fn bind(address: Address) -> Result<Self, ListenError> {
        let socket = match &address {
            Address::Tcp(tcp) => bind_tcp(*tcp),
            Address::Unix(path) => {
                clear_stale_socket(path)?;
                bind_unix(path)
            }
        };
        match socket {
            Ok(socket) => Ok(Self { address, socket }),
            Err(source) => Err(ListenError::Refused { address, source }),
        }
    }

    /// The address that clients connect to, with the port that was taken if port 0 was asked for.
    pub fn local_address(&self) -> Address {
        match &self.socket {
            Bound::Tcp(listener) => listener.local_addr().map_or_else(|_| self.address.clone(), Address::Tcp),
            Bound::Unix { .. } => self.address.clone(),
        }
    }

    /// The next connection, and a name for the log.
    pub(crate) async fn accept(&self) -> io::Result<(Stream, String)> {
        match &self.socket {
            Bound::Tcp(listener) => {
                let (stream, peer) = listener.accept().await?;
                // Replies are written whole; waiting for more to send would only delay them.
                stream.set_nodelay(true)?;
                socket2::SockRef::from(&stream).set_tcp_keepalive(&keepalive())?;
                Ok((Stream::Tcp(stream), peer.to_string()))
            }
            Bound::Unix { listener, .. } => {
                let (stream, _) = listener.accept().await?;
                Ok((Stream::Unix(stream), self.address.to_string()))
            }
        }
    }
}

/// A client that lost its power sends nothing more, and must not keep its place for ever: found out after two minutes.
fn keepalive() -> TcpKeepalive {
    let (idle, interval) = (Duration::from_secs(60), Duration::from_secs(15));
    TcpKeepalive::new().with_time(idle).with_interval(interval).with_retries(4)
}

fn bind_tcp(address: SocketAddr) -> io::Result<Bound> {
    let domain = socket2::Domain::for_address(address);
    let socket = socket2::Socket::new(domain, socket2::Type::STREAM, None)?;
    // So that a restart need not wait for the connections of the server before to time out.
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(1024)?;
    Ok(Bound::Tcp(TcpListener::from_std(socket.into())?))
}

fn bind_unix(path: &Path) -> io::Result<Bound> {
    let listener = UnixListener::bind(path)?;
    let inode = fs::metadata(path)?.ino();
    Ok(Bound::Unix { listener, inode })
}

fn clear_stale_socket(path: &Path) -> Result<(), ListenError> {
    let Ok(found) = fs::symlink_metadata(path) else { return Ok(()) };
    if !found.file_type().is_socket() {
        return Err(ListenError::NotASocket(path.into()));
    }
    match std::os::unix::net::UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path)
            .map_err(|source| ListenError::Refused { address: Address::Unix(path.into()), source }),
        // Connected, or refused for want of permission or backlog: somebody is there.
        _ => Err(ListenError::TakenByLiveServer(path.into())),
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let (Address::Unix(path), Bound::Unix { inode, .. }) = (&self.address, &self.socket) {
            // Another server may have replaced the path since; its socket is not ours to remove.
            if fs::metadata(path).is_ok_and(|found| found.ino() == *inode) {
                let _ = fs::remove_file(path);
            }
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unix(path: &Path) -> Address {
        Address::Unix(path.into())
    }

    #[tokio::test]
    async fn a_socket_of_a_live_server_is_not_taken_and_one_of_a_dead_server_is() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("nbd.sock");
        let live = std::os::unix::net::UnixListener::bind(&path).unwrap();
        assert!(matches!(Listener::bind(unix(&path)), Err(ListenError::TakenByLiveServer(_))));
        drop(live); // leaves the path behind, as a killed server does
        let listener = Listener::bind(unix(&path)).unwrap();
        drop(listener);
        assert!(!path.exists(), "a listener removes its path");
    }

    #[tokio::test]
    async fn a_file_in_the_way_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("data");
        fs::write(&path, "precious").unwrap();
        assert!(matches!(Listener::bind(unix(&path)), Err(ListenError::NotASocket(_))));
        assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
    }

    #[tokio::test]
    async fn a_port_in_use_is_refused_by_name() {
        let first = Listener::bind(Address::Tcp("127.0.0.1:0".parse().unwrap())).unwrap();
        let error = Listener::bind(first.local_address()).unwrap_err().to_string();
        assert!(error.contains("127.0.0.1:") && error.contains("in use"), "{error}");
    }
}
