//! How a pool and its volumes are to be treated.

use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};
use weir_control::{DepthFeedbackConfig, Grant, Limits, TotalConcurrency};
use weir_model::{Bandwidth, Instant, Iops, Objective, Slo, Span, TimeShare, VolumeId};

/// Which law rules a pool.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub enum Control {
    /// None: requests pass in the order in which they come, without gates. SLO windows are still judged: this
    /// is the baseline that a law is measured against.
    None,
    /// Deadlines and queue depth by feedback (Façade §3).
    Facade(DepthFeedbackConfig),
    /// Every volume's bound on its requests at the device, by target and priority (Maestro §3.2).
    Maestro(MaestroConfig),
    /// The same, granted by a controller for the time of a lease: several gateways share the array.
    Leased(LeasedConfig),
}

/// How Maestro's law is set up.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MaestroConfig {
    /// The control interval. 2 s, as in the paper (§3.2.1): it "did not see any gain" from shorter ones.
    pub interval: Span,
    /// `C`: how many requests may be at the device at a time. A number below that of the volumes counts as
    /// that.
    pub total: TotalConcurrency,
}

impl MaestroConfig {
    /// The paper's control interval.
    pub const INTERVAL: Span = Span::from_secs(2);
}

/// How a leased pool is set up.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LeasedConfig {
    /// How often the pool measures.
    pub interval: Span,
}

/// What a controller has granted to a leased pool.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Grants {
    /// Until when the grants hold.
    pub until: Instant,
    /// For each volume.
    pub volumes: Vec<(VolumeId, Grant)>,
}

/// How a pool is to be treated.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct EngineConfig {
    /// The law.
    pub control: Control,
    /// The window over which a mean latency must not exceed its SLO. 1 s, as in Façade §4.
    pub slo_window: Span,
    /// The share of the device's time that volumes get which have no target, or offer more than their SLO
    /// covers, while those with a target keep it full. 1 %: a promised volume cannot tell it from the
    /// device's own noise, and a request of 5 ms goes twice a second.
    pub background_share: TimeShare,
}

impl Default for EngineConfig {
    fn default() -> Self {
        Self {
            control: Control::Facade(DepthFeedbackConfig::default()),
            slo_window: Span::from_secs(1),
            background_share: TimeShare::PERCENT,
        }
    }
}

/// How a volume is to be treated. The default promises nothing and limits nothing.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct VolumeConfig {
    /// The latency that it is promised, under Façade's law.
    pub slo: Option<Slo>,
    /// What it is to get, and its priority, under Maestro's law.
    pub objective: Objective,
    /// It is one more port of this volume: Maestro's law sees both as one, with the objective and the limits
    /// of that one; limits of its own bound this port alone. Requests, latencies and SLO windows are counted
    /// apart.
    pub port_of: Option<VolumeId>,
    /// The highest number of its requests at the device.
    pub concurrency: Option<NonZeroU32>,
    /// The highest rate of its requests.
    pub max_iops: Option<Iops>,
    /// The highest rate of the bytes that its device may have to read and write for it.
    pub max_bandwidth: Option<Bandwidth>,
}

impl VolumeConfig {
    /// What the volume is never to exceed, over all its ports.
    pub fn limits(&self) -> Limits {
        Limits { concurrency: self.concurrency, max_iops: self.max_iops, max_bandwidth: self.max_bandwidth }
    }
}
