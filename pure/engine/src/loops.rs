//! What an engine does because time has passed: the control loop and the end of SLO windows.

use weir_control::{Controller, DepthFeedback, DepthFeedbackConfig, PoolObservation};
use weir_model::{Instant, QueueDepth, Span, VolumeId};
use weir_sched::Scheduler;

use crate::event::Event;
use crate::occupancy::Occupied;
use crate::requests::RequestTable;
use crate::tick::Tick;
use crate::volume::VolumeTable;

/// The control loop of a pool: sensors, law, knobs, once each period.
#[derive(Debug)]
pub(crate) struct ControlLoop {
    law: DepthFeedback,
    pub(crate) tick: Tick,
    /// Kept from period to period for its memory.
    seen: PoolObservation,
}

impl ControlLoop {
    pub(crate) fn new(now: Instant, config: DepthFeedbackConfig) -> Self {
        Self {
            tick: Tick::new(now, config.period),
            law: DepthFeedback::new(config),
            seen: PoolObservation::default(),
        }
    }

    pub(crate) fn depth(&self) -> QueueDepth {
        self.law.depth()
    }

    /// Ends a period in which the device was `occupied` so: reads the sensors, and turns the knobs.
    pub(crate) fn run(
        &mut self,
        now: Instant,
        occupied: Occupied,
        background_deadline: Span,
        volumes: &mut VolumeTable,
        requests: &RequestTable,
        scheduler: &mut dyn Scheduler,
    ) -> Event {
        self.seen.peak = occupied.peak;
        self.seen.beside_finished = occupied.beside_finished;
        self.seen.volumes.clear();
        self.seen.volumes.extend(volumes.iter_mut().map(|(_, volume)| volume.observe(now, requests)));
        let setting = self.law.step(now, &self.seen);
        scheduler.set_depth(now, setting.depth);
        let targets = setting.latency_targets.into_iter().zip(setting.due_at_device);
        for ((id, volume), (latency, due_at_device)) in volumes.iter_mut().zip(targets) {
            if volume.set_targets(latency, due_at_device) {
                scheduler.set_volume(now, id, &volume.knobs(background_deadline));
            }
        }
        Event::Controlled { depth: setting.depth, peak: occupied.peak }
    }
}

/// Ends the SLO window of every volume.
pub(crate) fn close_windows(
    now: Instant,
    volumes: &mut VolumeTable,
    requests: &RequestTable,
) -> impl Iterator<Item = Event> {
    volumes.iter_mut().map(move |(id, volume): (VolumeId, _)| Event::WindowClosed {
        volume: id,
        window: volume.close_window(now, requests),
    })
}
