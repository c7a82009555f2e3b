//! Connections to a controller, and the limits on their number.
//!
//! Any host that reaches the controller's address can open connections. Until a connection has proved by its
//! certificate and its hello that it is a gateway's, it is a newcomer. Newcomers have places of their own, in
//! which the next one always finds room: see `weir-newcomers`. So silent connections keep no gateway out,
//! however many addresses they come from, and no newcomer takes the place of a gateway.
//!
//! The connections of gateways are bounded for all, and for each peer's address: a gateway has one for each
//! of its leased pools. A gateway beyond a bound is refused, and told which bound it was.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};
use tokio::time::sleep;
use tonic::transport::server::Connected;
use weir_newcomers::{Newcomers, Origin, Ticket};

/// How many peers there may be, and what they are called in messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bounds {
    /// The most connections at a time.
    pub most: usize,
    /// The most connections of one address at a time.
    pub most_of_address: usize,
    /// Such as "gateways".
    pub peers: &'static str,
}

/// The bounds of a controller: half of the descriptors that a process usually has.
pub(crate) const OF_CONTROLLER: Bounds = Bounds { most: 512, most_of_address: 32, peers: "gateways" };

/// The most newcomers at a time: a quarter of the descriptors that a process usually has. A gateway is one
/// for some milliseconds.
const MOST_NEWCOMERS: u32 = 256;
/// How long the controller waits before it accepts again when the system has no descriptor left. Without the
/// wait, its attempts would take a whole core.
const PAUSE: Duration = Duration::from_millis(100);

/// A connection that has a place, until it gives way to another.
pub struct Admitted {
    stream: TcpStream,
    seat: Seat,
    /// Ends when the connection gives way. `None` after that.
    held: Option<oneshot::Receiver<Infallible>>,
}

/// The place of a connection.
#[derive(Clone)]
pub struct Seat {
    /// The address that the connection comes from.
    pub(crate) peer: SocketAddr,
    origin: Origin,
    ticket: Ticket,
    places: Places,
}

/// Why a peer gets no place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Full {
    /// All places are taken.
    All(Bounds),
    /// The places of its address are taken.
    Address(Bounds),
    /// The connection has given way to a newcomer just now.
    GaveWay,
}

/// Accepts connections until the receiver is gone.
pub async fn accept(listener: TcpListener, bounds: Bounds, admitted: mpsc::Sender<io::Result<Admitted>>) {
    let places = Places::new(bounds);
    loop {
        let (stream, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(peer = "unknown", %error, "a connection cannot be accepted");
                sleep(PAUSE).await;
                continue;
            }
        };
        let (seat, held, given_up) = places.begin(peer);
        if let Some(origin) = given_up {
            tracing::info!(
                peer = %origin,
                "{MOST_NEWCOMERS} connections have not proved that they are {}: the oldest gives way to a new one",
                bounds.peers
            );
        }
        let _ = stream.set_nodelay(true); // it works without, a little later
        if admitted.send(Ok(Admitted { stream, seat, held: Some(held) })).await.is_err() {
            return;
        }
    }
}

/// The present connections and their places.
#[derive(Clone)]
struct Places {
    bounds: Bounds,
    taken: Arc<Mutex<Taken>>,
}

struct Taken {
    newcomers: Newcomers,
    /// How many connections of gateways each address has.
    gateways: BTreeMap<Origin, usize>,
    /// All connections. One that is removed here ends.
    open: BTreeMap<Ticket, Open>,
}

struct Open {
    is_gateway: bool,
    _hold: oneshot::Sender<Infallible>,
}

impl Default for Taken {
    fn default() -> Self {
        Self { newcomers: Newcomers::new(MOST_NEWCOMERS), gateways: BTreeMap::new(), open: BTreeMap::new() }
    }
}

impl Places {
    fn new(bounds: Bounds) -> Self {
        Self { bounds, taken: Arc::default() }
    }

    /// Gives a newcomer a place. Returns also the origin of the connection that gave way to it, if one did.
    fn begin(&self, peer: SocketAddr) -> (Seat, oneshot::Receiver<Infallible>, Option<Origin>) {
        let mut taken = self.taken();
        let origin = Origin::from(peer.ip());
        let (ticket, given_up) = taken.newcomers.begin(origin);
        if let Some((ticket, _)) = given_up {
            taken.open.remove(&ticket);
        }
        let (hold, held) = oneshot::channel();
        taken.open.insert(ticket, Open { is_gateway: false, _hold: hold });
        let seat = Seat { peer, origin, ticket, places: self.clone() };
        (seat, held, given_up.map(|(_, origin)| origin))
    }

