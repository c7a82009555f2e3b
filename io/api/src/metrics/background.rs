//! The metrics of pools under the law of promises: what background volumes may have, and the volume that is
//! closest to missing its promise.

use std::fmt::Error;

use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::metrics::MetricType;
use weir_status::{BackgroundStatus, GatewayStatus};

use super::describe;

pub(super) fn encode(status: &GatewayStatus, encoder: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
    type Gauge = fn(&BackgroundStatus) -> Option<f64>;
    let families: [(&str, &str, Gauge); 7] = [
        ("pool_background_bound", "Requests that background volumes may have at the device", |background| {
            background.most.map(f64::from)
        }),
        (
            "pool_background_share",
            "Share of the device's time for background requests beyond the bound, one at a time",
            |background| Some(background.share),
        ),
        (
            "pool_promised_bound",
            "Requests that promised volumes may have at the device while they go in order",
            |background| background.promised_most.map(f64::from),
        ),
        (
            "pool_lowered_rates_least",
            "What the rate that is lowered most is lowered to, as a part of what is promised",
            |background| background.lowered_rates.as_ref().map(|it| it.least_percent / 100.0),
        ),
        (
            "pool_lowered_rates_most",
            "What the rate that is lowered least is lowered to, as a part of what is promised",
            |background| background.lowered_rates.as_ref().map(|it| it.most_percent / 100.0),
        ),
        (
            "pool_other_gateways_lost",
            "1 while nothing is heard of the other gateways before the device, so that the bound stays; else 0",
            |background| Some(f64::from(u8::from(background.has_lost_others))),
        ),
        (
            "pool_worst_off",
            "How close the volume that is closest to missing its promise is to that; 1 is at the limit",
            |background| Some(background.worst_off.as_ref().map_or(0.0, |worst| worst.percent / 100.0)),
        ),
    ];
    let help = "By how much a promise is missed that cannot be met; 2: twice the latency, or half the rate";
    let mut family = describe(encoder, "pool_cannot_be_met", help, MetricType::Gauge)?;
    for pool in &status.pools {
        if let Some(missed) =
            pool.background.as_ref().and_then(|background| background.cannot_be_met.as_ref())
        {
            let labels = [("pool", &*pool.name), ("volume", &*missed.volume)];
            family.encode_family(&labels)?.encode_gauge(&missed.times)?;
        }
    }
    for (name, help, gauge) in families {
        let mut family = describe(encoder, name, help, MetricType::Gauge)?;
        for pool in &status.pools {
            if let Some(value) = pool.background.as_ref().and_then(gauge) {
                family.encode_family(&[("pool", &*pool.name)])?.encode_gauge(&value)?;
            }
        }
    }
    Ok(())
}
