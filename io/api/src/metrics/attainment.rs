//! In how many of their windows the promises of volumes were kept, over each horizon.

use std::fmt::Error;

use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::metrics::MetricType;
use weir_status::{GatewayStatus, Horizon, PoolStatus, SloAttainment, VolumeStatus};

use super::{describe, volume_labels};

/// Volumes whose promise is judged in windows.
pub(super) fn encode(status: &GatewayStatus, encoder: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
    let help = "Share of the SLO windows that are to be met";
    let mut goals = describe(encoder, "slo_goal_ratio", help, MetricType::Gauge)?;
    for (pool, volume, attainment) in judged(status) {
        let labels = [("pool", &*pool.name), ("volume", &*volume.name)];
        goals.encode_family(&labels)?.encode_gauge(&(attainment.goal_percent / 100.0))?;
    }
    type Figure = fn(&Horizon) -> Option<f64>;
    let families: [(&str, &str, Figure); 4] = [
        ("slo_horizon_seconds", "How far a horizon goes back; less than its name if served for less", |h| {
            Some(h.over_s)
        }),
        ("slo_attainment_ratio", "Share of the SLO windows of a horizon that were met", |h| {
            h.met_percent.map(|percent| percent / 100.0)
        }),
        ("slo_burn_rate", "Share of the SLO windows missed over the share that may be missed", |h| {
            h.burn_rate
        }),
        ("slo_error_budget_left_ratio", "How much of a horizon's error budget is left", |h| {
            h.budget_left_percent.map(|percent| percent / 100.0)
        }),
    ];
    for (name, help, figure) in families {
        let mut family = describe(encoder, name, help, MetricType::Gauge)?;
        for (pool, volume, attainment) in judged(status) {
            for (name, horizon) in attainment.horizons() {
                if let Some(value) = figure(horizon) {
                    let labels = volume_labels(pool, volume, "horizon", name);
                    family.encode_family(&labels)?.encode_gauge(&value)?;
                }
            }
        }
    }
    let help = "SLO windows of a horizon that were met and missed";
    let mut windows = describe(encoder, "slo_horizon_windows", help, MetricType::Gauge)?;
    for (pool, volume, attainment) in judged(status) {
        for (name, horizon) in attainment.horizons() {
            for (verdict, count) in [("met", horizon.windows_met), ("missed", horizon.windows_missed)] {
                let labels = [
                    ("pool", &*pool.name),
                    ("volume", &*volume.name),
                    ("horizon", name),
                    ("verdict", verdict),
                ];
                let count = i64::try_from(count).unwrap_or(i64::MAX);
                windows.encode_family(&labels)?.encode_gauge(&count)?;
            }
        }
    }
    Ok(())
}

fn judged(status: &GatewayStatus) -> impl Iterator<Item = (&PoolStatus, &VolumeStatus, &SloAttainment)> {
    let volumes = status.pools.iter().flat_map(|pool| pool.volumes.iter().map(move |volume| (pool, volume)));
    volumes.filter_map(|(pool, volume)| Some((pool, volume, volume.attainment.as_ref()?)))
}
