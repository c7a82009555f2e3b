//! The metrics of a coordinator of bulk transfers: its nodes, and how many transfers wait, run or ended.
//!
//! No transfer has a series of its own: there are thousands of them a day, and each would stay in the
//! monitoring for ever. `weir status` shows them one by one.

use std::fmt::Error;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use weir_status::{DirectionStatus, NodeStatus, TransfersStatus};

use super::describe;

#[derive(Debug)]
pub(super) struct TransfersCollector(pub(super) TransfersStatus);

impl Collector for TransfersCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        self.encode_transfers(&mut encoder)?;
        self.encode_ended(&mut encoder)?;
        self.encode_nodes(&mut encoder)?;
        self.encode_sensors(&mut encoder)?;
        self.encode_directions(&mut encoder)
    }
}

impl TransfersCollector {
    fn encode_transfers(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
        let families = [
            ("transfers_waiting", "Transfers that wait now", self.0.waiting),
            ("transfers_running", "Transfers that run now", self.0.running),
            (
                "transfers_running_below_rate",
                "Transfers that run now and have had less than the rate that they asked for",
                self.0.running_below,
            ),
        ];
        for (name, help, count) in families {
            describe(encoder, name, help, MetricType::Gauge)?.encode_gauge(&gauge(count))?;
        }
        Ok(())
    }

    fn encode_ended(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
        let ended = &self.0.ended;
        let help = "Transfers that have ended, by outcome: done, failed, cancelled, interrupted (its client has \
                    gone; it may go on later)";
        let mut family = describe(encoder, "transfers_ended", help, MetricType::Counter)?;
        for (outcome, count) in [
            ("done", ended.done),
            ("failed", ended.failed),
            ("cancelled", ended.cancelled),
            ("interrupted", ended.interrupted),
        ] {
            family
                .encode_family(&[("outcome", outcome)])?
                .encode_counter::<NoLabelSet, _, u64>(&count, None)?;
        }
        let help = "Transfers that are done and had less than the rate that they asked for";
        describe(encoder, "transfers_below_rate", help, MetricType::Counter)?
            .encode_counter::<NoLabelSet, _, u64>(&ended.below, None)
    }

    fn encode_nodes(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
        type Value = fn(&NodeStatus) -> Option<i64>;
        let families: [(&str, &str, Value); 4] = [
            ("node_up", "1: the node is up; 0: it is down, as the last probe or a client says", |node| {
                Some(i64::from(node.down.is_none()))
            }),
            ("node_stored_bytes", "What the replicas on the node take, in bytes", |node| {
                Some(gauge(node.stored_bytes))
            }),
            (
                "node_capacity_bytes",
                "The most that they may take, in bytes; absent without a bound",
                |node| node.capacity_bytes.map(gauge),
            ),
            ("node_objects", "Objects with a replica on the node", |node| Some(gauge(node.objects))),
        ];
        for (name, help, value) in families {
            let mut family = describe(encoder, name, help, MetricType::Gauge)?;
            for node in &self.0.nodes {
                if let Some(value) = value(node) {
                    family.encode_family(&[("node", &*node.name)])?.encode_gauge(&value)?;
                }
            }
        }
        let help = "How long ago the last probe of the node ended, in seconds";
        let mut family = describe(encoder, "node_probe_age_seconds", help, MetricType::Gauge)?;
        for node in &self.0.nodes {
            if let Some(age) = node.probed_age_s {
                family.encode_family(&[("node", &*node.name)])?.encode_gauge(&age)?;
            }
        }
        Ok(())
    }

