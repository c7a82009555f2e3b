//! The metrics of a packet-delay agent: each resource, its delay, and the initiators that are delayed.

use std::fmt::Error;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::metrics::MetricType;
use weir_status::{ResourceStatus, ThrottleStatus};

use super::describe;

#[derive(Debug)]
pub(super) struct ThrottleCollector(pub(super) ThrottleStatus);

impl Collector for ThrottleCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        self.encode_times(&mut encoder)?;
        self.encode_counts(&mut encoder)?;
        self.encode_rates(&mut encoder)?;
        let help = "Targets whose initiators no delay can reach";
        describe(&mut encoder, "throttle_targets_out_of_reach", help, MetricType::Gauge)?
            .encode_gauge(&gauge(self.0.out_of_reach.len()))?;
        let help = "Interfaces on which nothing can be delayed";
        describe(&mut encoder, "throttle_interfaces_out_of_reach", help, MetricType::Gauge)?
            .encode_gauge(&gauge(self.0.interfaces_out_of_reach.len()))?;
        let help = "Sessions, connections and devices that are too many, and left alone";
        describe(&mut encoder, "throttle_left_out", help, MetricType::Gauge)?
            .encode_gauge(&i64::try_from(self.0.left_out).unwrap_or(i64::MAX))
    }
}

impl ThrottleCollector {
    fn encode_times(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
        type Time = fn(&ResourceStatus) -> u64;
        let families: [(&str, &str, Time); 4] = [
            (
                "throttle_wait_seconds",
                "How long the resource's reads wait, as a moving average",
                |resource| resource.wait_us,
            ),
            ("throttle_threshold_seconds", "How long they should wait at most", |resource| {
                resource.threshold_us
            }),
            ("throttle_delay_seconds", "How long the packets to its members are delayed", |resource| {
                resource.delay_us
            }),
            ("throttle_ceiling_seconds", "The longest delay", |resource| resource.ceiling_us),
        ];
        for (name, help, time) in families {
            let mut family = describe(encoder, name, help, MetricType::Gauge)?;
            for resource in &self.0.resources {
                #[allow(clippy::cast_precision_loss)]
                let seconds = time(resource) as f64 / 1e6;
                family.encode_family(&[("resource", &*resource.name)])?.encode_gauge(&seconds)?;
            }
        }
        Ok(())
    }

    fn encode_counts(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
        type Count = fn(&ResourceStatus) -> i64;
        let members = |resource: &ResourceStatus| {
            gauge(resource.initiators.iter().filter(|initiator| initiator.standing.is_member()).count())
        };
        let families: [(&str, &str, Count); 3] = [
            ("throttle_members", "Initiators that are delayed while reads wait for too long", members),
            ("throttle_initiators", "Initiators that are logged in", |resource| {
                gauge(resource.initiators.len())
            }),
            (
                "throttle_at_ceiling",
                "1: the delay has been at its ceiling for a second; 0: not",
                |resource| i64::from(resource.at_ceiling),
            ),
        ];
        for (name, help, count) in families {
            let mut family = describe(encoder, name, help, MetricType::Gauge)?;
            for resource in &self.0.resources {
                family.encode_family(&[("resource", &*resource.name)])?.encode_gauge(&count(resource))?;
            }
        }
        Ok(())
    }

    fn encode_rates(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
        let help = "Bytes a second that the initiator writes to the resource, as a moving average";
        let name = "throttle_initiator_written_bytes_per_second";
        let mut family = describe(encoder, name, help, MetricType::Gauge)?;
        for resource in &self.0.resources {
            for initiator in &resource.initiators {
                let labels = [("resource", &*resource.name), ("initiator", &*initiator.name)];
                let rate = i64::try_from(initiator.written_bytes_per_s).unwrap_or(i64::MAX);
                family.encode_family(&labels)?.encode_gauge(&rate)?;
            }
        }
        Ok(())
    }
}

fn gauge(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
