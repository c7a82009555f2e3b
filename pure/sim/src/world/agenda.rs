//! The faults and the changes of a scenario, in the order of their times.

use weir_engine::VolumeConfig;
use weir_model::Instant;

use crate::scenario::{FaultKind, Scenario};

/// A fault or a change, for which a scenario has set a time.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Entry {
    Fault(FaultKind),
    /// A volume has this configuration from now on.
    Change {
        volume: usize,
        config: VolumeConfig,
    },
}

/// The faults and changes that lie ahead.
#[derive(Debug)]
pub(super) struct Agenda {
    /// In reverse order: the next one is last.
    entries: Vec<(Instant, Entry)>,
}

impl Agenda {
    /// The agenda of a scenario. At the same instant faults come first, and otherwise the scenario's order
    /// holds.
    pub(super) fn new(scenario: &Scenario) -> Self {
        let faults = scenario.faults.iter().map(|fault| (fault.at, Entry::Fault(fault.what)));
        let changes = scenario.volumes.iter().enumerate().flat_map(|(volume, loaded)| {
            let entry = move |config: &VolumeConfig| Entry::Change { volume, config: config.clone() };
            loaded.changes.iter().map(move |(at, config)| (*at, entry(config)))
        });
        let mut entries: Vec<_> =
            faults.chain(changes).map(|(at, entry)| (Instant::ORIGIN + at, entry)).collect();
        entries.sort_by_key(|(at, _)| *at);
        entries.reverse();
        Self { entries }
    }

    pub(super) fn next_at(&self) -> Instant {
        self.entries.last().map_or(Instant::FAR_FUTURE, |(at, _)| *at)
    }

    pub(super) fn pop_due(&mut self, now: Instant) -> Option<Entry> {
        self.entries.pop_if(|(at, _)| *at <= now).map(|(_, entry)| entry)
    }
}