    /// The sensors of the nodes that have one, and what they see while they are fresh.
    fn encode_sensors(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
        let sensors = || self.0.nodes.iter().filter_map(|node| Some((node, node.sensor.as_ref()?)));
        let help = "1: the node's sensor is fresh; 0: it is stale, and not used; absent without a sensor";
        let mut family = describe(encoder, "node_sensor_fresh", help, MetricType::Gauge)?;
        for (node, sensor) in sensors() {
            let fresh = i64::from(sensor.stale.is_none());
            family.encode_family(&[("node", &*node.name)])?.encode_gauge(&fresh)?;
        }
        let help = "How long ago the sensor's last good answer came, in seconds; absent before the first";
        let mut family = describe(encoder, "node_sensor_age_seconds", help, MetricType::Gauge)?;
        for (node, sensor) in sensors() {
            if let Some(age) = sensor.age_s {
                family.encode_family(&[("node", &*node.name)])?.encode_gauge(&age)?;
            }
        }
        Ok(())
    }

    fn encode_directions(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
        type Value = fn(&DirectionStatus) -> Option<i64>;
        let families: [(&str, &str, Value); 7] = [
            ("node_transfers", "Transfers that run at the node", |load| Some(i64::from(load.active))),
            (
                "node_rate_bytes_per_second",
                "What transfers moved in the last second, in bytes a second",
                |load| Some(gauge(load.rate_bytes_per_s)),
            ),
            (
                "node_average_bytes_per_second",
                "The average of the last ten seconds, in bytes a second",
                |load| Some(gauge(load.average_bytes_per_s)),
            ),
            (
                "node_reserved_bytes_per_second",
                "The sum of the rates that its transfers asked for, in bytes a second",
                |load| Some(gauge(load.reserved_bytes_per_s)),
            ),
            (
                "node_external_bytes_per_second",
                "What others than the transfers move at the node's device, in bytes a second; absent while its \
                 sensor is not fresh",
                |load| load.external_bytes_per_s.map(gauge),
            ),
            (
                "node_peak_bytes_per_second",
                "The most that the node does, in bytes a second; absent if nobody knows",
                |load| load.peak.map(|peak| gauge(peak.bytes_per_s)),
            ),
            (
                "node_peak_measured",
                "1: a client has measured the peak; 0: the operator has given it; absent if nobody knows",
                |load| load.peak.map(|peak| i64::from(peak.is_measured)),
            ),
        ];
        for (name, help, value) in families {
            let mut family = describe(encoder, name, help, MetricType::Gauge)?;
            for node in &self.0.nodes {
                for (direction, load) in node.directions() {
                    if let Some(value) = value(load) {
                        let labels = [("node", &*node.name), ("direction", direction)];
                        family.encode_family(&labels)?.encode_gauge(&value)?;
                    }
                }
            }
        }
        let help = "What transfers moved to the node (write) or from it (read), in bytes";
        let mut family = describe(encoder, "node_moved_bytes", help, MetricType::Counter)?;
        for node in &self.0.nodes {
            for (direction, load) in node.directions() {
                family
                    .encode_family(&[("node", &*node.name), ("direction", direction)])?
                    .encode_counter::<NoLabelSet, _, u64>(&load.moved_bytes, None)?;
            }
        }
        Ok(())
    }
}

