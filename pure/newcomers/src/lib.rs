//! Peers that have connected and not yet said what they want: a bounded number, in which a newcomer always
//! finds a place.
//!
//! When all places are taken, a newcomer gets the place of the oldest peer of that address which has the most
//! of them. A good peer needs its place for milliseconds, and is never the oldest for long; a silent one
//! keeps it until others need it. A bound that refuses newcomers instead would let silent peers keep
//! everybody out for as long as they are waited for.
//!
//! All listeners use it: for clients, for HTTP, and a controller's for its gateways. It has no sockets and no
//! clock: the caller closes the connection of who gives way.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};

/// Whose share a connection counts to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Origin {
    /// A host.
    V4(Ipv4Addr),
    /// A network of /64: a host usually has all addresses of one.
    V6(u64),
    /// A user of this host.
    User(u32),
    /// The system does not tell.
    Unknown,
}

/// The number of a newcomer, in the order of their coming.
pub type Ticket = u64;

/// Those who have come.
#[derive(Debug)]
pub struct Newcomers {
    most: u32,
    next_ticket: Ticket,
    /// Those of each address, oldest first. No address is without any.
    origins: BTreeMap<Origin, VecDeque<Ticket>>,
    count: u64,
}

impl Newcomers {
    /// Nobody, with places for so many.
    pub const fn new(most: u32) -> Self {
        Self { most, next_ticket: 0, origins: BTreeMap::new(), count: 0 }
    }

    /// Another number of places, for those to come.
    pub fn set_most(&mut self, most: u32) {
        self.most = most;
    }

    /// How many there are.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Somebody has come. The second is who gives way, if somebody has to, and that is over with this call.
    pub fn begin(&mut self, origin: Origin) -> (Ticket, Option<(Ticket, Origin)>) {
        let given_up = self.oldest_of_the_most().filter(|_| self.count >= u64::from(self.most));
        if let Some((ticket, origin)) = given_up {
            self.end(ticket, origin);
        }
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        self.origins.entry(origin).or_default().push_back(ticket);
        self.count += 1;
        (ticket, given_up)
    }

    /// Somebody is no newcomer any more. One that gave way is over already.
    pub fn end(&mut self, ticket: Ticket, origin: Origin) {
        let Some(of_address) = self.origins.get_mut(&origin) else { return };
        if let Ok(at) = of_address.binary_search(&ticket) {
            of_address.remove(at);
            self.count -= 1;
        }
        if of_address.is_empty() {
            self.origins.remove(&origin);
        }
    }

    /// The oldest of the address with the most; of several such addresses, of that which has waited longest.
    fn oldest_of_the_most(&self) -> Option<(Ticket, Origin)> {
        let oldest = |(origin, of): (&Origin, &VecDeque<Ticket>)| Some((of.len(), *of.front()?, *origin));
        let order = |(length, ticket, _): &(usize, Ticket, Origin)| (*length, std::cmp::Reverse(*ticket));
        let found = self.origins.iter().filter_map(oldest).max_by_key(order);
        found.map(|(_, ticket, origin)| (ticket, origin))
    }
}

impl From<IpAddr> for Origin {
    fn from(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self::V4(address),
            IpAddr::V6(address) => {
                let [a, b, c, d, e, f, g, h, ..] = address.octets();
                Self::V6(u64::from_be_bytes([a, b, c, d, e, f, g, h]))
            }
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::V4(address) => address.fmt(f),
            Self::V6(network) => {
                write!(f, "{}/64", std::net::Ipv6Addr::from_bits(u128::from(*network) << 64))
            }
            Self::User(user) => write!(f, "user {user}"),
            Self::Unknown => f.write_str("unknown"),
        }
    }
}
