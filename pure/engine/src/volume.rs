//! One volume of a pool: its promise, its limits, what it has outstanding, and its sensors.

use std::num::NonZeroU32;
use std::sync::Arc;

use weir_control::{Latency, VolumeObservation};
use weir_model::{Bandwidth, Instant, IoKind, Iops, Slo, Span, VolumeId};
use weir_sched::{Chain, VolumeKnobs};

use crate::config::VolumeConfig;
use crate::event::WindowReport;
use crate::requests::{RequestTable, Stage, Stamped};
use crate::sensors::LatencySensor;
use crate::slo_window::SloWindow;

#[derive(Debug)]
pub(crate) struct Volume {
    slo: Option<Arc<Slo>>,
    concurrency: Option<NonZeroU32>,
    max_iops: Option<Iops>,
    max_bandwidth: Option<Bandwidth>,
    /// The latency that the law gives it; `None`: nothing is promised.
    latency_target: Option<Span>,
    /// How long after its arrival a request has to be at the device for that; `None`: it can wait.
    due_at_device: Option<Span>,
    /// The mean time at the device in the last period with an answer.
    at_device: Option<Span>,
    pub(crate) outstanding: u32,
    /// Its reads and writes that are not answered, the oldest first: what an SLO speaks of.
    transfers: Chain,
    /// Everything else that is not answered.
    others: Chain,
    latency: LatencySensor,
    window: SloWindow,
}

impl Volume {
    pub(crate) fn new(now: Instant, config: VolumeConfig) -> Self {
        let slo = config.slo.map(Arc::new);
        let silent = VolumeObservation { slo: slo.clone(), ..VolumeObservation::default() };
        Self {
            slo,
            concurrency: config.concurrency,
            max_iops: config.max_iops,
            max_bandwidth: config.max_bandwidth,
            latency_target: silent.latency_target(),
            due_at_device: silent.latency_target(),
            at_device: None,
            outstanding: 0,
            transfers: Chain::EMPTY,
            others: Chain::EMPTY,
            latency: LatencySensor::default(),
            window: SloWindow::new(now),
        }
    }

    /// Takes a new configuration. The latency target follows at the next control tick.
    pub(crate) fn set_config(&mut self, config: VolumeConfig) {
        self.slo = config.slo.map(Arc::new);
        self.concurrency = config.concurrency;
        self.max_iops = config.max_iops;
        self.max_bandwidth = config.max_bandwidth;
    }

    /// The SLO's window has another length: what was observed over the old one is void.
    pub(crate) fn restart_window(&mut self, now: Instant) {
        self.window = SloWindow::new(now);
    }

    /// A law takes over: what was measured until now was under another.
    pub(crate) fn restart_period(&mut self) {
        self.latency = LatencySensor::default();
    }

    pub(crate) fn knobs(&self, background_deadline: Span) -> VolumeKnobs {
        VolumeKnobs {
            due_after: self.due_at_device.unwrap_or(background_deadline),
            concurrency: self.concurrency,
            max_iops: self.max_iops,
            max_bandwidth: self.max_bandwidth,
        }
    }

    /// The chain of its outstanding requests of this kind.
    pub(crate) fn chain(&mut self, kind: IoKind) -> &mut Chain {
        if kind.direction().is_some() { &mut self.transfers } else { &mut self.others }
    }

    pub(crate) fn on_arrival(&mut self, kind: IoKind) {
        self.outstanding += 1;
        if let Some(direction) = kind.direction() {
            self.window.on_arrival(direction);
        }
    }

    /// A request was answered with success.
    pub(crate) fn on_answer(&mut self, kind: IoKind, latency: Latency) {
        if let Some(direction) = kind.direction() {
            self.latency.record(latency);
            self.window.on_answer(direction, latency);
        }
    }

    /// What the control law is to know of the period that ends now.
    pub(crate) fn observe(&mut self, now: Instant, requests: &RequestTable) -> VolumeObservation {
        let answered = self.latency.take_mean();
        self.at_device = answered.map(|answered| answered.at_device).or(self.at_device);
        VolumeObservation {
            slo: self.slo.clone(),
            offered: self.window.offered_before(),
            read_fraction: self.window.recent_mix(),
            answered,
            oldest: requests.oldest(&self.transfers).map(|oldest| latency_so_far(now, oldest)),
            at_device: self.at_device,
        }
    }

    /// Sets what the law has decided; whether the scheduler is to be told.
    pub(crate) fn set_targets(&mut self, latency: Option<Span>, due_at_device: Option<Span>) -> bool {
        self.latency_target = latency;
        std::mem::replace(&mut self.due_at_device, due_at_device) != due_at_device
    }

    /// What the law holds it to.
    pub(crate) const fn latency_target(&self) -> Option<Span> {
        self.latency_target
    }

    /// What its open SLO window will be judged by.
    pub(crate) fn window_target(&self) -> Option<Span> {
        self.window.target(self.slo.as_ref()?)
    }

    pub(crate) fn close_window(&mut self, now: Instant, requests: &RequestTable) -> WindowReport {
        let oldest = requests.oldest(&self.transfers).map(|oldest| oldest.arrived);
        self.window.close(now, self.slo.as_deref(), oldest)
    }
}

/// How long a request that is not answered has taken until now.
fn latency_so_far(now: Instant, request: &Stamped) -> Latency {
    let at_device = match request.stage {
        Stage::Queued => Span::ZERO,
        Stage::AtDevice { issued, .. } => now.since(issued),
        Stage::Done { issued, completed, .. } => completed.since(issued),
    };
    Latency { total: now.since(request.arrived), at_device }
}

/// The volumes of a pool by number. The number of a removed one is used again.
#[derive(Default, Debug)]
pub(crate) struct VolumeTable {
    volumes: Vec<Option<Volume>>,
}

impl VolumeTable {
    pub(crate) fn insert(&mut self, volume: Volume) -> VolumeId {
        let index = self.volumes.iter().position(Option::is_none).unwrap_or(self.volumes.len());
        if index == self.volumes.len() {
            self.volumes.push(None);
        }
        self.volumes[index] = Some(volume);
        number(index)
    }

    pub(crate) fn remove(&mut self, id: VolumeId) {
        self.volumes[id.0 as usize] = None;
    }

    pub(crate) fn contains(&self, id: VolumeId) -> bool {
        self.volumes.get(id.0 as usize).is_some_and(Option::is_some)
    }

    /// # Panics
    /// If there is no such volume: only the driver names volumes, and it was told their numbers.
    pub(crate) fn get(&self, id: VolumeId) -> &Volume {
        self.volumes.get(id.0 as usize).and_then(Option::as_ref).expect("the volume was added")
    }

    /// # Panics
    /// As [`VolumeTable::get`].
    pub(crate) fn get_mut(&mut self, id: VolumeId) -> &mut Volume {
        self.volumes.get_mut(id.0 as usize).and_then(Option::as_mut).expect("the volume was added")
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (VolumeId, &mut Volume)> {
        self.volumes.iter_mut().enumerate().filter_map(|(i, volume)| Some((number(i), volume.as_mut()?)))
    }
}

fn number(index: usize) -> VolumeId {
    VolumeId(u32::try_from(index).expect("fewer than 2^32 volumes"))
}
