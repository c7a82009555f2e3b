//! How gateways come and go: who is accepted, and who must wait.
//!
//! **A name belongs to one process at a time.** If two processes with one name took each other's place, each
//! would be granted what the other one still holds. So a hello is refused while another run of the gateway is
//! connected and reports. A run that is silent for a lease gives way: it has lost what it was granted by
//! then, even if its connection seems to live. A run that returns on a new stream takes its own place at
//! once.
//!
//! **What another run may hold is set aside.** When a new run is accepted, the one before it may be dead, or
//! cut off with a lease in its hands; nobody can tell. Its holding is counted beside the new run's until the
//! lease is over, and only then does the new run take part in what is shared out. A run that is refused is
//! counted in the same way, for as long as it keeps asking: it serves its volumes with what is always left
//! for it.
//!
//! **Names that no file has are not kept.** A gateway may serve volumes that the controller has no
//! configuration of, as many as its part of the array has room for. Their names are forgotten when no gateway
//! serves them any more.

use std::collections::BTreeSet;

use thiserror::Error;
use weir_control::TotalConcurrency;
use weir_model::Instant;

use crate::controller::Controller;
use crate::gateways::{Due, Gateway, Stream};
use crate::ledger::{GatewayKey, Known, Sent};
use crate::message::Hello;
use crate::record::Event;

/// While the total is being probed, volumes of a gateway that no file has.
const MOST_UNKNOWN: usize = 64;

/// A stream of a gateway, of all that a controller ever had.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Connection(u64);

/// Why a gateway is not accepted.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum Refused {
    /// The configuration does not name it.
    #[error("gateway {name} is not configured at this controller; accepted: {accepted}")]
    Unknown {
        /// The gateway.
        name: String,
        /// Those that are.
        accepted: String,
    },
    /// Another run of it is connected.
    #[error("gateway {name} is connected already; accepted: one gateway of each name")]
    Taken {
        /// The gateway.
        name: String,
        /// The stream of the other.
        by: Connection,
    },
    /// It serves more volumes than it may.
    #[error(
        "gateway {name} serves {found} volumes; accepted: at most {accepted}, as each takes a request of the gateway's part of \
         the array: name them in the controller's file"
    )]
    TooMany {
        /// The gateway.
        name: String,
        /// How many volumes it serves.
        found: usize,
        /// How many it may.
        accepted: usize,
    },
}

impl Controller {
    /// A gateway has opened a stream; if this run of it had one, that is over. Its name was checked by
    /// whoever calls this.
    ///
    /// # Errors
    /// If the configuration does not name it, another run of it is connected, or it has too many volumes.
    pub fn handle_connected(
        &mut self,
        now: Instant,
        name: &str,
        hello: &Hello,
    ) -> Result<Connection, Refused> {
        let is_configured = |key: &GatewayKey| self.gateways.get(key).is_some_and(|found| found.configured);
        let Some(key) = self.gateway_names.known(name).filter(is_configured) else {
            return Err(Refused::Unknown {
                name: name.to_owned(),
                accepted: self.config.gateways.join(", "),
            });
        };
        self.check_volumes(key, hello.volumes.len())?;
        let held = self.claimed(now, key, hello);
        if let Some(by) = self.holder(now, key, hello.run) {
            self.set_aside(now, key, Sent { until: now + self.config.lease(), ..held });
            self.forget_names();
            return Err(Refused::Taken { name: name.to_owned(), by });
        }
        self.set_former_aside(now, key, hello.run);
        let connection = self.attach(now, key, hello, held);
        self.events
            .push_back(Event::GatewayConnected { gateway: name.to_owned(), volumes: hello.volumes.len() });
        self.forget_names();
        self.say_unknown(key);
        Ok(connection)
    }

    /// A gateway's stream is over.
    pub fn handle_disconnected(&mut self, _now: Instant, connection: Connection) {
        let Some(key) = self.gateway_of(connection) else { return };
        self.gateways.get_mut(&key).expect("found above").stream = None;
        self.due.remove(&key);
        let gateway = self.gateway_names.name(key).unwrap_or_default().to_owned();
        self.events.push_back(Event::GatewayLost { gateway });
    }

