//! All volumes of a gateway in one list, each with how well its promise was kept, for scripts that want no
//! histograms.

use serde::Serialize;
use weir_status::{GatewayStatus, SloAttainment, TargetStatus, WindowCounters};

/// The path.
pub(crate) const VOLUMES_PATH: &str = "/v1/volumes";

/// All volumes.
#[derive(Serialize)]
struct Volumes {
    volumes: Vec<Volume>,
}

#[derive(Serialize)]
struct Volume {
    name: String,
    pool: String,
    size_bytes: u64,
    /// The mean latency promised now, by an SLO.
    slo_target_us: Option<u64>,
    /// The absolute target in place of it.
    target: Option<TargetStatus>,
    windows: WindowCounters,
    attainment: Option<SloAttainment>,
}

/// The list as JSON.
///
/// # Errors
/// Never: it is plain data.
pub(crate) fn as_json(status: GatewayStatus) -> serde_json::Result<Vec<u8>> {
    let pools = status.pools.into_iter();
    let volumes = pools.flat_map(|pool| {
        let of = move |volume: weir_status::VolumeStatus| Volume {
            name: volume.name,
            pool: pool.name.clone(),
            size_bytes: volume.size_bytes,
            slo_target_us: volume.slo_target_us,
            target: volume.target,
            windows: volume.windows,
            attainment: volume.attainment,
        };
        pool.volumes.into_iter().map(of)
    });
    serde_json::to_vec(&Volumes { volumes: volumes.collect() })
}
