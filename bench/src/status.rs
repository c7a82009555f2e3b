//! The status of a running weir, read over HTTP: the gateway's own view of latencies and windows.
//!
//! The counters count from the start of the server. The events between two instants are the difference of two
//! readings.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// How long a server may take to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// The state of a server.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Status {
    /// Clients connected.
    pub(super) connections: u64,
    pools: Vec<Pool>,
}

#[derive(Clone, Debug, Deserialize)]
struct Pool {
    volumes: Vec<Volume>,
}

/// The counters of one volume.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Volume {
    name: String,
    requests: Vec<Requests>,
    latency: [Stages; 2],
    windows: Windows,
}

#[derive(Clone, Debug, Deserialize)]
struct Requests {
    bytes: u64,
}

#[derive(Clone, Debug, Deserialize)]
struct Stages {
    total: Buckets,
}

#[derive(Clone, Debug, Deserialize)]
struct Buckets {
    counts: Vec<u64>,
    sum_s: f64,
}

/// The verdicts on a volume's windows.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub(super) struct Windows {
    pub(super) met: u64,
    pub(super) missed: u64,
    pub(super) out_of_contract: u64,
    pub(super) idle: u64,
}

/// The latencies of a volume's reads and writes between two readings, from the request parsed to the reply
/// handed to the socket.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub(super) struct GatewayView {
    pub(super) windows: Windows,
    pub(super) mean_us: f64,
    /// The upper bound of the bucket: the median is at most this, to a factor of two.
    pub(super) p50_us: f64,
    /// The same for the 99th percentile.
    pub(super) p99_us: f64,
}

impl Status {
    /// The status of the gateway at `address`, now.
    ///
    /// # Errors
    /// If the server does not answer, or the answer is not weir's.
    pub(super) fn read(address: SocketAddr) -> anyhow::Result<Self> {
        read(address)
    }

    /// The volume `name`.
    ///
    /// # Errors
    /// If the server has no such volume.
    pub(super) fn volume(&self, name: &str) -> anyhow::Result<&Volume> {
        let mut volumes = self.pools.iter().flat_map(|pool| &pool.volumes);
        volumes.find(|volume| volume.name == name).with_context(|| format!("the status has no volume {name}"))
    }
}

/// What the server at `address` says of itself, now.
///
/// # Errors
/// If the server does not answer, or the answer is not weir's.
pub(super) fn read<T: DeserializeOwned>(address: SocketAddr) -> anyhow::Result<T> {
    let url = format!("http://{address}/v1/status");
    let agent: ureq::Agent =
        ureq::Agent::config_builder().timeout_global(Some(ANSWER_TIMEOUT)).build().into();
    let mut answer = agent.get(&url).call().with_context(|| url.clone())?;
    let text = answer.body_mut().read_to_string().with_context(|| url.clone())?;
    serde_json::from_str(&text).with_context(|| format!("{url}: the answer is no status of weir"))
}

impl Volume {
    /// The number of windows that have closed so far.
    pub(super) const fn windows_closed(&self) -> u64 {
        let Windows { met, missed, out_of_contract, idle } = self.windows;
        met + missed + out_of_contract + idle
    }

    /// The bytes of all successful requests so far.
    pub(super) fn bytes(&self) -> u64 {
        self.requests.iter().map(|requests| requests.bytes).sum()
    }

    /// How many reads and writes have been answered so far, and the sum of their latencies in seconds.
    pub(super) fn answered(&self) -> (u64, f64) {
        let [reads, writes] = &self.latency;
        let count = reads.total.counts.iter().chain(&writes.total.counts).sum();
        (count, reads.total.sum_s + writes.total.sum_s)
    }

