//! The metrics of a storage node's agent: what each block device that it watches has done.

use std::fmt::Error;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use weir_status::{DeviceTotals, NodeAgentStatus, WatchedDevice};

use super::describe;

#[derive(Debug)]
pub(super) struct NodeAgentCollector(pub(super) NodeAgentStatus);

impl Collector for NodeAgentCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        let help = "1: the block device is there; 0: it is not, and has no counters";
        let mut family = describe(&mut encoder, "node_device_present", help, MetricType::Gauge)?;
        for device in &self.0.devices {
            family.encode_family(&labels(device))?.encode_gauge(&i64::from(device.totals.is_some()))?;
        }
        type Total = fn(&DeviceTotals) -> u64;
        let families: [(&str, &str, Total); 4] = [
            ("node_device_read_bytes", "Bytes read from the device", |totals| totals.read_bytes),
            ("node_device_written_bytes", "Bytes written to the device", |totals| totals.written_bytes),
            ("node_device_reads", "Reads that the device has done", |totals| totals.reads),
            ("node_device_writes", "Writes that the device has done", |totals| totals.writes),
        ];
        for (name, help, total) in families {
            let mut family = describe(&mut encoder, name, help, MetricType::Counter)?;
            for (device, totals) in self.present() {
                family
                    .encode_family(&labels(device))?
                    .encode_counter::<NoLabelSet, _, u64>(&total(totals), None)?;
            }
        }
        let help = "Seconds in which the device had something to do";
        let mut family = describe(&mut encoder, "node_device_busy_seconds", help, MetricType::Counter)?;
        for (device, totals) in self.present() {
            #[allow(clippy::cast_precision_loss)] // milliseconds are exact for 285,000 years
            let seconds = totals.busy_ms as f64 / 1e3;
            family.encode_family(&labels(device))?.encode_counter::<NoLabelSet, _, u64>(&seconds, None)?;
        }
        Ok(())
    }
}

impl NodeAgentCollector {
    fn present(&self) -> impl Iterator<Item = (&WatchedDevice, &DeviceTotals)> {
        self.0.devices.iter().filter_map(|device| Some((device, device.totals.as_ref()?)))
    }
}

/// The directory, if the operator has named one, and the device behind it.
fn labels(device: &WatchedDevice) -> Vec<(&str, &str)> {
    let path = device.path.as_deref().map(|path| ("path", path));
    path.into_iter().chain([("device", device.device.as_str())]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::encode_node_agent;

    #[test]
    fn each_device_has_its_counters_with_units_and_one_that_is_not_there_has_none() {
        let totals =
            DeviceTotals { read_bytes: 512, written_bytes: 1024, reads: 1, writes: 2, busy_ms: 1_500 };
        let there = WatchedDevice {
            path: Some("/srv/a \"b\"".to_owned()),
            device: "sda".to_owned(),
            totals: Some(totals),
        };
        let gone = WatchedDevice { path: None, device: "sdb".to_owned(), totals: None };
        let status = NodeAgentStatus { devices: vec![there, gone] };
        let text = String::from_utf8(encode_node_agent(status).unwrap()).unwrap();
        let labels = "{path=\"/srv/a \\\"b\\\"\",device=\"sda\"}";
        for line in [
            format!("weir_node_device_present{labels} 1"),
            "weir_node_device_present{device=\"sdb\"} 0".to_owned(),
            format!("weir_node_device_read_bytes_total{labels} 512"),
            format!("weir_node_device_written_bytes_total{labels} 1024"),
            format!("weir_node_device_reads_total{labels} 1"),
            format!("weir_node_device_writes_total{labels} 2"),
            format!("weir_node_device_busy_seconds_total{labels} 1.5"),
        ] {
            assert!(text.lines().any(|found| found == line), "{line:?} in\n{text}");
        }
        assert_eq!(text.matches("sdb").count(), 1, "{text}");
        assert_eq!(text.matches("# HELP ").count(), 6, "{text}");
    }
}
