//! What a gateway reports about itself: counters since its start, and the last closed window of each volume.
//!
//! The gateway's shards fill these types in. Latencies are reported as histograms and sums, because an
//! average would be one over a time that the reader did not choose.

use serde::{Deserialize, Serialize};
use weir_model::{IoKind, Verdict};

use crate::attainment::SloAttainment;
use crate::background::BackgroundStatus;
use crate::sharing::{PoolSharing, TargetStatus, VolumeSharing};
use crate::windows::WindowCounters;
use crate::words::ControlKind;

/// Upper bounds of the exported latency buckets: powers of two from 8 us to 16.8 s, in microseconds; one
/// bucket more has no upper bound.
pub const BUCKET_BOUNDS_US: [u64; 22] = {
    let mut bounds = [8; 22];
    let mut i = 1;
    while i < bounds.len() {
        bounds[i] = bounds[i - 1] * 2;
        i += 1;
    }
    bounds
};

/// The state of all pools.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct GatewayStatus {
    /// Clients connected, those still negotiating included.
    pub connections: u64,
    /// In order of name.
    pub pools: Vec<PoolStatus>,
}

/// The state of one pool.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PoolStatus {
    /// Its name.
    pub name: String,
    /// What decides about its requests.
    pub control: ControlKind,
    /// The bound on the depth of the device's queue; `None` if no law sets it.
    pub depth_target: Option<u32>,
    /// Requests at the device now.
    pub in_flight: u32,
    /// The highest number at the device in the last control period; `None` without one.
    pub in_flight_peak: Option<u32>,
    /// Requests that wait for their turn.
    pub queued: u32,
    /// How the pool shares out the requests at its device; `None`: its law shares out nothing.
    pub sharing: Option<PoolSharing>,
    /// Under the one-sided PID: what it measures and decides.
    pub reply_delay: Option<ReplyDelayStatus>,
    /// Under the law of promises: what background volumes may have of the device.
    pub background: Option<BackgroundStatus>,
    /// In order of name.
    pub volumes: Vec<VolumeStatus>,
}

/// What the one-sided PID of a pool measures and decides.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ReplyDelayStatus {
    /// The wait that reads must not exceed, in microseconds.
    pub threshold_us: u64,
    /// How long reads wait at the device, smoothed, in microseconds.
    pub wait_us: u64,
    /// For how long replies to heavy writers are held, in microseconds.
    pub delay_us: u64,
    /// Whether that is as long as it may be.
    pub is_at_ceiling: bool,
}

/// The state of one volume.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct VolumeStatus {
    /// Its name, which is the name of the export.
    pub name: String,
    /// Its size in bytes.
    pub size_bytes: u64,
    /// Whether it has an SLO.
    pub has_slo: bool,
    /// The mean latency promised now, in microseconds; `None` if nothing is promised.
    pub slo_target_us: Option<u64>,
    /// The absolute target that the law of promises holds the volume to; `None`: it has none, or another law
    /// rules.
    pub target: Option<TargetStatus>,
    /// Counters by kind of request, in the order of [`IoKind::ALL`].
    pub requests: Vec<RequestCounters>,
    /// Latencies of reads, then of writes.
    pub latency: [StageLatencies; 2],
    /// Windows so far.
    pub windows: WindowCounters,
    /// In how many of them the promise was kept over the last minute, hour and day; `None`: nothing is
    /// promised that is judged in windows.
    pub attainment: Option<SloAttainment>,
    /// What came and went in the last window that ended.
    pub last_window: Option<WindowStatus>,
    /// The last window that was judged.
    pub last_judged: Option<JudgedWindow>,
    /// Its part of the requests at the device; `None`: the pool's law shares out nothing.
    pub sharing: Option<VolumeSharing>,
    /// Whether its replies are held while the pool's one-sided PID delays.
    pub is_heavy_writer: bool,
}

/// Counters of one kind of request.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct RequestCounters {
    /// The kind.
    pub kind: IoKind,
    /// Requests answered, errors included.
    pub count: u64,
    /// Bytes of the requests that succeeded.
    pub bytes: u64,
    /// Requests answered with an error of the device.
    pub errors: u64,
}

/// The parts of a request's time.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct StageLatencies {
    /// From parsed to sent to the device.
    pub queued: LatencyBuckets,
    /// At the device.
    pub device: LatencyBuckets,
    /// From parsed to the reply handed to the socket.
    pub total: LatencyBuckets,
}

/// A histogram for export.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct LatencyBuckets {
    /// How many latencies were below each of [`BUCKET_BOUNDS_US`] and not below the bound before it; at the
    /// end, how many were not below any bound.
    pub counts: Vec<u64>,
    /// The sum of all latencies, in seconds.
    pub sum_s: f64,
}

/// What came and went in a window.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct WindowStatus {
    /// Reads and writes a second that arrived.
    pub offered_iops: f64,
    /// Reads and writes a second that were answered.
    pub iops: f64,
    /// Bytes a second that were answered.
    pub bytes_per_s: f64,
    /// Mean latency of these, in microseconds; `None` if nothing was answered.
    pub mean_us: Option<f64>,
    /// 99th percentile of their latency in microseconds (to 1 %); `None` if nothing was answered.
    pub p99_us: Option<u64>,
}

/// A window whose verdict is certain.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct JudgedWindow {
    /// Mean latency of the reads and writes that came in it, in microseconds. One that was not answered yet
    /// counted with its age. `None` if none came.
    pub mean_us: Option<f64>,
    /// What was promised to them, in microseconds.
    pub target_us: Option<u64>,
    /// Whether the promise was kept.
    pub verdict: Verdict,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_span_8_us_to_over_16_s() {
        assert_eq!(BUCKET_BOUNDS_US[0], 8);
        assert_eq!(BUCKET_BOUNDS_US[21], 16_777_216);
    }
}