    /// The stream of another run of a gateway that has reported within a lease.
    fn holder(&self, now: Instant, key: GatewayKey, run: u64) -> Option<Connection> {
        let gateway = self.gateways.get(&key).filter(|gateway| gateway.run != Some(run))?;
        let stream = gateway.stream.as_ref()?;
        (now < stream.heard.1 + self.config.lease()).then_some(stream.connection)
    }

    /// If the run that was accepted before is another one, it may hold what it was granted until its lease is
    /// over.
    fn set_former_aside(&mut self, now: Instant, key: GatewayKey, run: u64) {
        let former = self.gateways.get(&key).and_then(|gateway| gateway.run).filter(|former| *former != run);
        let Some((_, Known { grants, until, .. })) = former.zip(self.ledger.known(now, key)) else { return };
        if until > now {
            let former = Sent { number: 0, at: now, until, fallback: grants.clone(), grants };
            self.set_aside(now, key, former);
            self.gateways.entry(key).or_default().waits_until = until;
        }
    }

    /// Counts what another run of a gateway may hold beside what this one does.
    fn set_aside(&mut self, now: Instant, key: GatewayKey, held: Sent) {
        let name = self.gateway_names.name(key).unwrap_or_default();
        let other = self.gateway_names.key(&format!("{name} (another run)")); // no name of a gateway has blanks in it
        self.ledger.set_aside(now, other, held, self.most_volumes());
        self.gateways.entry(other).or_default().volumes = self.ledger.volumes(other);
    }

    /// The state of a gateway on a new stream that holds this.
    fn attach(&mut self, now: Instant, key: GatewayKey, hello: &Hello, held: Sent) -> Connection {
        self.connections += 1;
        let connection = Connection(self.connections);
        let gateway = self.gateways.entry(key).or_default();
        if gateway.run.replace(hello.run).is_none() {
            gateway.reported = now;
        }
        gateway.volumes = held.grants.keys().copied().collect();
        gateway.wanted = held.grants.clone();
        gateway.target = held.grants.clone();
        gateway.stream = Some(Stream {
            connection,
            began: now,
            heard: (0, now),
            report: None,
            held: held.grants.clone(),
            left: held.until.saturating_since(now),
            confirmed: false,
        });
        self.ledger.connect(key, held);
        self.due.insert(key, Due::Welcome);
        connection
    }

    /// Whether a gateway may serve so many volumes. Each takes a request at least, and all of them no more
    /// than its part of the array, which nobody else is ever given: so no number of invented volumes takes
    /// anything from another gateway.
    pub(crate) fn check_volumes(&self, key: GatewayKey, found: usize) -> Result<(), Refused> {
        let accepted = self.most_volumes();
        if found <= accepted {
            return Ok(());
        }
        let name = self.gateway_names.name(key).unwrap_or_default().to_owned();
        Err(Refused::TooMany { name, found, accepted })
    }

    /// How many volumes a gateway may serve.
    fn most_volumes(&self) -> usize {
        let known = self.volumes.len();
        match self.config.total {
            TotalConcurrency::Fixed(_) => known.max(self.part() as usize),
            TotalConcurrency::Auto => known + MOST_UNKNOWN,
        }
    }

    /// Forgets all volumes that no file has and no gateway serves.
    pub(crate) fn forget_names(&mut self) {
        let mut needed: BTreeSet<_> = self.volumes.keys().copied().collect();
        for gateway in self.gateways.values_mut() {
            let Gateway { volumes, wanted, target, .. } = gateway;
            wanted.retain(|volume, _| volumes.contains(volume));
            target.retain(|volume, _| volumes.contains(volume));
            needed.extend(volumes.iter());
        }
        self.names.retain(|volume| needed.contains(&volume));
        self.said.retain(|volume| needed.contains(volume));
        self.ledger.retain_limits(|volume| needed.contains(&volume));
        let gateways = &self.gateways;
        self.gateway_names.retain(|gateway| gateways.contains_key(&gateway));
    }

    pub(crate) fn say_unknown(&mut self, key: GatewayKey) {
        let Some(gateway) = self.gateways.get(&key) else { return };
        for volume in &gateway.volumes {
            if !self.volumes.contains_key(volume) && self.said.insert(*volume) {
                let gateway = self.gateway_names.name(key).unwrap_or_default().to_owned();
                let volume = self.names.name(*volume).unwrap_or_default().to_owned();
                self.events.push_back(Event::VolumeUnknown { gateway, volume });
            }
        }
    }
}

#[cfg(test)]
mod tests;
