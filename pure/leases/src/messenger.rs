//! The controller of a pool under the law of promises: it tells each gateway how the promises of all others
//! stand.
//!
//! The law runs in each gateway, over its own volumes. So there is nothing to share out here, and no lease.
//! A gateway that hears nothing for two seconds holds its background volumes where they are, by itself.
//!
//! - **Silence means lost.** A gateway is told something at least every half second, even if nothing changes.
//! - **A flood stays here.** A gateway is told something at most every 5 ms, however often the others speak.
//!   What came meanwhile is in the next message.
//! - **A new controller knows nothing**, and says nothing until all gateways have said how they stand, or a
//!   start has lasted for three seconds. Otherwise the first gateway to come would hear that nobody is
//!   promised anything, and let its background volumes go.
//! - **A name belongs to one process at a time**, as with leases. A run that is silent for two seconds gives
//!   way to another.
//! - **A gateway that is gone is forgotten after two seconds.** Then it has no clients, or it is cut off and
//!   guards its promises alone.

use std::collections::{BTreeMap, VecDeque};

use weir_control::{Standing, Standings};
use weir_model::{Instant, Span};

use crate::connection::{Connection, Refused};
use crate::message::Hello;
use crate::record::Event;

/// A gateway is told something at least so often.
const SILENT: Span = Span::from_millis(500);
/// A gateway is told something at most so often.
const GAP: Span = Span::from_millis(5);
/// A new controller waits at most so long for its gateways.
const START: Span = Span::from_secs(3);
/// A run of a gateway that is silent for so long gives way to another.
const GIVES_WAY: Span = Span::from_secs(2);

/// The controller of an array under the law of promises.
#[derive(Debug)]
pub struct Messenger {
    gateways: BTreeMap<String, Gateway>,
    standings: Standings<String>,
    /// Until when a new controller waits for its gateways; `None`: it waits no more.
    starts_until: Option<Instant>,
    connections: u64,
    events: VecDeque<Event>,
}

/// A gateway of the configuration.
#[derive(Default, Debug)]
struct Gateway {
    /// The run of it that was accepted last.
    run: Option<u64>,
    stream: Option<Stream>,
}

#[derive(Debug)]
struct Stream {
    connection: Connection,
    /// When the gateway said something last.
    heard: Instant,
    /// Whether it has said how it stands.
    stands: bool,
    /// When it has to be told something.
    due: Instant,
    /// The earliest time for that.
    free: Instant,
}

/// A gateway at a glance.
#[derive(Clone, PartialEq, Debug)]
pub struct GatewayStanding {
    /// Its name.
    pub gateway: String,
    /// Whether it has a stream.
    pub connected: bool,
    /// How long ago it spoke last, if it is connected.
    pub heard: Option<Span>,
    /// How its promises stand; `None`: it has not said so for two seconds.
    pub standing: Option<Standing>,
}

impl Messenger {
    /// The controller of these gateways. It knows nothing yet of how they stand.
    pub fn new(now: Instant, gateways: impl IntoIterator<Item = String>) -> Self {
        Self {
            gateways: gateways.into_iter().map(|name| (name, Gateway::default())).collect(),
            standings: Standings::default(),
            starts_until: Some(now + START),
            connections: 0,
            events: VecDeque::new(),
        }
    }

    /// Changes which gateways there are. One that is no longer named loses its stream.
    pub fn set_gateways(&mut self, now: Instant, names: impl IntoIterator<Item = String>) {
        let mut before = std::mem::take(&mut self.gateways);
        let kept = |name: String| (name.clone(), before.remove(&name).unwrap_or_default());
        self.gateways = names.into_iter().map(kept).collect();
        before.keys().for_each(|name| self.standings.remove(name));
        self.tell_all(now);
    }

    /// A gateway has opened a stream. An earlier stream of this run is over. The caller has checked that the
    /// gateway may use this name.
    ///
    /// # Errors
    /// If the configuration does not name the gateway, its pool is under another law, or another run of it is
    /// connected.
    pub fn handle_connected(
        &mut self,
        now: Instant,
        name: &str,
        hello: &Hello,
    ) -> Result<Connection, Refused> {
        let Some(gateway) = self.gateways.get_mut(name) else {
            let accepted = self.gateways.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
            return Err(Refused::Unknown { name: name.to_owned(), accepted });
        };
        if !hello.is_of_promises {
            return Err(Refused::OtherLaw { name: name.to_owned(), found: "maestro", accepted: "promise" });
        }
        let other = gateway.stream.as_ref().filter(|_| gateway.run != Some(hello.run));
        if let Some(by) = other.filter(|stream| now < stream.heard + GIVES_WAY) {
            return Err(Refused::Taken { name: name.to_owned(), by: by.connection });
        }
        self.connections += 1;
        let connection = Connection(self.connections);
        gateway.run = Some(hello.run);
        gateway.stream = Some(Stream { connection, heard: now, stands: false, due: now, free: now });
        self.events.push_back(Event::GatewayJoined { gateway: name.to_owned() });
        Ok(connection)
    }