fn gauge(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use weir_status::{EndedTransfers, PeakStatus, SensorStatus};

    use super::*;
    use crate::metrics::encode_transfers;

    fn array() -> NodeStatus {
        let writes = DirectionStatus {
            active: 3,
            rate_bytes_per_s: 110,
            average_bytes_per_s: 95,
            reserved_bytes_per_s: 30,
            peak: Some(PeakStatus { bytes_per_s: 120, is_measured: true }),
            moved_bytes: 7_000,
            external_bytes_per_s: Some(45),
        };
        NodeStatus {
            name: "array".to_owned(),
            url: "file:///srv/array".to_owned(),
            down: Some("no answer".to_owned()),
            probed_age_s: Some(1.5),
            sensor: Some(SensorStatus { age_s: Some(0.5), stale: None }),
            reads: DirectionStatus::default(),
            writes,
            class: "bronze".to_owned(),
            cost: 0,
            domain: "array".to_owned(),
            capacity_bytes: None,
            stored_bytes: 5_000,
            objects: 2,
        }
    }

    #[test]
    fn each_metric_has_its_labels_and_its_unit_and_what_nobody_knows_is_absent() {
        let node = array();
        let up = NodeStatus {
            name: "disk".to_owned(),
            down: None,
            capacity_bytes: Some(9_000),
            probed_age_s: None,
            ..node.clone()
        };
        let status = TransfersStatus {
            waiting: 12,
            running: 3,
            running_below: 1,
            ended: EndedTransfers { done: 40, failed: 2, cancelled: 1, interrupted: 5, below: 4 },
            nodes: vec![node, up],
            ..TransfersStatus::default()
        };
        let text = String::from_utf8(encode_transfers(status).unwrap()).unwrap();
        for line in [
            "weir_transfers_waiting 12",
            "weir_transfers_running 3",
            "weir_transfers_running_below_rate 1",
            "weir_transfers_ended_total{outcome=\"done\"} 40",
            "weir_transfers_ended_total{outcome=\"failed\"} 2",
            "weir_transfers_ended_total{outcome=\"cancelled\"} 1",
            "weir_transfers_ended_total{outcome=\"interrupted\"} 5",
            "weir_transfers_below_rate_total 4",
            "weir_node_up{node=\"array\"} 0",
            "weir_node_up{node=\"disk\"} 1",
            "weir_node_probe_age_seconds{node=\"array\"} 1.5",
            "weir_node_stored_bytes{node=\"array\"} 5000",
            "weir_node_capacity_bytes{node=\"disk\"} 9000",
            "weir_node_objects{node=\"array\"} 2",
            "weir_node_transfers{node=\"array\",direction=\"write\"} 3",
            "weir_node_rate_bytes_per_second{node=\"array\",direction=\"write\"} 110",
            "weir_node_average_bytes_per_second{node=\"array\",direction=\"write\"} 95",
            "weir_node_reserved_bytes_per_second{node=\"array\",direction=\"write\"} 30",
            "weir_node_peak_bytes_per_second{node=\"array\",direction=\"write\"} 120",
            "weir_node_peak_measured{node=\"array\",direction=\"write\"} 1",
            "weir_node_moved_bytes_total{node=\"array\",direction=\"write\"} 7000",
            "weir_node_moved_bytes_total{node=\"array\",direction=\"read\"} 0",
        ] {
            assert!(text.lines().any(|found| found == line), "{line:?} in\n{text}");
        }
        for absent in [
            "weir_node_capacity_bytes{node=\"array\"}",
            "weir_node_probe_age_seconds{node=\"disk\"}",
            "weir_node_peak_bytes_per_second{node=\"array\",direction=\"read\"}",
        ] {
            assert!(!text.contains(absent), "{absent:?} in\n{text}");
        }
    }

    #[test]
    fn the_load_of_others_is_told_while_its_sensor_is_fresh_and_no_sensor_has_no_metric() {
        let stale = SensorStatus { age_s: None, stale: Some("no answer".to_owned()) };
        let writes = DirectionStatus::default();
        let disk = NodeStatus { name: "disk".to_owned(), sensor: Some(stale), writes, ..array() };
        let tape = NodeStatus { name: "tape".to_owned(), sensor: None, ..disk.clone() };
        let status = TransfersStatus { nodes: vec![array(), disk, tape], ..TransfersStatus::default() };
        let text = String::from_utf8(encode_transfers(status).unwrap()).unwrap();
        let is_of_sensors = |line: &&str| {
            ["weir_node_sensor", "weir_node_external"].iter().any(|name| line.starts_with(name))
        };
        let found: Vec<_> = text.lines().filter(is_of_sensors).collect();
        let expected = [
            "weir_node_sensor_fresh{node=\"array\"} 1",
            "weir_node_sensor_fresh{node=\"disk\"} 0",
            "weir_node_sensor_age_seconds{node=\"array\"} 0.5",
            "weir_node_external_bytes_per_second{node=\"array\",direction=\"write\"} 45",
        ];
        assert_eq!(found, expected, "{text}");
    }
}
