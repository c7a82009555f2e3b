//! The loop of Façade. It gives the law what the volumes got, and gives the scheduler the depth and the
//! deadlines that the law decides.

use weir_control::{Completions, DepthFeedback, DepthFeedbackConfig, Law, PoolObservation};
use weir_model::{Instant, QueueDepth, Span};

use super::Pool;
use crate::event::Event;
use crate::tick::Tick;

/// The loop.
#[derive(Debug)]
pub(crate) struct DepthLoop {
    law: DepthFeedback,
    pub(super) tick: Tick,
    period: Span,
    /// Kept from period to period, so that no period allocates.
    seen: PoolObservation,
}

impl DepthLoop {
    pub(super) fn new(now: Instant, config: DepthFeedbackConfig, completions: Completions) -> Self {
        Self {
            tick: Tick::new(now, config.period),
            period: config.period,
            law: DepthFeedback::with(config, completions),
            seen: PoolObservation::default(),
        }
    }

    pub(super) fn depth(&self) -> QueueDepth {
        self.law.depth()
    }

    /// Ends a period that is over: reads the sensors, and turns the knobs.
    pub(super) fn handle_timeout(&mut self, now: Instant, pool: &mut Pool<'_>) {
        if !self.tick.serve(now) {
            return;
        }
        let occupied = pool.occupancy.take(now);
        self.seen.peak = occupied.peak;
        self.seen.beside_finished = occupied.beside_finished;
        self.seen.volumes.clear();
        let (requests, period) = (pool.requests, self.period);
        let volumes = pool.volumes.iter_mut();
        self.seen.volumes.extend(volumes.map(|(_, volume)| volume.observe(now, period, requests)));
        let setting = self.law.step(now, &self.seen);
        pool.scheduler.set_depth(now, setting.depth);
        let targets = setting.latency_targets.into_iter().zip(setting.due_at_device);
        for ((id, volume), (latency, due_at_device)) in pool.volumes.iter_mut().zip(targets) {
            if volume.set_targets(latency, due_at_device) {
                pool.scheduler.set_volume(now, id, &volume.knobs());
            }
        }
        pool.events.push_back(Event::Controlled { depth: setting.depth, peak: occupied.peak });
    }
}