    /// A gateway says how its promises stand. On a stream that is over, this is ignored.
    pub fn handle_standing(&mut self, now: Instant, connection: Connection, standing: Standing) {
        let Some((name, stream)) = self.stream_of(connection) else { return };
        (stream.heard, stream.stands) = (now, true);
        let name = name.clone();
        if let Some(until) = self.starts_until {
            let stands = |gateway: &Gateway| gateway.stream.as_ref().is_some_and(|stream| stream.stands);
            self.starts_until = (!self.gateways.values().all(stands)).then_some(until);
        }
        for (other, gateway) in &mut self.gateways {
            if let Some(stream) = gateway.stream.as_mut().filter(|_| *other != name) {
                stream.due = stream.free;
            }
        }
        self.standings.set(now, name, standing);
    }

    /// A gateway's stream is over.
    pub fn handle_disconnected(&mut self, _now: Instant, connection: Connection) {
        let found = self.gateways.iter_mut().find(|(_, gateway)| gateway.is(connection));
        if let Some((name, gateway)) = found {
            gateway.stream = None;
            self.events.push_back(Event::GatewayLeft { gateway: name.clone() });
        }
    }

    /// The time of [`Messenger::poll_timeout`] has come.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.starts_until.is_some_and(|until| until <= now) {
            self.starts_until = None;
        }
    }

    /// When to call [`Messenger::handle_timeout`], and then [`Messenger::poll_message`].
    pub fn poll_timeout(&self) -> Instant {
        self.starts_until.unwrap_or_else(|| {
            let due = self.streams().map(|stream| stream.due.max(stream.free));
            due.min().unwrap_or(Instant::FAR_FUTURE)
        })
    }

    /// A message to a gateway: how all others stand.
    pub fn poll_message(&mut self, now: Instant) -> Option<(Connection, Standing)> {
        if self.starts_until.is_some() {
            return None;
        }
        let standings = &self.standings;
        self.gateways.iter_mut().find_map(|(name, gateway)| {
            let is_due = |stream: &&mut Stream| stream.due.max(stream.free) <= now;
            let stream = gateway.stream.as_mut().filter(is_due)?;
            (stream.due, stream.free) = (now + SILENT, now + GAP);
            Some((stream.connection, standings.beside(now, name)))
        })
    }

    /// Something for the log.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Whether a stream is still one of this controller: not if its gateway has opened another, or was
    /// removed.
    pub fn is_connected(&self, connection: Connection) -> bool {
        self.streams().any(|stream| stream.connection == connection)
    }

    /// The gateways, in the order of their names.
    pub fn gateways(&self, now: Instant) -> impl Iterator<Item = GatewayStanding> {
        self.gateways.iter().map(move |(name, gateway)| GatewayStanding {
            gateway: name.clone(),
            connected: gateway.stream.is_some(),
            heard: gateway.stream.as_ref().map(|stream| now.saturating_since(stream.heard)),
            standing: self.standings.of(now, name),
        })
    }

    fn tell_all(&mut self, now: Instant) {
        let streams = self.gateways.values_mut().filter_map(|gateway| gateway.stream.as_mut());
        streams.for_each(|stream| stream.due = now);
    }

    fn streams(&self) -> impl Iterator<Item = &Stream> {
        self.gateways.values().filter_map(|gateway| gateway.stream.as_ref())
    }

    fn stream_of(&mut self, connection: Connection) -> Option<(&String, &mut Stream)> {
        let (name, gateway) = self.gateways.iter_mut().find(|(_, gateway)| gateway.is(connection))?;
        Some((name, gateway.stream.as_mut()?))
    }
}

impl Gateway {
    fn is(&self, connection: Connection) -> bool {
        self.stream.as_ref().is_some_and(|stream| stream.connection == connection)
    }
}

#[cfg(test)]
mod tests;
