//! The observation for the laws that share out an array: what each application was to get, and what it got at
//! each port.

use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};
use weir_model::{Bandwidth, Iops, LatencyHistogram, Objective, Percentile, Span, Target};

/// The observation of an array in the control interval that ended.
#[derive(Clone, PartialEq, Debug)]
pub struct ArrayObservation {
    /// `C`: how many requests may be at the array at a time, from all ports together. The law shares it out.
    /// It is at least the number of ports of all applications, in sum.
    pub total: NonZeroU32,
    /// The applications, in an order that is the observer's.
    pub applications: Vec<ApplicationObservation>,
}

/// The observation of an application: a volume, with all the ports that its requests come through.
#[derive(Clone, PartialEq, Debug)]
pub struct ApplicationObservation {
    /// The name by which the law remembers it. No two applications have the same, and it is never used again
    /// for another.
    pub id: u64,
    /// What it is to get.
    pub objective: Objective,
    /// The limits that the operator has set, over all ports.
    pub limits: Limits,
    /// Its ports, at least one, in an order that is the observer's.
    pub ports: Vec<PortObservation>,
}

/// The limits that a volume must never exceed, over all ports together.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct Limits {
    /// Requests at the device at a time; at least the number of ports.
    pub concurrency: Option<NonZeroU32>,
    /// Requests a second.
    pub max_iops: Option<Iops>,
    /// Bytes a second.
    pub max_bandwidth: Option<Bandwidth>,
}

/// The observation of an application at one port in a control interval.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct PortObservation {
    /// How long the interval was.
    pub over: Span,
    /// Reads and writes that arrived.
    pub arrived: u64,
    /// Their bytes.
    pub arrived_bytes: u64,
    /// Reads and writes that were answered with success.
    pub answered: u64,
    /// Their bytes.
    pub answered_bytes: u64,
    /// Their latencies, in sum.
    pub latency_sum: Span,
    /// Their latencies, if the target is a percentile; empty otherwise.
    pub latencies: LatencyHistogram,
    /// How long the oldest read or write that is not answered has waited until now.
    pub oldest: Option<Span>,
    /// The number of requests at the device, as the mean over the interval.
    pub at_device: f64,
    /// `d`: the number of requests submitted and not answered, at the device or not, as the mean over the
    /// interval.
    pub outstanding: f64,
    /// The bound in force at the end of the interval, if there was one. A restarted law goes on from it.
    pub bound: Option<NonZeroU32>,
}

impl ApplicationObservation {
    /// The mean number of requests at the device, from all ports.
    pub fn at_device(&self) -> f64 {
        self.ports.iter().map(|port| port.at_device).sum()
    }

    /// The mean number of requests submitted and not answered, at all ports.
    pub fn outstanding(&self) -> f64 {
        self.ports.iter().map(|port| port.outstanding).sum()
    }

    /// `y`: how much of its target it got; 1 or more if it got all. `None` without a target, and if it asked
    /// for nothing.
    ///
    /// If the metric is a latency and nothing was answered, there is none; but with `counts_ages`, the age of
    /// the oldest request stands in for the latency, which is at least that.
    pub(crate) fn performance(&self, counts_ages: bool) -> Option<f64> {
        // Some figures come from other gateways, and may be anything.
        let sum = |of: fn(&PortObservation) -> u64| self.ports.iter().map(of).fold(0, u64::saturating_add);
        let answered = sum(|port| port.answered);
        let asked = answered > 0 || self.ports.iter().any(|port| port.oldest.is_some());
        let over = self.ports.iter().map(|port| port.over).max().unwrap_or_default().as_secs_f64();
        if !asked || over <= 0.0 {
            return None;
        }
        let oldest = || self.oldest().filter(|_| counts_ages);
        match self.objective.target? {
            Target::Rate(rate) => Some(to_f64(answered) / over / rate.get()),
            Target::Throughput(rate) => {
                Some(to_f64(sum(|port| port.answered_bytes)) / over / to_f64(rate.get()))
            }
            Target::Latency(target) => {
                let spent = self.ports.iter().map(|port| port.latency_sum.as_secs_f64()).sum::<f64>();
                let mean = if answered > 0 { spent / to_f64(answered) } else { oldest()?.as_secs_f64() };
                Some(target.as_secs_f64() / mean.max(NANOSECOND))
            }
            Target::Percentile(percentile, target) => {
                let latency = self.percentile(percentile).or_else(oldest)?;
                Some(target.as_secs_f64() / latency.as_secs_f64().max(NANOSECOND))
            }
        }
    }

    /// The percentile over all ports. [`LatencyHistogram::merge`] would find the same in ten times the time.
    /// With many ports, that would be most of what the law costs.
    fn percentile(&self, percentile: Percentile) -> Option<Span> {
        let mut counts: Vec<u64> = Vec::new();
        for (bucket, count) in self.ports.iter().flat_map(|port| port.latencies.counts()) {
            let bucket = usize::from(bucket);
            if bucket >= counts.len() {
                counts.resize(bucket + 1, 0);
            }
            counts[bucket] += u64::from(count);
        }
        let rank = (counts.iter().sum::<u64>() * u64::from(percentile.tenths())).div_ceil(1000).max(1);
        let mut below = 0;
        let is_within = |(_, count): &(u16, &u64)| {
            below += **count;
            below >= rank
        };
        let (bucket, _) = (0..).zip(&counts).find(is_within)?;
        LatencyHistogram::from_counts([(bucket, 1)]).percentile(percentile)
    }

    fn oldest(&self) -> Option<Span> {
        self.ports.iter().filter_map(|port| port.oldest).max()
    }
}

/// A mean number of requests, made safe: nothing if it is not finite or at most a thousand-millionth, and no
/// more than a `u32` holds.
pub(crate) fn amount(mean: f64) -> f64 {
    if mean.is_finite() && mean > 1e-9 { mean.min(f64::from(u32::MAX)) } else { 0.0 }
}

/// The shortest latency that counts, in seconds, so that nothing is divided by zero.
const NANOSECOND: f64 = 1e-9;

#[allow(clippy::cast_precision_loss)] // counts and rates far below 2^53
const fn to_f64(value: u64) -> f64 {
    value as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_over_ports_is_that_of_all_their_latencies() {
        let latencies = |micros: std::ops::Range<u64>| {
            let mut latencies = LatencyHistogram::new();
            micros.for_each(|micros| latencies.record(Span::from_micros(micros * micros)));
            latencies
        };
        let port = |latencies| PortObservation { latencies, ..PortObservation::default() };
        let ports = vec![port(latencies(1..70)), port(latencies(5..5)), port(latencies(40..900))];
        let mut merged = LatencyHistogram::new();
        ports.iter().for_each(|port| merged.merge(&port.latencies));
        let seen = |ports| ApplicationObservation {
            id: 0,
            objective: Objective::default(),
            limits: Limits::default(),
            ports,
        };
        let (all, none) = (seen(ports), seen(Vec::new()));
        for percentile in [1, 500, 950, 999].map(|tenths| Percentile::from_tenths(tenths).unwrap()) {
            assert_eq!(all.percentile(percentile), merged.percentile(percentile));
            assert_eq!(none.percentile(percentile), None);
        }
    }
}
