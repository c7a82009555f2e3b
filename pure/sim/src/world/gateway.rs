//! A gateway of a run: an engine with its checkers, and the requests that it holds.
//!
//! An engine numbers its volumes by itself. Everybody else knows a volume by its index in the scenario.

use weir_engine::{Engine, EngineConfig, Event, VolumeConfig};
use weir_model::{Instant, VolumeId};

use super::requests::Requests;
use crate::check::Checkers;

pub(super) struct Gateway {
    pub(super) engine: Engine,
    pub(super) checkers: Checkers,
    pub(super) requests: Requests,
    /// By the engine's number: the index in the scenario.
    volumes: Vec<usize>,
}

impl Gateway {
    /// A gateway without volumes.
    pub(super) fn new(now: Instant, config: EngineConfig) -> Self {
        let engine = Engine::new(now, config);
        let checkers = Checkers::new(now, config, engine.snapshot().depth_target);
        Self { engine, checkers, requests: Requests::default(), volumes: Vec::new() }
    }

    /// Adds the volume with this index. Returns its number.
    pub(super) fn add(&mut self, now: Instant, volume: usize, config: &VolumeConfig) -> VolumeId {
        self.volumes.push(volume);
        self.checkers.on_volume_added(now, config);
        self.engine.add_volume(now, config.clone())
    }

    /// The index of a volume of the engine.
    pub(super) fn index(&self, volume: VolumeId) -> usize {
        self.volumes[volume.0 as usize]
    }

    /// An event, with the indices of its volumes in place of their numbers.
    pub(super) fn renumbered(&self, event: Event) -> Event {
        let index = |id: VolumeId| number(self.index(id));
        match event {
            Event::Finished { volume, kind, length, ok, queued, device, total } => {
                Event::Finished { volume: index(volume), kind, length, ok, queued, device, total }
            }
            Event::Aborted { volume, kind } => Event::Aborted { volume: index(volume), kind },
            Event::Granted { volume, grant, by } => Event::Granted { volume: index(volume), grant, by },
            Event::Allocated { volume, reasoning } => Event::Allocated { volume: index(volume), reasoning },
            Event::WindowClosed { volume, window } => Event::WindowClosed { volume: index(volume), window },
            Event::WindowEnded { volume, traffic } => Event::WindowEnded { volume: index(volume), traffic },
            Event::OutOfReach(shortfall) => {
                Event::OutOfReach(shortfall.and_then(|it| it.with_volumes(|id| Some(index(id)))))
            }
            Event::Weighed { worst, strain, others_are_lost } => {
                Event::Weighed { worst: worst.map(index), strain, others_are_lost }
            }
            Event::Controlled { .. }
            | Event::TakingTurns { .. }
            | Event::Throttled { .. }
            | Event::Allowed(_)
            | Event::InOrder(_)
            | Event::Covered { .. }
            | Event::Stands(_) => event,
        }
    }
}

/// An index in a scenario as the number of a volume.
pub(super) fn number(volume: usize) -> VolumeId {
    VolumeId(u32::try_from(volume).expect("a scenario has fewer than 2^32 volumes"))
}
