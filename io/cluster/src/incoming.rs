//! Connections to a controller, and how many there may be.
//!
//! Any host that reaches the controller's address can open connections, and each takes a descriptor until its
//! handshake has failed. So there is a limit for all connections, and one for those of each peer's address; a
//! connection beyond a limit is closed at once. A host that misbehaves thus leaves places to the others. A
//! gateway has one connection for each of its leased pools.

use std::collections::BTreeMap;
use std::io::{self, IoSlice};
use std::net::{IpAddr, Ipv6Addr};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::sleep;
use tonic::transport::server::{Connected, TcpConnectInfo};

/// The most connections at a time: half of the descriptors that a process usually has.
const MOST: usize = 512;
/// The most connections of one address at a time.
const MOST_OF_ADDRESS: usize = 32;
/// How long the controller waits before it accepts again when the system has no descriptor left. Without the
/// wait, its attempts would take a whole core.
const PAUSE: Duration = Duration::from_millis(100);

/// A connection, and its place among the most that there may be.
pub(crate) struct Admitted {
    stream: TcpStream,
    _place: Place,
}

/// Accepts connections until the receiver is gone.
pub(crate) async fn accept(listener: TcpListener, admitted: mpsc::Sender<io::Result<Admitted>>) {
    let places = Places::default();
    loop {
        let (stream, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(peer = "unknown", %error, "a connection cannot be accepted");
                sleep(PAUSE).await;
                continue;
            }
        };
        let Some(place) = places.take(origin(peer.ip())) else {
            tracing::warn!(
                %peer,
                "closed: found {MOST} connections, or {MOST_OF_ADDRESS} of this address; accepted: no more"
            );
            continue;
        };
        let _ = stream.set_nodelay(true); // it works without, a little later
        if admitted.send(Ok(Admitted { stream, _place: place })).await.is_err() {
            return;
        }
    }
}

/// What counts as one address: all of an IPv6 network of 64 bits, as one host can use any of them.
fn origin(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
        address => address,
    }
}

/// How many connections each address has.
#[derive(Clone, Default)]
struct Places(Arc<Mutex<BTreeMap<IpAddr, usize>>>);

/// A place that is taken until it is dropped.
struct Place {
    of: IpAddr,
    places: Places,
}

impl Places {
    fn take(&self, of: IpAddr) -> Option<Place> {
        let mut taken = self.taken();
        let all: usize = taken.values().sum();
        if all >= MOST || taken.get(&of).is_some_and(|count| *count >= MOST_OF_ADDRESS) {
            return None;
        }
        *taken.entry(of).or_default() += 1;
        Some(Place { of, places: self.clone() })
    }

    /// Nothing that holds it can leave it half changed.
    fn taken(&self) -> MutexGuard<'_, BTreeMap<IpAddr, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.taken();
        if let Some(count) = taken.get_mut(&self.of) {
            *count -= 1; // this place was counted when it was taken
        }
        taken.retain(|_, count| *count > 0);
    }
}

impl Connected for Admitted {
    type ConnectInfo = TcpConnectInfo;

    fn connect_info(&self) -> TcpConnectInfo {
        self.stream.connect_info()
    }
}

impl AsyncRead for Admitted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Admitted {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, data)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, data)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn address(n: usize) -> IpAddr {
        IpAddr::V4(Ipv4Addr::from(u32::try_from(n).unwrap()))
    }

    #[test]
    fn the_addresses_of_one_network_are_one_hosts() {
        let parsed = |text: &str| origin(text.parse().unwrap());
        assert_eq!(parsed("2001:db8::1"), parsed("2001:db8::ffff:0:2"));
        assert_ne!(parsed("2001:db8::1"), parsed("2001:db8:0:1::1"));
        assert_eq!(parsed("::ffff:10.0.0.1"), parsed("10.0.0.1"));
    }

    #[test]
    fn one_address_leaves_places_to_the_others_and_a_place_that_is_left_is_free() {
        let places = Places::default();
        let mut one: Vec<_> = (0..MOST_OF_ADDRESS).filter_map(|_| places.take(address(1))).collect();
        assert_eq!(one.len(), MOST_OF_ADDRESS);
        assert!(places.take(address(1)).is_none());
        let others: Vec<_> = (2..MOST).filter_map(|n| places.take(address(n))).collect();
        assert_eq!(one.len() + others.len(), MOST);
        assert!(places.take(address(0)).is_none(), "all are taken");
        one.pop();
        assert!(places.take(address(0)).is_some());
        drop((one, others));
        assert!(places.taken().is_empty(), "no address is kept");
    }
}
