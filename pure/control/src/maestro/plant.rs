//! An array that is a formula, and clients that keep a number of requests outstanding. The law's tests
//! control it.

use std::num::NonZeroU32;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use weir_model::{LatencyHistogram, Objective, Span};

use super::*;
use crate::{Limits, PortObservation};

/// The interval, in seconds.
const INTERVAL: f64 = 2.0;
/// Bytes of a request.
pub(super) const REQUEST: u64 = 16 << 10;

/// A client of the array.
#[derive(Clone, Debug)]
pub(super) struct Client {
    pub(super) objective: Objective,
    pub(super) limits: Limits,
    /// Requests that it keeps outstanding, by port.
    pub(super) threads: Vec<u32>,
}

/// An array of servers, and its clients. Each client gets the share of the servers that its requests have
/// among all requests at the array.
pub(super) struct Plant {
    pub(super) law: Maestro,
    pub(super) total: u32,
    /// Requests that it answers in a second when all servers are busy.
    pub(super) rate: f64,
    pub(super) servers: f64,
    /// By how much throughput varies from interval to interval, as a share.
    pub(super) noise: f64,
    pub(super) clients: Vec<Client>,
    random: Pcg64Mcg,
    /// By client and port.
    bounds: Vec<Vec<u32>>,
}

/// The outcome of an interval, by client.
#[derive(Clone, Debug)]
pub(super) struct Outcome {
    /// The law's reasoning.
    pub(super) reasoning: Vec<Reasoning>,
    /// The grants for the next interval.
    pub(super) granted: Vec<Vec<u32>>,
}

impl Plant {
    pub(super) fn new(total: u32, rate: f64, clients: Vec<Client>) -> Self {
        let bounds = clients.iter().map(|client| vec![1; client.threads.len()]).collect();
        let (law, random) = (Maestro::new(), Pcg64Mcg::seed_from_u64(7));
        Self { law, total, rate, servers: f64::from(total) / 4.0, noise: 0.02, clients, random, bounds }
    }

    /// Lets intervals pass, and returns each client's mean performance over the last half of them. An
    /// interval without a performance counts as zero.
    pub(super) fn settle(&mut self, intervals: usize) -> Vec<f64> {
        let outcomes: Vec<Outcome> = (0..intervals).map(|_| self.interval()).collect();
        let last = &outcomes[intervals / 2..];
        let mean = |i: usize| {
            let seen = last.iter().map(|outcome| outcome.reasoning[i].performance.unwrap_or_default());
            #[allow(clippy::cast_precision_loss)]
            let count = last.len() as f64;
            seen.sum::<f64>() / count
        };
        (0..self.clients.len()).map(mean).collect()
    }

    /// One interval, and one step of the law.
    pub(super) fn interval(&mut self) -> Outcome {
        let seen = self.observation();
        let setting = self.law.step(Instant::ORIGIN, &seen);
        let granted: Vec<Vec<u32>> = setting
            .applications
            .iter()
            .map(|given| given.ports.iter().map(|grant| grant.concurrency.get()).collect())
            .collect();
        assert!(granted.iter().flatten().sum::<u32>() <= self.total, "{granted:?}");
        self.bounds.clone_from(&granted);
        Outcome { reasoning: setting.applications.iter().map(|given| given.reasoning).collect(), granted }
    }

    /// What the law sees of an interval under the bounds in force.
    pub(super) fn observation(&mut self) -> ArrayObservation {
        let busy = |threads: &[u32], bounds: &[u32]| {
            threads
                .iter()
                .zip(bounds)
                .map(|(threads, bound)| f64::from(*threads.min(bound)))
                .collect::<Vec<f64>>()
        };
        let at_device: Vec<Vec<f64>> = self
            .clients
            .iter()
            .zip(&self.bounds)
            .map(|(client, bounds)| busy(&client.threads, bounds))
            .collect();
        let all: f64 = at_device.iter().flatten().sum();
        let rate = self.rate * (all / self.servers).min(1.0);
        let mut applications = Vec::new();
        for (i, client) in self.clients.iter().enumerate() {
            let mut ports = Vec::new();
            for (j, threads) in client.threads.iter().copied().enumerate() {
                let noise = 1.0 + self.noise * self.random.random_range(-1.0..1.0);
                let rate = if all > 0.0 { rate * at_device[i][j] / all * noise } else { 0.0 };
                ports.push(port(rate, threads, at_device[i][j], self.bounds[i][j]));
            }
            let id = u64::try_from(i).unwrap();
            applications.push(ApplicationObservation {
                id,
                objective: client.objective,
                limits: client.limits,
                ports,
            });
        }
        ArrayObservation { total: NonZeroU32::new(self.total).unwrap(), applications }
    }
}

/// A port that answers `rate` requests a second to `threads` threads.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
fn port(rate: f64, threads: u32, at_device: f64, bound: u32) -> PortObservation {
    let answered = (rate * INTERVAL) as u64;
    let latency = if rate > 0.0 { f64::from(threads) / rate } else { 0.0 };
    let mut latencies = LatencyHistogram::new();
    // Eighteen of twenty are as fast as the mean, and the other two take twice as long.
    for i in 0..answered.min(1000) {
        latencies.record(Span::from_secs_f64(if i % 20 < 18 { latency } else { 2.0 * latency }));
    }
    PortObservation {
        over: Span::from_secs_f64(INTERVAL),
        arrived: answered,
        arrived_bytes: answered * REQUEST,
        answered,
        answered_bytes: answered * REQUEST,
        latency_sum: Span::from_secs_f64(latency * answered as f64),
        latencies,
        oldest: (threads > 0).then(|| Span::from_secs_f64(latency)),
        at_device,
        outstanding: f64::from(threads),
        bound: NonZeroU32::new(bound),
    }
}
