//! How gateways come and go: which of them the controller accepts, and which must wait.
//!
//! **A name belongs to one process at a time.** If two processes with one name took each other's place, each
//! would be granted what the other one still holds. So the controller refuses a hello while another run of
//! the gateway is connected and reports. A run that is silent for a lease gives way: by then its lease is
//! over, even if its connection seems to live. A run that returns on a new stream takes its own place at
//! once.
//!
//! **What another run may hold is set aside.** When the controller accepts a new run, the run before it may
//! be dead, or cut off with a lease that still holds; the controller cannot tell which. So it counts both
//! runs until that lease is over. Only then does the new run get a part of what is shared out. A run that is
//! refused is counted in the same way for as long as it keeps asking: it serves its volumes with its static
//! part.
//!
//! **Invented names are forgotten.** A gateway may serve volumes that the controller's file does not name, as
//! many as its static part has room for. The controller forgets their names when no gateway serves them any
//! more.

use std::collections::BTreeSet;

use weir_control::TotalConcurrency;
use weir_model::Instant;

use crate::connection::{Connection, Refused};
use crate::controller::Controller;
use crate::gateways::{Due, Gateway, Stream};
use crate::ledger::{GatewayKey, Known, Sent};
use crate::message::Hello;
use crate::record::Event;

/// How many volumes a gateway may serve beyond those of the file, while the total is being probed.
const MOST_UNKNOWN: usize = 64;

impl Controller {
    /// A gateway has opened a stream. An earlier stream of this run is over. The caller has checked that the
    /// gateway may use this name.
    ///
    /// # Errors
    /// If the configuration does not name the gateway, its pool is under another law, another run of it is
    /// connected, or it has too many volumes.
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
        if hello.is_of_promises {
            return Err(Refused::OtherLaw { name: name.to_owned(), found: "promise", accepted: "maestro" });
        }
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

    /// If another run was accepted before, that run may hold what it was granted until its lease is over.
    fn set_former_aside(&mut self, now: Instant, key: GatewayKey, run: u64) {
        let former = self.gateways.get(&key).and_then(|gateway| gateway.run).filter(|former| *former != run);
        let Some((_, Known { grants, until, .. })) = former.zip(self.ledger.known(now, key)) else { return };
        if until > now {
            let former = Sent { number: 0, at: now, until, fallback: grants.clone(), grants };
            self.set_aside(now, key, former);
            self.gateways.entry(key).or_default().waits_until = until;
        }
    }

    /// Counts what another run of a gateway may hold, beside what this run holds.
    fn set_aside(&mut self, now: Instant, key: GatewayKey, held: Sent) {
        let name = self.gateway_names.name(key).unwrap_or_default();
        let other = self.gateway_names.key(&format!("{name} (another run)")); // no name of a gateway has blanks in it
        self.ledger.set_aside(now, other, held, self.most_volumes());
        self.gateways.entry(other).or_default().volumes = self.ledger.volumes(other);
    }

    /// Takes in a gateway on a new stream, which holds `held`.
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

    /// Whether a gateway may serve so many volumes. Each volume takes at least one request, and all of them
    /// together no more than the gateway's static part. No other gateway is ever granted that part, so
    /// invented volumes take nothing from others.
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

    /// Forgets all volumes that neither the configuration names nor any gateway serves.
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
