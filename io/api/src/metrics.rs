//! The metrics, by name: counters, gauges and histograms, never a latency that was averaged beforehand.

mod attainment;
mod background;
mod node_agent;
mod sharing;
mod throttle;
mod transfers;

use std::fmt::{self, Error};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use weir_model::{IoKind, Verdict};
use weir_status::{
    BUCKET_BOUNDS_US, GatewayStatus, LatencyBuckets, NodeAgentStatus, PoolStatus, ReplyDelayStatus,
    RequestCounters, StageLatencies, ThrottleStatus, TransfersStatus, VolumeStatus,
};

use node_agent::NodeAgentCollector;
use throttle::ThrottleCollector;
use transfers::TransfersCollector;

/// The status of a gateway as OpenMetrics text.
pub(crate) fn encode(status: GatewayStatus) -> Result<Vec<u8>, Error> {
    encode_all(StatusCollector(status))
}

/// The status of a packet-delay agent as OpenMetrics text.
pub(crate) fn encode_throttle(status: ThrottleStatus) -> Result<Vec<u8>, Error> {
    encode_all(ThrottleCollector(status))
}

/// The status of a coordinator of transfers as OpenMetrics text.
pub(crate) fn encode_transfers(status: TransfersStatus) -> Result<Vec<u8>, Error> {
    encode_all(TransfersCollector(status))
}

/// The status of a storage node's agent as OpenMetrics text.
pub(crate) fn encode_node_agent(status: NodeAgentStatus) -> Result<Vec<u8>, Error> {
    encode_all(NodeAgentCollector(status))
}

fn encode_all(collector: impl Collector) -> Result<Vec<u8>, Error> {
    let mut registry = Registry::with_prefix("weir");
    registry.register_collector(Box::new(collector));
    let mut out = String::new();
    text::encode(&mut out, &registry)?;
    Ok(out.into_bytes())
}

#[derive(Debug)]
struct StatusCollector(GatewayStatus);

impl Collector for StatusCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        let connections = self.0.connections;
        describe(&mut encoder, "connections", "Clients connected now", MetricType::Gauge)?
            .encode_gauge(&i64::try_from(connections).unwrap_or(i64::MAX))?;
        self.encode_requests(&mut encoder)?;
        self.encode_latencies(&mut encoder)?;
        self.encode_targets(&mut encoder)?;
        self.encode_windows(&mut encoder)?;
        attainment::encode(&self.0, &mut encoder)?;
        self.encode_pools(&mut encoder)?;
        self.encode_reply_delays(&mut encoder)?;
        background::encode(&self.0, &mut encoder)?;
        sharing::encode(&self.0, &mut encoder)
    }
}

impl StatusCollector {
    fn volumes(&self) -> impl Iterator<Item = (&PoolStatus, &VolumeStatus)> {
        self.0.pools.iter().flat_map(|pool| pool.volumes.iter().map(move |volume| (pool, volume)))
    }

    /// Requests, bytes and errors of each volume, by kind of request.
    fn encode_requests(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
        type Counter = fn(&RequestCounters) -> u64;
        let families: [(&str, &str, Counter); 3] = [
            ("requests", "Requests answered, errors included", |counters| counters.count),
            ("request_bytes", "Bytes of the requests that succeeded", |counters| counters.bytes),
            ("request_errors", "Requests answered with an error of the device", |counters| counters.errors),
        ];
        for (name, help, counter) in families {
            let mut family = describe(encoder, name, help, MetricType::Counter)?;
            for (pool, volume) in self.volumes() {
                for counters in &volume.requests {
                    family
                        .encode_family(&volume_labels(pool, volume, "op", counters.kind.name()))?
                        .encode_counter::<NoLabelSet, _, u64>(&counter(counters), None)?;
                }
            }
        }
        Ok(())
    }

    /// Histograms of the latency of reads and writes, by stage.
    fn encode_latencies(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
        type Stage = fn(&StageLatencies) -> &LatencyBuckets;
        let families: [(&str, &str, Stage); 3] = [
            ("queued_seconds", "From the request parsed to its start at the device", |stages| &stages.queued),
            ("device_seconds", "At the device", |stages| &stages.device),
            ("total_seconds", "From the request parsed to the reply handed to the socket", |stages| {
                &stages.total
            }),
        ];
        for (name, help, stage) in families {
            let mut family = describe(encoder, name, help, MetricType::Histogram)?;
            for (pool, volume) in self.volumes() {
                for (direction, stages) in [IoKind::Read, IoKind::Write].iter().zip(&volume.latency) {
                    encode_histogram(
                        &mut family,
                        &volume_labels(pool, volume, "direction", direction.name()),
                        stage(stages),
                    )?;
                }
            }
        }
        Ok(())
    }

    /// The SLO in force.
    fn encode_targets(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
        let help = "Mean latency promised now; absent while nothing is promised";
        let mut targets = describe(encoder, "slo_target_seconds", help, MetricType::Gauge)?;
        for (pool, volume) in self.volumes() {
            if let Some(target_us) = volume.slo_target_us {
                #[allow(clippy::cast_precision_loss)]
                let seconds = target_us as f64 / 1e6;
                targets
                    .encode_family(&[("pool", &*pool.name), ("volume", &*volume.name)])?
                    .encode_gauge(&seconds)?;
            }
        }
        Ok(())
    }

