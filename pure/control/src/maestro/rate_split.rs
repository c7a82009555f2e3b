//! A volume's limits on rates, split over its ports.
//!
//! Each port enforces its part alone. The sum of the parts is the limit, so that many gateways do not give
//! many times the limit. A part is in proportion to two things, with the same weight: the arrivals at the
//! port, and the requests outstanding there.
//!
//! Arrivals alone would not do. From a client that waits for its answers, only what the limit lets through
//! arrives, so a port that had little once would have little for ever. Outstanding requests alone would not
//! do either. If nothing is held back, they say how slow the port is, and not how much comes through it.
//!
//! Each port has at least a twentieth of an equal share, so that an idle port can begin.
//!
//! **Rounding.** A part is a float until here. It is rounded down to whole thousandths of a request a second,
//! and to whole bytes a second, so that the sum of the parts never exceeds the limit. But each port has at
//! least one unit: of a limit of 3 bytes a second, four ports have one byte each.

use weir_model::{Bandwidth, MilliIops};

use super::observation::{ApplicationObservation, PortObservation, amount};

/// The least part of a port, as a share of an equal one.
const FLOOR: f64 = 0.05;
/// Keeps the sum of the parts below the limit, however they are rounded.
const ROUNDING: f64 = 1.0 - 1e-9;

/// Each port's part of the limits of the application.
pub(crate) fn split(application: &ApplicationObservation) -> Vec<(Option<MilliIops>, Option<Bandwidth>)> {
    let ports = &application.ports;
    let limits = application.limits;
    let by_requests =
        limits.max_iops.map(MilliIops::at_most).map(|limit| (limit, parts(ports, |port| port.arrived)));
    let by_bytes = limits.max_bandwidth.map(|limit| (limit, parts(ports, |port| port.arrived_bytes)));
    let iops = |i: usize| {
        let (limit, parts) = by_requests.as_ref()?;
        Some(if ports.len() == 1 { *limit } else { iops_of(*limit, parts[i]) })
    };
    let bandwidth = |i: usize| {
        let (limit, parts) = by_bytes.as_ref()?;
        Some(if ports.len() == 1 { *limit } else { bandwidth_of(*limit, parts[i]) })
    };
    (0..ports.len()).map(|i| (iops(i), bandwidth(i))).collect()
}

/// Each port's part, as a fraction of one.
fn parts(ports: &[PortObservation], arrived: fn(&PortObservation) -> u64) -> Vec<f64> {
    let arrivals = shares(ports.iter().map(|port| to_f64(arrived(port))).collect());
    let waiting = shares(ports.iter().map(|port| amount(port.outstanding)).collect());
    let equal = 1.0 / to_f64(u64::try_from(ports.len()).unwrap_or(u64::MAX));
    let part = |(arrivals, waiting): (f64, f64)| {
        (FLOOR * equal + (1.0 - FLOOR) * f64::midpoint(arrivals, waiting)) * ROUNDING
    };
    arrivals.into_iter().zip(waiting).map(part).collect()
}

/// `amounts` scaled so that their sum is one; equal parts if all are zero.
fn shares(amounts: Vec<f64>) -> Vec<f64> {
    let sum: f64 = amounts.iter().sum();
    let equal = 1.0 / to_f64(u64::try_from(amounts.len()).unwrap_or(u64::MAX));
    amounts.into_iter().map(|amount| if sum > 0.0 { amount / sum } else { equal }).collect()
}

/// At least a thousandth of a request a second: there is no less.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // of a number that is less
fn iops_of(limit: MilliIops, part: f64) -> MilliIops {
    MilliIops::at_least_one((to_f64(limit.get()) * part) as u64)
}

/// At least a byte a second: there is no less.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // of a number that is less
fn bandwidth_of(limit: Bandwidth, part: f64) -> Bandwidth {
    Bandwidth::new((to_f64(limit.get()) * part) as u64).unwrap_or(Bandwidth::new(1).expect("above zero"))
}

#[allow(clippy::cast_precision_loss)] // counts and rates far below 2^53
const fn to_f64(value: u64) -> f64 {
    value as f64
}

#[cfg(test)]
mod tests {
    use weir_model::{Iops, Objective};

    use super::*;
    use crate::maestro::observation::Limits;

    fn volume(limit: u64, ports: &[(u64, f64)]) -> ApplicationObservation {
        let port = |(arrived, outstanding): &(u64, f64)| PortObservation {
            arrived: *arrived,
            arrived_bytes: *arrived * 4096,
            outstanding: *outstanding,
            ..PortObservation::default()
        };
        ApplicationObservation {
            id: 1,
            objective: Objective::default(),
            limits: Limits {
                concurrency: None,
                max_iops: Iops::new(to_f64(limit)),
                max_bandwidth: Bandwidth::new(limit),
            },
            ports: ports.iter().map(port).collect(),
        }
    }

    fn bytes(limit: u64, ports: &[(u64, f64)]) -> Vec<u64> {
        split(&volume(limit, ports)).iter().map(|(_, bandwidth)| bandwidth.unwrap().get()).collect()
    }

    #[test]
    fn with_one_port_its_part_is_the_limit_itself() {
        assert_eq!(split(&volume(1000, &[(0, 0.0)])), [(MilliIops::new(1_000_000), Bandwidth::new(1000))]);
    }

    #[test]
    fn the_parts_follow_what_arrives_and_what_waits() {
        assert_eq!(bytes(1_000_000, &[(300, 30.0), (100, 10.0)]), [737_499, 262_499]);
        assert_eq!(bytes(1_000_000, &[(0, 0.0), (0, 0.0)]), [499_999, 499_999]);
    }

    #[test]
    fn an_idle_port_can_begin() {
        assert_eq!(bytes(1_000_000, &[(300, 30.0), (0, 0.0)]), [974_999, 24_999]);
    }

    #[test]
    fn a_port_that_was_idle_gets_its_half_though_all_that_arrives_is_what_it_lets_through() {
        let (limit, mut parts) = (100_000.0, vec![0.975, 0.025]);
        for _ in 0..10 {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let port = |part: &f64| ((limit * part) as u64, 32.0);
            let ports: Vec<_> = parts.iter().map(port).collect();
            parts = bytes(1_000_000, &ports).iter().map(|part| to_f64(*part) / 1e6).collect();
        }
        assert!((parts[1] - 0.5).abs() < 0.01, "{parts:?}");
    }

    #[test]
    fn the_parts_are_never_more_than_the_limit_in_sum() {
        for limit in [100, 12_345, 999_999_999] {
            let ports = [(7, 0.3), (0, 0.0), (u64::from(u32::MAX), 7.5), (3, f64::NAN)];
            let (iops, bandwidth): (Vec<_>, Vec<_>) =
                split(&volume(limit, &ports)).into_iter().map(|(a, b)| (a.unwrap(), b.unwrap())).unzip();
            assert!(iops.iter().map(|part| part.get()).sum::<u64>() <= limit * 1000);
            assert!(bandwidth.iter().map(|part| part.get()).sum::<u64>() <= limit);
        }
    }
}
