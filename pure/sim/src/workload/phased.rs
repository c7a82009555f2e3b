//! Clients that do what a scenario's phases say.

use weir_model::Instant;

use super::Asked;
use super::load::{Load, Streams};
use super::schedule::Schedule;
use crate::random::{Prng, Seed};
use crate::scenario::VolumeScenario;

/// The made-up clients of a volume.
#[derive(Debug)]
pub(crate) struct PhasedClient {
    schedule: Schedule,
    /// Bytes of the volume.
    size: u64,
    load: Option<Load>,
    /// How many threads wait for an answer.
    busy: u32,
    streams: Streams,
    /// The state of the stream from which popular places are drawn. Each phase begins from it, so that the
    /// places are the same in every phase.
    hot: Prng,
}

impl PhasedClient {
    pub(super) fn new(volume: &VolumeScenario, seed: Seed) -> Self {
        Self {
            schedule: Schedule::new(volume),
            size: volume.size,
            load: None,
            busy: 0,
            streams: Streams::new(&volume.name, seed),
            hot: seed.stream(&format!("{}/popular places", volume.name)),
        }
    }

    pub(super) fn next_at(&self) -> Instant {
        let load = self.load.as_ref().map_or(Instant::FAR_FUTURE, |load| load.arrivals.next_at());
        self.schedule.next_at().min(load)
    }

    pub(super) fn ask(&mut self, now: Instant) -> Option<Asked> {
        while self.schedule.next_at() <= now {
            let begins = self.schedule.next_at();
            let (size, busy) = (self.size, self.busy);
            self.load = self
                .schedule
                .begin_next()
                .map(|workload| Load::begin(begins, workload, size, busy, &self.hot, &mut self.streams));
        }
        let load = self.load.as_mut().filter(|load| load.arrivals.next_at() <= now)?;
        let asked = load.ask(&mut self.streams);
        self.busy += u32::from(asked.by_thread);
        Some(asked)
    }

    pub(super) fn on_answer(&mut self, now: Instant, ok: bool) {
        self.busy -= 1;
        if let Some(load) = &mut self.load {
            load.arrivals.on_answer(now, ok, self.busy);
        }
    }
}
