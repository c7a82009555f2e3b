//! What the sensors of nodes say, and when that counts no more.
//!
//! The sensor of a node counts what its device moves. What the transfers have not moved is the external load
//! (`weir_transfer::ExternalLoad`). Once a second, with its sample, the scheduler gets what is fresh.

use weir_model::{Direction, Instant};
use weir_status::SensorStatus;
use weir_transfer::{ExternalLoad, NodeIndex, STALE_AFTER};

use super::Desk;
use crate::proto;
use crate::sensor::page::Device;

/// Why a new sensor's figures are not used. That is no fault yet.
const SILENT: &str = "it has not answered yet";

/// What is known of a node's sensor.
#[derive(Debug)]
pub(super) struct Sensor {
    load: ExternalLoad,
    /// The kernel's name of the device that answered last.
    device: Option<String>,
    /// Why the last answer was no good one.
    problem: Option<String>,
    /// Why its figures were not used with the last sample.
    stale: Option<String>,
    /// Whether the log says so. A sensor that answers well now and then is one line, and not one each time.
    is_told: bool,
}

impl Desk {
    /// A node has a sensor. It is stale until it has answered twice.
    pub(crate) fn watch(&mut self, node: NodeIndex) {
        let stale = Some(SILENT.to_owned());
        let load = ExternalLoad::default();
        self.nodes[node.0].sensor = Some(Sensor { load, device: None, problem: None, stale, is_told: false });
    }

    /// The sensor of a node has answered, or has not, and why.
    pub(crate) fn sensed(&mut self, now: Instant, node: NodeIndex, answer: Result<Device, String>) {
        let known = &mut self.nodes[node.0];
        let Some(sensor) = &mut known.sensor else { return };
        match answer {
            Ok(device) => {
                if sensor.device.as_ref() != Some(&device.name) {
                    sensor.load.forget();
                    sensor.device = Some(device.name);
                }
                sensor.load.answered(now, device.bytes, known.moved.both());
                sensor.problem = None;
            }
            Err(why) => sensor.problem = Some(why),
        }
    }

    /// The scheduler learns which external loads are known now. A sensor that has become stale, or is no
    /// longer so, is a line of the log.
    pub(super) fn set_external_loads(&mut self, now: Instant) {
        for (place, known) in self.nodes.iter_mut().enumerate() {
            let Some(sensor) = &mut known.sensor else { continue };
            for direction in [Direction::Read, Direction::Write] {
                let external = sensor.load.get(now, direction);
                self.scheduler.set_external(NodeIndex(place), direction, external);
            }
            let stale = sensor.why_stale(now);
            let node = &self.config.nodes[place].name;
            let was_fresh = sensor.stale.is_none();
            match &stale {
                Some(why) if !sensor.is_told && (was_fresh || sensor.problem.is_some()) => {
                    tracing::warn!(node, why, "the node's sensor is stale: not used");
                    sensor.is_told = true;
                }
                None if !was_fresh => {
                    tracing::info!(node, "the node's sensor is fresh");
                    sensor.is_told = false;
                }
                _ => {}
            }
            sensor.stale = stale;
        }
    }
}

impl Sensor {
    /// What `/metrics` and `weir status` tell.
    pub(super) fn status(&self, now: Instant) -> SensorStatus {
        let age = self.load.age(now).map(|age| age.as_secs_f64());
        SensorStatus { age_s: age, stale: self.stale.clone() }
    }

    /// What a client is told.
    pub(super) fn told(&self) -> proto::Sensor {
        proto::Sensor { stale: self.stale.clone().unwrap_or_default() }
    }

    /// Why nothing is known; `None`: it is fresh.
    fn why_stale(&self, now: Instant) -> Option<String> {
        if self.load.get(now, Direction::Read).is_some() {
            return None; // both directions come from the same answers
        }
        Some(match (&self.problem, self.load.age(now)) {
            (Some(problem), _) => problem.clone(),
            (None, None) => SILENT.to_owned(),
            (None, Some(age)) if age > STALE_AFTER => "it does not answer".to_owned(),
            (None, Some(_)) => "it begins to count: two answers make a rate".to_owned(),
        })
    }
}

#[cfg(test)]
mod tests;
