//! The configuration of a pool and of its volumes.

use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};
use weir_control::{Completions, DepthFeedbackConfig, Grant, Limits, OneSidedPidConfig, TotalConcurrency};
use weir_model::{Bandwidth, Instant, Iops, Objective, Slo, Span, TimeShare, VolumeId};

/// Which law rules a pool.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub enum Control {
    /// No law: requests pass without gates, in the order in which they come. The engine still judges SLO
    /// windows, because this is the baseline that a law is measured against.
    None,
    /// Deadlines and queue depth by feedback (Façade §3).
    Facade(DepthFeedbackConfig),
    /// Every volume's bound on its requests at the device, by target and priority (Maestro §3.2).
    Maestro(MaestroConfig),
    /// The same bounds, which a controller grants for the time of a lease: several gateways share the array.
    Leased(LeasedConfig),
    /// The replies to heavy writers are held while reads wait too long (packet delay, appendix).
    Pid(PidConfig),
    /// Volumes without a promise are held back as far as promises need it.
    Promise,
    /// The same in one of several gateways of an array: promises behind the other gateways count, too. The
    /// gateways tell one another how their promises stand.
    SharedPromise,
}

impl Control {
    /// Whether this is the law of promises, in one gateway or in one of several.
    pub const fn is_of_promises(&self) -> bool {
        matches!(self, Self::Promise | Self::SharedPromise)
    }
}

/// How Maestro's law is set up.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MaestroConfig {
    /// The control interval. 2 s, as in the paper (§3.2.1): it "did not see any gain" from shorter ones.
    pub interval: Span,
    /// `C`: how many requests may be at the device at a time. A number below the number of
    /// volumes counts as the number of volumes.
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

/// How the one-sided PID is set up.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct PidConfig {
    /// The law.
    pub law: OneSidedPidConfig,
    /// How long reads may wait at the device.
    pub threshold: Span,
    /// A volume that writes more is a heavy writer.
    pub write_limit: Bandwidth,
}

/// What a controller has granted to a leased pool.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Grants {
    /// Until when the grants hold.
    pub until: Instant,
    /// For each volume.
    pub volumes: Vec<(VolumeId, Grant)>,
}

/// The configuration of a pool.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct EngineConfig {
    /// The law.
    pub control: Control,
    /// The window over which a mean latency must not exceed its SLO. 1 s, as in Façade §4.
    pub slo_window: Span,
    /// The share of the device's time for background volumes, while volumes with a target keep the device
    /// full, or need all of it. A volume is in the background if it has no target or offers more than its SLO
    /// covers. With 1 %, a promised volume cannot tell the background from the device's own noise, and a
    /// request of 5 ms still goes twice a second.
    pub background_share: TimeShare,
    /// What Façade's and Maestro's laws have beyond their papers. A pool that serves has all of that; only an
    /// experiment chooses, so it is part of no recording.
    #[serde(skip)]
    pub completions: Completions,
}

impl Default for EngineConfig {
    fn default() -> Self {
        Self {
            control: Control::Facade(DepthFeedbackConfig::default()),
            slo_window: Span::from_secs(1),
            background_share: TimeShare::PERCENT,
            completions: Completions::ALL,
        }
    }
}

/// The configuration of a volume. The default promises nothing and limits nothing.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct VolumeConfig {
    /// The latency that the volume is promised, under Façade's law and the law of promises.
    pub slo: Option<Slo>,
    /// What the volume should get, and its priority, under Maestro's law and the law of promises. Under the
    /// latter, a target here holds in place of the SLO.
    pub objective: Objective,
    /// The volume of which this one is one more port. Maestro's law sees both as one volume, with the
    /// objective and the limits of the first. Limits of this volume's own bound this port alone. Requests,
    /// latencies and SLO windows are counted for each port.
    pub port_of: Option<VolumeId>,
    /// The highest number of its requests at the device.
    pub concurrency: Option<NonZeroU32>,
    /// The highest rate of its requests.
    pub max_iops: Option<Iops>,
    /// The highest rate of the bytes that its device may have to read and write for it.
    pub max_bandwidth: Option<Bandwidth>,
}

impl VolumeConfig {
    /// The limits of the volume, over all its ports.
    pub fn limits(&self) -> Limits {
        Limits { concurrency: self.concurrency, max_iops: self.max_iops, max_bandwidth: self.max_bandwidth }
    }
}
