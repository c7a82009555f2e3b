//! The engine's events: requests that ended, windows and decisions. And the status of the pool.

use weir_engine::Event;
use weir_model::{Instant, Span, VolumeId};
use weir_status::{PoolStatus, VolumeSharing, VolumeStatus};

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
                Event::WindowClosed { volume, window } => {
                    if let Some(volume) = self.volume_at(volume) {
                        volume.close_window(window);
                    }
                }
                Event::Controlled { peak, .. } => self.in_flight_peak = Some(peak),
                Event::Allocated { volume, reasoning } => self.note_allocation(now, volume, reasoning),
                Event::Aborted { .. } | Event::Granted { .. } => {}
            }
        }
        self.tell_observer();
    }

    /// The status of the pool.
    pub(in crate::shard) fn status(&self) -> PoolStatus {
        let seen = self.engine.snapshot();
        let mut volumes: Vec<_> = self
            .volume_ids()
            .filter_map(|id| {
                // One that is on its way out may have a successor of the same name already.
                let volume =
                    self.volumes[id.0 as usize].as_ref().filter(|volume| volume.retiring.is_none())?;
                Some(volume_status(volume, self.engine.target(id), self.sharing_of(id)))
            })
            .collect();
        volumes.sort_by(|a, b| a.name.cmp(&b.name));
        PoolStatus {
            name: self.name.clone(),
            control: self.control_kind(),
            depth_target: seen.depth_target.map(weir_model::QueueDepth::get),
            in_flight: seen.in_flight,
            in_flight_peak: self.in_flight_peak,
            queued: seen.queued,
            sharing: self.sharing(),
            volumes,
        }
    }

    /// The numbers of volumes, whether they exist or not.
    fn volume_ids(&self) -> impl Iterator<Item = VolumeId> {
        (0..).zip(&self.volumes).map(|(id, _)| VolumeId(id))
    }
}

fn volume_status(volume: &Volume, target: Option<Span>, sharing: Option<VolumeSharing>) -> VolumeStatus {
    VolumeStatus {
        name: volume.name.clone(),
        size_bytes: weir_backend::BlockDevice::properties(&volume.device).size,
        has_slo: volume.config.slo.is_some(),
        slo_target_us: target.map(Span::as_micros),
        requests: volume.stats.requests(),
        latency: volume.stats.latency(),
        windows: volume.stats.windows(),
        last_window: volume.stats.last_window(),
        sharing,
    }
}
