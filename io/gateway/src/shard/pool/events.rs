//! The engine's events: requests that ended, windows and decisions. And the status of the pool.

use weir_engine::{BackgroundKnobs, EngineSnapshot, Event, Throttle};
use weir_model::{Instant, QueueDepth, Span, VolumeId};
use weir_status::{
    BackgroundStatus, LoweredRates, PoolStatus, ReplyDelayStatus, SloAttainment, TargetStatus, VolumeStatus,
    WorstOff,
};

use super::{Pool, Volume};
use crate::stats::Answered;

impl Pool {
    /// Pulls the engine's events.
    pub(in crate::shard) fn handle_events(&mut self, now: Instant) {
        while let Some(event) = self.engine.poll_event() {
            match event {
                Event::Finished { volume, kind, length, ok, queued, device, total } => {
                    if let Some(volume) = self.volume_at(volume) {
                        volume.stats.record(&Answered { kind, length, ok, queued, device, total });
                    }
                }
                Event::WindowEnded { volume, traffic } => {
                    let length = self.window;
                    if let Some(volume) = self.volume_at(volume) {
                        volume.end_window(now, traffic, length);
                    }
                }
                // Only the first port can have an SLO.
                Event::WindowClosed { volume, window } if self.first_port(volume) == volume => {
                    if let Some(volume) = self.volume_at(volume) {
                        volume.stats.close_window(now, &window);
                    }
                }
                Event::WindowClosed { .. } => {}
                Event::Controlled { peak, .. } => self.in_flight_peak = Some(peak),
                Event::Allocated { volume, reasoning } => self.note_allocation(now, volume, reasoning),
                Event::Weighed { worst, strain, others_are_lost } => {
                    self.worst_off = (strain > 0.0).then_some((worst, strain));
                    self.others_are_lost = others_are_lost;
                }
                Event::OutOfReach(shortfall) => self.note_out_of_reach(shortfall),
                // The snapshot of the engine has what these say.
                Event::Granted { .. } | Event::Throttled { .. } | Event::Allowed(_) => {}
                Event::InOrder(_) | Event::Covered { .. } => {}
                Event::Aborted { .. } | Event::TakingTurns { .. } => {}
                Event::Stands(standing) => self.say_standing(standing),
            }
        }
        self.tell_observer();
    }

    /// The status of the pool.
    pub(in crate::shard) fn status(&self, now: Instant) -> PoolStatus {
        let seen = self.engine.snapshot();
        let mut volumes: Vec<_> = self
            .volume_ids()
            .filter_map(|id| {
                // One that is on its way out may have a successor of the same name already.
                let volume =
                    self.volumes[id.0 as usize].as_ref().filter(|volume| volume.retiring.is_none())?;
                Some(VolumeStatus {
                    sharing: self.sharing_of(id),
                    is_heavy_writer: self.engine.is_heavy_writer(id),
                    target: self.target_of(volume),
                    attainment: self.attainment_of(now, volume),
                    ..volume_status(volume, self.engine.target(id))
                })
            })
            .collect();
        volumes.sort_by(|a, b| a.name.cmp(&b.name));
        PoolStatus {
            name: self.name.clone(),
            control: self.control_kind(),
            depth_target: seen.depth_target.map(QueueDepth::get),
            in_flight: seen.in_flight,
            in_flight_peak: self.in_flight_peak,
            queued: seen.queued,
            sharing: self.sharing(),
            reply_delay: seen.throttle.map(reply_delay),
            background: self.background(),
            volumes,
        }
    }

    /// The absolute target that the law of promises holds a volume to.
    fn target_of(&self, volume: &Volume) -> Option<TargetStatus> {
        let target = volume.config.objective.target.map(TargetStatus::from);
        target.filter(|_| self.control.is_of_promises())
    }

    /// In how many of its windows a volume's promise was kept, if it has one that is judged in windows.
    fn attainment_of(&self, now: Instant, volume: &Volume) -> Option<SloAttainment> {
        let is_judged = volume.config.slo.is_some() || self.target_of(volume).is_some();
        is_judged.then(|| volume.stats.attainment(now, volume.goal))
    }

    /// What background volumes may have, if the pool's law holds them back.
    pub(super) fn background(&self) -> Option<BackgroundStatus> {
        let EngineSnapshot { allowance, in_order, rates, .. } = self.engine.snapshot();
        let BackgroundKnobs { most, share, .. } = allowance?;
        let worst_off = self.worst_off.and_then(|(id, strain)| {
            let name = |id| self.name_of(id).map(str::to_owned);
            // The worst off without a number is behind another gateway; one without a name is gone.
            let volume = id.map_or(Some(None), |id| name(id).map(Some))?;
            Some(WorstOff { volume, percent: strain * 100.0 })
        });
        let share = f64::from(share.millionths()) / 1e6;
        Some(BackgroundStatus {
            most: (most < u32::MAX).then_some(most),
            share,
            promised_most: in_order.map(QueueDepth::get),
            lowered_rates: rates.map(|lowered| LoweredRates {
                least_percent: f64::from(lowered.least) / 10.0,
                most_percent: f64::from(lowered.most) / 10.0,
            }),
            worst_off,
            cannot_be_met: self.cannot_be_met(),
            has_lost_others: self.others_are_lost,
        })
    }

    /// The numbers of volumes, whether they exist or not.
    fn volume_ids(&self) -> impl Iterator<Item = VolumeId> {
        (0..).zip(&self.volumes).map(|(id, _)| VolumeId(id))
    }
}

fn reply_delay(throttle: Throttle) -> ReplyDelayStatus {
    ReplyDelayStatus {
        threshold_us: throttle.threshold.as_micros(),
        wait_us: throttle.wait.as_micros(),
        delay_us: throttle.delay.as_micros(),
        is_at_ceiling: throttle.is_at_ceiling,
    }
}

/// What does not depend on the pool's law.
fn volume_status(volume: &Volume, target: Option<Span>) -> VolumeStatus {
    VolumeStatus {
        name: volume.name.clone(),
        size_bytes: weir_backend::BlockDevice::properties(&volume.device).size,
        has_slo: volume.config.slo.is_some(),
        slo_target_us: target.map(Span::as_micros),
        requests: volume.stats.requests(),
        latency: volume.stats.latency(),
        windows: volume.stats.windows(),
        last_window: volume.stats.last_window(),
        last_judged: volume.stats.last_judged(),
        sharing: None,
        is_heavy_writer: false,
        target: None,
        attainment: None,
    }
}
