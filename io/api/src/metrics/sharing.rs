//! The metrics of pools whose law shares out the requests at the device: each volume's target, its bounds,
//! and its performance.

use std::fmt::Error;

use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::metrics::MetricType;
use weir_status::{
    Case, GatewayStatus, GrantStatus, PoolStatus, TargetStatus, Unit, VolumeSharing, VolumeStatus,
};

use super::describe;

pub(super) fn encode(status: &GatewayStatus, encoder: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
    encode_pools(status, encoder)?;
    encode_volumes(status, encoder)?;
    encode_targets(status, encoder)?;
    encode_grants(status, encoder)
}

/// The total concurrency of each pool, and whether all targets fit into it.
fn encode_pools(status: &GatewayStatus, encoder: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
    let help = "Requests that all volumes may have at the device together";
    let mut totals = describe(encoder, "pool_total_concurrency", help, MetricType::Gauge)?;
    for pool in &status.pools {
        if let Some(total) = pool.sharing.as_ref().and_then(|sharing| sharing.total_concurrency) {
            totals.encode_family(&[("pool", &*pool.name)])?.encode_gauge(&i64::from(total))?;
        }
    }
    let help = "1: not all that is asked for fits into the total; 0: it does";
    let mut overloads = describe(encoder, "pool_overload", help, MetricType::Gauge)?;
    for pool in &status.pools {
        if let Some(case) = pool.sharing.as_ref().and_then(|sharing| sharing.case) {
            let overload = i64::from(case == Case::Overload);
            overloads.encode_family(&[("pool", &*pool.name)])?.encode_gauge(&overload)?;
        }
    }
    Ok(())
}

/// The priority and the performance of each volume.
fn encode_volumes(status: &GatewayStatus, encoder: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
    type Gauge = fn(&VolumeSharing) -> Option<f64>;
    let families: [(&str, &str, Gauge); 2] = [
        ("priority", "How much it counts that the volume gets its target", |sharing| {
            Some(sharing.desired.priority)
        }),
        (
            "target_performance_ratio",
            "What was got of the target in the last control interval, 1 or more if all; absent if nothing was asked for",
            |sharing| Some(sharing.achieved.as_ref()?.percent / 100.0),
        ),
    ];
    for (name, help, gauge) in families {
        let mut family = describe(encoder, name, help, MetricType::Gauge)?;
        for (pool, volume, sharing) in shared(status) {
            if let Some(value) = gauge(sharing) {
                family.encode_family(&labels(pool, volume))?.encode_gauge(&value)?;
            }
        }
    }
    Ok(())
}

/// The targets, a family for each unit.
fn encode_targets(status: &GatewayStatus, encoder: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
    for (name, help, unit, factor) in [
        (
            "target_latency_seconds",
            "Latency that the volume is to get: its mean or a percentile",
            Unit::Microseconds,
            1e-6,
        ),
        ("target_bytes_per_second", "Bytes a second that the volume is to get", Unit::BytesPerSecond, 1.0),
        (
            "target_requests_per_second",
            "Requests a second that the volume is to get",
            Unit::RequestsPerSecond,
            1.0,
        ),
    ] {
        let mut family = describe(encoder, name, help, MetricType::Gauge)?;
        for (pool, volume, sharing) in shared(status) {
            let of_unit = |target: &&TargetStatus| target.unit == unit;
            if let Some(target) = sharing.desired.target.as_ref().filter(of_unit) {
                let [of_pool, of_volume] = labels(pool, volume);
                let metric = target.metric.to_string();
                family
                    .encode_family(&[of_pool, of_volume, ("metric", &*metric)])?
                    .encode_gauge(&(target.value * factor))?;
            }
        }
    }
    Ok(())
}

/// The bounds of each volume, at each port.
fn encode_grants(status: &GatewayStatus, encoder: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
    type Gauge = fn(&GrantStatus) -> Option<f64>;
    #[allow(clippy::cast_precision_loss)] // rates far below 2^53
    let families: [(&str, &str, Gauge); 3] = [
        ("granted_concurrency", "Requests that the volume may have at the device at a time", |grant| {
            Some(f64::from(grant.concurrency))
        }),
        (
            "granted_requests_per_second",
            "Requests a second that the volume may do; absent without a limit",
            |grant| grant.max_iops,
        ),
        (
            "granted_bytes_per_second",
            "Bytes a second that the volume may do; absent without a limit",
            |grant| grant.max_bytes_per_s.map(|rate| rate as f64),
        ),
    ];
    for (name, help, gauge) in families {
        let mut family = describe(encoder, name, help, MetricType::Gauge)?;
        for (pool, volume, sharing) in shared(status) {
            for grant in &sharing.effective {
                let Some(value) = gauge(grant) else { continue };
                let [of_pool, of_volume] = labels(pool, volume);
                let port = ("port", grant.port.as_deref().unwrap_or_default());
                family.encode_family(&[of_pool, of_volume, port])?.encode_gauge(&value)?;
            }
        }
    }
    Ok(())
}

fn shared(status: &GatewayStatus) -> impl Iterator<Item = (&PoolStatus, &VolumeStatus, &VolumeSharing)> {
    status.pools.iter().flat_map(|pool| {
        pool.volumes.iter().filter_map(move |volume| Some((pool, volume, volume.sharing.as_ref()?)))
    })
}

fn labels<'a>(pool: &'a PoolStatus, volume: &'a VolumeStatus) -> [(&'a str, &'a str); 2] {
    [("pool", &pool.name), ("volume", &volume.name)]
}