    /// How the windows of volumes with an SLO, or with a target under the law of promises, were judged.
    fn encode_windows(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
        let help = "SLO windows judged by the requests that came in them: met, missed, out_of_contract (more was offered than promised), idle";
        let mut windows = describe(encoder, "slo_windows", help, MetricType::Counter)?;
        let is_promised = |volume: &VolumeStatus| volume.has_slo || volume.target.is_some();
        for (pool, volume) in self.volumes().filter(|(_, volume)| is_promised(volume)) {
            let counted = volume.windows;
            let verdicts = [
                (Verdict::Met, counted.met),
                (Verdict::Missed, counted.missed),
                (Verdict::OutOfContract, counted.out_of_contract),
                (Verdict::Idle, counted.idle),
            ];
            for (verdict, count) in verdicts {
                windows
                    .encode_family(&volume_labels(pool, volume, "verdict", verdict.name()))?
                    .encode_counter::<NoLabelSet, _, u64>(&count, None)?;
            }
        }
        Ok(())
    }

    /// The queue depth of each pool: target and actual.
    fn encode_pools(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
        type Gauge = fn(&PoolStatus) -> Option<u32>;
        let families: [(&str, &str, Gauge); 4] = [
            (
                "pool_depth_target",
                "Bound on the depth of the device's queue; absent if no law sets it",
                |pool| pool.depth_target,
            ),
            ("pool_in_flight", "Requests at the device now", |pool| Some(pool.in_flight)),
            ("pool_in_flight_peak", "Most requests at the device in the last control period", |pool| {
                pool.in_flight_peak
            }),
            ("pool_queued", "Requests that wait for their turn", |pool| Some(pool.queued)),
        ];
        for (name, help, gauge) in families {
            let mut family = describe(encoder, name, help, MetricType::Gauge)?;
            for pool in &self.0.pools {
                if let Some(value) = gauge(pool) {
                    family.encode_family(&[("pool", &*pool.name)])?.encode_gauge(&i64::from(value))?;
                }
            }
        }
        Ok(())
    }
}

/// Pools in which replies to heavy writers are held.
impl StatusCollector {
    fn encode_reply_delays(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
        type Gauge = fn(&ReplyDelayStatus) -> f64;
        #[allow(clippy::cast_precision_loss)] // times of some milliseconds
        let families: [(&str, &str, Gauge); 4] = [
            ("pool_read_wait_seconds", "How long reads wait at the device, smoothed", |t| {
                t.wait_us as f64 / 1e6
            }),
            ("pool_read_wait_threshold_seconds", "The wait that reads must not exceed on average", |t| {
                t.threshold_us as f64 / 1e6
            }),
            ("pool_reply_delay_seconds", "For how long replies to heavy writers are held", |t| {
                t.delay_us as f64 / 1e6
            }),
            ("pool_reply_delay_at_ceiling", "1: replies are held for as long as they may be", |t| {
                f64::from(u8::from(t.is_at_ceiling))
            }),
        ];
        for (name, help, gauge) in families {
            let mut family = describe(encoder, name, help, MetricType::Gauge)?;
            for pool in &self.0.pools {
                if let Some(throttle) = &pool.reply_delay {
                    family.encode_family(&[("pool", &*pool.name)])?.encode_gauge(&gauge(throttle))?;
                }
            }
        }
        let help =
            "1: the volume writes more than the limit, and replies to it are held while there is a delay";
        let mut family = describe(encoder, "heavy_writer", help, MetricType::Gauge)?;
        for (pool, volume) in self.volumes().filter(|(pool, _)| pool.reply_delay.is_some()) {
            family
                .encode_family(&[("pool", &*pool.name), ("volume", &*volume.name)])?
                .encode_gauge(&i64::from(volume.is_heavy_writer))?;
        }
        Ok(())
    }
}

fn describe<'a>(
    encoder: &'a mut DescriptorEncoder<'_>,
    name: &'a str,
    help: &'a str,
    kind: MetricType,
) -> Result<MetricEncoder<'a>, Error> {
    encoder.encode_descriptor(name, help, None, kind)
}

fn volume_labels<'a>(
    pool: &'a PoolStatus,
    volume: &'a VolumeStatus,
    key: &'a str,
    value: &'a str,
) -> [(&'a str, &'a str); 3] {
    [("pool", &pool.name), ("volume", &volume.name), (key, value)]
}

fn encode_histogram(
    family: &mut MetricEncoder<'_>,
    labels: &[(&str, &str); 3],
    latencies: &LatencyBuckets,
) -> fmt::Result {
    #[allow(clippy::cast_precision_loss)]
    let bounds = BUCKET_BOUNDS_US.iter().map(|&us| us as f64 / 1e6).chain([f64::INFINITY]);
    let buckets: Vec<_> = bounds.zip(latencies.counts.iter().copied()).collect();
    let count = latencies.counts.iter().sum();
    family.encode_family(labels)?.encode_histogram::<NoLabelSet>(latencies.sum_s, count, &buckets, None)
}