    /// The volume's reads and writes since `before`.
    #[allow(clippy::cast_precision_loss)] // exact up to 2^53 requests
    pub(super) fn since(&self, before: &Self) -> GatewayView {
        let [now, then] = [self, before].map(|volume| {
            let [reads, writes] = &volume.latency;
            reads.total.counts.iter().zip(&writes.total.counts).map(|(reads, writes)| reads + writes)
        });
        let counts: Vec<u64> = now.zip(then).map(|(now, then)| now.saturating_sub(then)).collect();
        let count = counts.iter().sum::<u64>();
        GatewayView {
            windows: Windows {
                met: self.windows.met - before.windows.met,
                missed: self.windows.missed - before.windows.missed,
                out_of_contract: self.windows.out_of_contract - before.windows.out_of_contract,
                idle: self.windows.idle - before.windows.idle,
            },
            mean_us: (self.answered().1 - before.answered().1) * 1e6 / count as f64,
            p50_us: bound_of_percentile(&counts, 50),
            p99_us: bound_of_percentile(&counts, 99),
        }
    }
}

impl GatewayView {
    /// Of a phase without a gateway.
    pub(super) const NONE: Self = Self {
        windows: Windows { met: 0, missed: 0, out_of_contract: 0, idle: 0 },
        mean_us: f64::NAN,
        p50_us: f64::NAN,
        p99_us: f64::NAN,
    };
}

impl Windows {
    /// Both together.
    pub(super) const fn plus(self, other: Self) -> Self {
        Self {
            met: self.met + other.met,
            missed: self.missed + other.missed,
            out_of_contract: self.out_of_contract + other.out_of_contract,
            idle: self.idle + other.idle,
        }
    }

    /// The share of the windows with a promise in which the promise was kept, in percent; NaN if there were
    /// none.
    #[allow(clippy::cast_precision_loss)]
    pub(super) fn attainment_percent(self) -> f64 {
        self.met as f64 * 100.0 / (self.met + self.missed) as f64
    }
}

/// The upper bound, in microseconds, of the bucket in which this percentile lies. Buckets end at 8 us, 16 us,
/// and so on (`pure/status/src/gateway.rs`); the last has no end.
fn bound_of_percentile(counts: &[u64], percent: u64) -> f64 {
    let wanted = (counts.iter().sum::<u64>() * percent).div_ceil(100);
    let mut seen = 0;
    let mut bound = 8.0;
    for count in counts.iter().take(counts.len().saturating_sub(1)) {
        seen += count;
        if seen >= wanted {
            return bound;
        }
        bound *= 2.0;
    }
    f64::INFINITY
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(counts: &[u64], sum_s: f64, met: u64) -> Status {
        let total = format!(r#"{{"total": {{"counts": {counts:?}, "sum_s": {sum_s}}}, "device": {{}}}}"#);
        let none = r#"{"total": {"counts": [0, 0, 0], "sum_s": 0}}"#;
        let windows = format!(r#"{{"met": {met}, "missed": 1, "out_of_contract": 0, "idle": 2}}"#);
        let volume = format!(
            r#"{{"name": "victim", "requests": [], "latency": [{total}, {none}], "windows": {windows}}}"#
        );
        serde_json::from_str(&format!(
            r#"{{"connections": 3, "pools": [{{"name": "p", "volumes": [{volume}]}}]}}"#
        ))
        .unwrap()
    }

    #[test]
    fn what_happened_is_the_difference_of_two_readings() {
        let (before, after) = (status(&[5, 0, 0], 1.0, 4), status(&[55, 49, 1], 1.001, 14));
        assert_eq!(after.connections, 3);
        let view = after.volume("victim").unwrap().since(before.volume("victim").unwrap());
        assert_eq!(view.windows, Windows { met: 10, ..Windows::default() });
        assert!((view.mean_us - 10.0).abs() < 1e-6, "1 ms over 100 requests: {}", view.mean_us);
        assert_eq!((view.p50_us.round(), view.p99_us.round()), (8.0, 16.0));
        assert_eq!(after.volume("victim").unwrap().windows_closed(), 17);
        assert!(after.volume("hog").is_err());
    }

    #[test]
    fn what_is_above_all_bounds_has_none() {
        assert!(bound_of_percentile(&[1, 0, 9], 50).is_infinite());
    }

    #[test]
    fn attainment_is_the_share_of_windows_with_a_promise() {
        let windows = Windows { met: 19, missed: 1, out_of_contract: 3, idle: 4 };
        assert!((windows.attainment_percent() - 95.0).abs() < 1e-9);
        assert!(Windows::default().attainment_percent().is_nan());
    }
}
