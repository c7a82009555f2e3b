//! Listening sockets: binding them without taking anything from a live server.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use socket2::TcpKeepalive;
use tokio::net::TcpListener;
use weir_newcomers::Origin;

use crate::address::{Address, ListenError};
use crate::stream::Stream;
use crate::unix_socket::UnixSocket;

/// A bound socket that accepts nothing yet. Dropping it removes the path of a Unix socket.
#[derive(Debug)]
pub struct Listener {
    address: Address,
    socket: Bound,
}

#[derive(Debug)]
enum Bound {
    Tcp(TcpListener),
    Unix(UnixSocket),
}

impl Listener {
    /// Binds `address`. Replaces a Unix socket that a dead server left behind, and nothing else.
    ///
    /// # Errors
    /// If the address is in use or not permitted, or if another file has its path.
    ///
    /// # Panics
    /// Outside a tokio runtime with I/O enabled.
    pub fn bind(address: Address) -> Result<Self, ListenError> {
        let socket = match &address {
            Address::Unix(path) => Bound::Unix(UnixSocket::bind(path)?),
            Address::Tcp(tcp) => match bind_tcp(*tcp) {
                Ok(socket) => socket,
                Err(source) => return Err(ListenError::Refused { address, source }),
            },
        };
        Ok(Self { address, socket })
    }

    /// The address that clients connect to. If port 0 was asked for, it has the port that the system chose.
    pub fn local_address(&self) -> Address {
        match &self.socket {
            Bound::Tcp(listener) => listener.local_addr().map_or_else(|_| self.address.clone(), Address::Tcp),
            Bound::Unix(_) => self.address.clone(),
        }
    }

    /// The next connection, a name for the log, and the origin to which it is counted.
    ///
    /// # Errors
    /// If the system reports one; a later call may succeed.
    pub(crate) async fn accept(&self) -> io::Result<(Stream, String, Origin)> {
        match &self.socket {
            Bound::Tcp(listener) => {
                let (stream, peer) = listener.accept().await?;
                // Replies are written whole; waiting for more to send would only delay them. It can only fail
                // for a peer that is gone, which is found out when it is read.
                let _ = stream.set_nodelay(true);
                let _ = socket2::SockRef::from(&stream).set_tcp_keepalive(&keepalive());
                Ok((Stream::Tcp(stream), peer.to_string(), peer.ip().into()))
            }
            Bound::Unix(socket) => {
                let (stream, origin) = socket.accept().await?;
                Ok((Stream::Unix(stream), self.address.to_string(), origin))
            }
        }
    }
}

/// Probes a silent client. A client that lost its power sends nothing more, and would keep its place for
/// ever; with the probes it is found out after two minutes.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_address_in_use_is_refused_by_name() {
        let first = Listener::bind(Address::Tcp("127.0.0.1:0".parse().unwrap())).unwrap();
        let error = Listener::bind(first.local_address()).unwrap_err().to_string();
        assert!(error.contains("127.0.0.1:") && error.contains("in use"), "{error}");
    }
}
