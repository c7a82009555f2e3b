//! A run: clients, the real engine and an array, driven from one event's instant to the next. Volumes may be
//! behind several gateways, each with an engine of its own ([`Spread`]).
//!
//! **At one instant**, events happen in this order: the array's answers, then faults and changes of
//! configuration, then the clients' requests, then what gateways hear from one another, then the engines'
//! timers. Then all that the engines issue goes to the array. Any order would do, but it must be fixed, or
//! the same seed would not give the same run.
//!
//! **The end.** A run ends when its duration is over, and not when its last request is answered. Otherwise a
//! load that an array cannot serve would have no end. Requests that are outstanding then are counted
//! ([`Outcome::outstanding`]), and have no latency. At the last instant there are no new requests, but
//! everything else happens, so that the last SLO window is closed.
//!
//! A request goes to the array at the volume's first byte plus its own offset. Volumes share bytes only if a
//! scenario lays them over each other.

mod agenda;
mod clients;
mod fingerprint;
mod gateway;
mod messages;
mod requests;
mod run;

use weir_engine::Event;
use weir_model::{Instant, IoKind, Span, VolumeId};

use crate::array::Utilisation;
use crate::check::Violation;
use crate::random::Seed;
use crate::scenario::Scenario;
use crate::workload::{Client, Trace};
use run::Run;

pub use fingerprint::Fingerprint;

/// An observer is told of everything that the engines of a run report.
pub trait Observer {
    /// The pool's engine reports `event`. A volume's number is its index in the scenario.
    fn on_event(&mut self, now: Instant, event: &Event);

    /// A client asks for something. Most observers judge by what is answered, and need not know.
    fn on_submit(&mut self, _now: Instant, _volume: VolumeId, _kind: IoKind) {}
}

/// A run that has not begun.
#[derive(Debug)]
pub struct World {
    scenario: Scenario,
    clients: Vec<Client>,
    spread: Spread,
}

/// Which gateway each volume is behind. Each gateway has an engine of its own, and all have one array.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Spread {
    /// By volume: its gateway, from zero. A volume that is not here is behind the first one. A port is behind
    /// the gateway of its volume.
    pub gateways: Vec<usize>,
    /// How long it takes until one gateway has what another tells it, by way of a controller.
    pub apart: Span,
}

/// What became of the requests of a run, and how busy the array was.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Outcome {
    /// How many the clients submitted.
    pub submitted: u64,
    /// How many the array answered with success.
    pub answered: u64,
    /// How many it answered with an error.
    pub failed: u64,
    /// How many were aborted, because their volume was removed.
    pub aborted: u64,
    /// How many were queued or at the array at the end.
    pub outstanding: u64,
    /// How busy the array was, from the start to the end.
    pub utilisation: Utilisation,
}

impl World {
    /// A run that has not begun.
    ///
    /// # Panics
    /// If the scenario makes no sense. [`Scenario::check`] says so beforehand, and why.
    pub fn new(scenario: Scenario) -> Self {
        if let Err(error) = scenario.check() {
            panic!("{error}");
        }
        let seed = Seed(scenario.seed);
        let clients = scenario.volumes.iter().map(|volume| Client::phased(volume, seed)).collect();
        Self { scenario, clients, spread: Spread::default() }
    }

    /// Loads the volume with this index by `trace` instead of by its phases: each request at its time,
    /// whether those before it were answered or not. Offsets are folded into the volume by modulo. A request
    /// that would reach over the end is clipped there.
    ///
    /// # Panics
    /// If there is no such volume.
    pub fn replay(&mut self, volume: usize, trace: Trace) {
        self.clients[volume] = Client::traced(trace, self.scenario.volumes[volume].size);
    }

    /// Lets the volumes be behind several gateways.
    pub fn spread(&mut self, spread: Spread) {
        self.spread = spread;
    }

    /// Runs until the duration of the scenario is over, with all checkers on.
    ///
    /// # Errors
    /// If a rule is broken that must hold in every run. The run stops there.
    pub fn run(self, observer: &mut dyn Observer) -> Result<Outcome, Violation> {
        Run::new(&self.scenario, self.clients, &self.spread, observer).finish()
    }
}

#[cfg(test)]
mod tests;