    /// Locks the places. No code can leave them half changed.
    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seat {
    /// Notes that the connection is a gateway's: from then on it never gives way. A second call changes
    /// nothing.
    ///
    /// # Errors
    /// If a bound is reached, or the connection has given way.
    pub fn settle(&self) -> Result<(), Full> {
        let bounds = self.places.bounds;
        let taken = &mut *self.places.taken();
        let Some(open) = taken.open.get_mut(&self.ticket) else { return Err(Full::GaveWay) };
        if open.is_gateway {
            return Ok(());
        }
        if taken.gateways.values().sum::<usize>() >= bounds.most {
            return Err(Full::All(bounds));
        }
        let of_address = taken.gateways.entry(self.origin).or_default();
        if *of_address >= bounds.most_of_address {
            return Err(Full::Address(bounds));
        }
        *of_address += 1;
        open.is_gateway = true;
        taken.newcomers.end(self.ticket, self.origin);
        Ok(())
    }

    /// Frees the place of a connection that has ended.
    fn leave(&self) {
        let taken = &mut *self.places.taken();
        taken.newcomers.end(self.ticket, self.origin);
        let was_gateway = taken.open.remove(&self.ticket).is_some_and(|open| open.is_gateway);
        if was_gateway && let Some(count) = taken.gateways.get_mut(&self.origin) {
            *count -= 1; // this connection was counted when it settled
        }
        taken.gateways.retain(|_, count| *count > 0);
    }
}

impl Admitted {
    /// Fails once the connection has given way.
    fn poll_held(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        if self.held.as_mut().is_some_and(|held| Pin::new(held).poll(cx).is_ready()) {
            self.held = None;
        }
        if self.held.is_some() { Ok(()) } else { Err(io::ErrorKind::ConnectionAborted.into()) }
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        self.seat.leave();
    }
}

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All(Bounds { most, peers, .. }) => {
                write!(f, "found {most} connections of {peers}; accepted: no more")
            }
            Self::Address(Bounds { most_of_address, peers, .. }) => {
                write!(f, "found {most_of_address} connections of {peers} at this address; accepted: no more")
            }
            Self::GaveWay => f.write_str("the connection has given way to a newer one"),
        }
    }
}

impl Connected for Admitted {
    type ConnectInfo = Seat;

    fn connect_info(&self) -> Seat {
        self.seat.clone()
    }
}

impl AsyncRead for Admitted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.poll_held(cx)?;
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Admitted {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_held(cx)?;
        Pin::new(&mut self.stream).poll_write(cx, data)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_held(cx)?;
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

    fn peer(n: usize) -> SocketAddr {
        (Ipv4Addr::from(u32::try_from(n).unwrap()), 7700).into()
    }

    fn is_open(held: &mut oneshot::Receiver<Infallible>) -> bool {
        held.try_recv() == Err(oneshot::error::TryRecvError::Empty)
    }

    #[test]
    fn silent_connections_of_any_number_of_addresses_leave_room_for_a_newcomer_and_end_no_gateway() {
        let places = Places::new(OF_CONTROLLER);
        let (gateway, mut gateway_held, _) = places.begin(peer(1));
        gateway.settle().unwrap();
        let mut silent: Vec<_> = (0..5000).map(|n| places.begin(peer(2 + n % 40)).1).collect();
        let (newcomer, mut held, given_up) = places.begin(peer(1));
        assert!(given_up.is_some(), "somebody gives way");
        silent.extend((0..100).map(|n| places.begin(peer(2 + n % 40)).1));
        assert!(is_open(&mut held), "the newcomer has time for its hello");
        assert_eq!(newcomer.settle(), Ok(()));
        silent.extend((0..5000).map(|n| places.begin(peer(1 + n)).1));
        assert!(is_open(&mut held) && is_open(&mut gateway_held), "who is a gateway does not give way");
        let open = silent.iter_mut().map(is_open).filter(|open| *open).count();
        assert_eq!(open, usize::try_from(MOST_NEWCOMERS).unwrap());
    }

    #[test]
    fn gateways_of_one_address_leave_places_to_the_others_and_a_place_that_is_left_is_free() {
        let places = Places::new(OF_CONTROLLER);
        let settle = |n| {
            let (seat, held, _) = places.begin(peer(n));
            let settled = seat.settle();
            if settled.is_err() {
                seat.leave();
            }
            settled.map(|()| (seat, held))
        };
        let refused = |n| settle(n).err().map(|full| full.to_string());
        let mut one: Vec<_> = (0..OF_CONTROLLER.most_of_address).filter_map(|_| settle(1).ok()).collect();
        assert_eq!(one.len(), OF_CONTROLLER.most_of_address);
        let found = "found 32 connections of gateways at this address; accepted: no more";
        assert_eq!(refused(1).as_deref(), Some(found));
        assert_eq!(one[0].0.settle(), Ok(()), "a second stream of a connection takes no second place");
        let others: Vec<_> = (2..=OF_CONTROLLER.most - OF_CONTROLLER.most_of_address + 1)
            .filter_map(|n| settle(n).ok())
            .collect();
        assert_eq!(one.len() + others.len(), OF_CONTROLLER.most);
        let found = "found 512 connections of gateways; accepted: no more";
        assert_eq!(refused(0).as_deref(), Some(found));
        one.pop().unwrap().0.leave();
        one.push(settle(0).unwrap());
        one.iter().chain(&others).for_each(|(seat, _)| seat.leave());
        let taken = places.taken();
        assert!(taken.gateways.is_empty() && taken.open.is_empty(), "nothing is kept");
        assert_eq!(taken.newcomers.count(), 0);
    }
}
