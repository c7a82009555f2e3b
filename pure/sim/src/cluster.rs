//! A whole cluster in simulated time: gateways with real engines and leaseholders, a real controller, and one
//! array.
//!
//! One part builds on what another promises. Example: an engine that keeps a lease too long takes from
//! another gateway, which was granted the rest. No test of one part sees that. So here all parts run
//! together, joined as the real drivers join them. Meanwhile, the machines' clocks differ and drift. Messages
//! are lost, late, repeated and overtaken. Streams break, and processes pause, die and come back. After each
//! instant, the checkers look at the whole cluster ([`check`]).
//!
//! **At one instant**, events happen in this order: faults, then the array, then the gateways by number, then
//! the controller.
//!
//! **Not modelled**: two gateways with one name, changes of the configuration, a total that is probed
//! (`TotalConcurrency::Auto`).

mod check;
mod clock;
mod controller;
mod device;
mod gateway;
mod link;
mod net;
mod process;
mod promise;
mod rules;
mod scenario;
mod surroundings;
mod uplink;

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use weir_control::TotalConcurrency;
use weir_model::{Instant, Span};

use crate::check::Violation;
use crate::random::{Prng, Seed};
use crate::world::{Observer, Outcome};
use check::ClusterCheckers;
use device::Device;
use gateway::Gateway;
use net::Net;
use rules::{Kept, Rules};
use surroundings::{Going, Surroundings};

pub use clock::Clock;
pub use link::Weather;
pub use scenario::{ClusterFault, ClusterScenario, GatewayScenario, scenario};

/// Runs a cluster until the duration of its scenario is over, with all checkers on. The observer is told the
/// events of all engines, in true time.
///
/// # Errors
/// If a rule is broken that must hold in every run. The run stops there.
pub fn run(scenario: &ClusterScenario, observer: &mut dyn Observer) -> Result<Outcome, Violation> {
    run_with(scenario, &Kept, observer)
}

/// Like [`run`], with rules of which a test may break one.
fn run_with(
    scenario: &ClusterScenario,
    rules: &dyn Rules,
    observer: &mut dyn Observer,
) -> Result<Outcome, Violation> {
    let mut run = Run::new(scenario, rules, observer);
    match run.turns() {
        Ok(()) => Ok(run.outcome()),
        Err(what) => Err(Violation { seed: scenario.seed, at: run.now, what }),
    }
}

/// A run that has begun.
struct Run<'a> {
    now: Instant,
    end: Instant,
    gateways: Vec<Gateway>,
    controller: controller::Process,
    net: Net,
    device: Device,
    handover: Span,
    random: Prng,
    faults: VecDeque<(Instant, ClusterFault)>,
    /// When the last of the faults that have begun is over.
    wrong_until: Instant,
    checkers: ClusterCheckers,
    rules: &'a dyn Rules,
    observer: &'a mut dyn Observer,
    outcome: Outcome,
}

impl<'a> Run<'a> {
    fn new(scenario: &ClusterScenario, rules: &'a dyn Rules, observer: &'a mut dyn Observer) -> Self {
        let (now, seed) = (Instant::ORIGIN, Seed(scenario.seed));
        let config = &scenario.controller;
        let TotalConcurrency::Fixed(total) = config.total else {
            panic!("the total of a simulated cluster is fixed")
        };
        let gateways: Vec<_> = scenario
            .gateways
            .iter()
            .enumerate()
            .map(|(n, of)| Gateway::new(n, of.clock, config.interval, of.volumes.clone()))
            .collect();
        let net = Net::new(gateways.len(), config.interval, scenario.weather, seed.stream("cluster/network"));
        Self {
            now,
            end: now + scenario.duration,
            gateways,
            controller: controller::Process::new(scenario.clock, config.clone(), scenario.volumes.clone()),
            net,
            device: Device::new(scenario.array, seed),
            handover: scenario.handover,
            random: seed.stream("cluster/gateways"),
            faults: scenario.faults.iter().map(|(at, what)| (now + *at, *what)).collect(),
            wrong_until: now,
            checkers: ClusterCheckers::new(scenario, total.get()),
            rules,
            observer,
            outcome: Outcome::default(),
        }
    }

    fn outcome(self) -> Outcome {
        let outstanding = self.gateways.iter().map(Gateway::outstanding).sum();
        Outcome { outstanding, utilisation: self.device.utilisation(self.now), ..self.outcome }
    }

    fn turns(&mut self) -> Going {
        loop {
            let next = self.next_at();
            if next > self.end {
                return Ok(());
            }
            self.now = self.now.max(next);
            self.turn()?;
        }
    }

    fn next_at(&mut self) -> Instant {
        let (now, net) = (self.now, &mut self.net);
        let gateways = self.gateways.iter().map(|gateway| gateway.next_at(now, net)).min();
        let fault = self.faults.front().map(|(at, _)| *at);
        let others = self.device.next_at().min(self.controller.next_at(&self.net));
        gateways.into_iter().chain(fault).fold(others, Instant::min)
    }

    /// Everything that happens now.
    fn turn(&mut self) -> Going {
        let now = self.now;
        while self.faults.front().is_some_and(|(at, _)| *at <= now) {
            let Some((_, fault)) = self.faults.pop_front() else { break };
            self.wrong_until = self.wrong_until.max(now + fault.lasts());
            self.follow(fault);
        }
        while let Some((asked, ok)) = self.device.poll_finished(now) {
            self.gateways[asked.gateway].handle_finished(asked, ok);
        }
        for gateway in &mut self.gateways {
            if gateway.next_at(now, &mut self.net) <= now {
                gateway.turn(&mut Surroundings {
                    now,
                    net: &mut self.net,
                    device: &mut self.device,
                    rules: self.rules,
                    handover: self.handover,
                    random: &mut self.random,
                    observer: self.observer,
                    outcome: &mut self.outcome,
                })?;
            }
        }
        if self.controller.next_at(&self.net) <= now {
            self.controller.turn(now, &mut self.net, self.rules);
        }
        self.net.sweep();
        let array = (self.device.at_array(), self.device.drains_in());
        self.checkers.at_rest(now, &self.gateways, array, self.wrong_until)
    }

    fn follow(&mut self, fault: ClusterFault) {
        let now = self.now;
        let until = now + fault.lasts();
        match fault {
            ClusterFault::GatewayPauses(gateway, _) => {
                self.gateways[gateway].pause(until);
                self.net.paused(now, Some(gateway), until);
            }
            ClusterFault::GatewayCrashes(gateway, _) => {
                self.outcome.aborted += self.gateways[gateway].crash(until);
                self.net.gateway_died(now, gateway);
            }
            ClusterFault::ControllerPauses(_) => {
                self.controller.pause(until);
                self.net.paused(now, None, until);
            }
            ClusterFault::ControllerCrashes(_) => self.controller.crash(now, until, &mut self.net),
            ClusterFault::LinkCut(gateway, _) => self.net.cut(now, gateway, until),
            ClusterFault::FoulWeather(gateway, _, weather) => self.net.set_foul(gateway, until, weather),
            ClusterFault::Load(gateway, volume, outstanding) => {
                self.gateways[gateway].set_load(volume, outstanding);
            }
        }
    }
}
