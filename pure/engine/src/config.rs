//! How a pool and its volumes are to be treated.

use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};
use weir_control::DepthFeedbackConfig;
use weir_model::{Bandwidth, Iops, Slo, Span};

/// Which law rules a pool.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub enum Control {
    /// None: requests pass in the order in which they come, without gates. SLO windows are still judged: this is
    /// the baseline that a law is measured against.
    None,
    /// Deadlines and queue depth by feedback (Façade §3).
    Facade(DepthFeedbackConfig),
}

/// How a pool is to be treated.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct EngineConfig {
    /// The law.
    pub control: Control,
    /// The window over which a mean latency must not exceed its SLO. 1 s, as in Façade §4.
    pub slo_window: Span,
    /// When a request is due whose volume has no target, or offers more than its SLO covers. It is what such a
    /// volume may be starved for at most while others are within theirs. 10 s: a third of the 30 s after which the
    /// usual initiators give a request up.
    pub background_deadline: Span,
}

impl Default for EngineConfig {
    fn default() -> Self {
        Self {
            control: Control::Facade(DepthFeedbackConfig::default()),
            slo_window: Span::from_secs(1),
            background_deadline: Span::from_secs(10),
        }
    }
}

/// How a volume is to be treated. The default promises nothing and limits nothing.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct VolumeConfig {
    /// The latency that it is promised.
    pub slo: Option<Slo>,
    /// The highest number of its requests at the device.
    pub concurrency: Option<NonZeroU32>,
    /// The highest rate of its requests, flushes apart.
    pub max_iops: Option<Iops>,
    /// The highest rate of the bytes that it reads and writes.
    pub max_bandwidth: Option<Bandwidth>,
}
