//! What holds for every observation.

use std::num::NonZeroU32;

use proptest::prelude::*;
use weir_model::{
    Bandwidth, Iops, LatencyHistogram, MilliIops, Objective, Percentile, Priority, Span, Target,
};

use super::*;
use crate::{Limits, PortObservation};

fn number() -> impl Strategy<Value = f64> {
    prop_oneof![0.0..50.0, Just(0.0), Just(f64::NAN), Just(f64::INFINITY), Just(-1.0), Just(1e300)]
}

fn count() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), 0..10_000_u64, Just(1 << 50)]
}

fn port() -> impl Strategy<Value = PortObservation> {
    let span = || prop_oneof![Just(0), 0..10_000_000_000_u64, Just(u64::MAX)].prop_map(Span::from_nanos);
    let oldest = prop::option::of(span());
    let bound = prop_oneof![Just(None), (1..100_u32).prop_map(NonZeroU32::new), Just(Some(NonZeroU32::MAX))];
    let counts = (count(), count(), count(), count());
    let latency = prop::option::of(span());
    (span(), counts, span(), latency, oldest, number(), number(), bound).prop_map(
        |(
            over,
            (arrived, arrived_bytes, answered, answered_bytes),
            latency_sum,
            latency,
            oldest,
            at_device,
            outstanding,
            bound,
        )| {
            let mut latencies = LatencyHistogram::new();
            latency.into_iter().for_each(|latency| latencies.record(latency));
            PortObservation {
                over,
                arrived,
                arrived_bytes,
                answered,
                answered_bytes,
                latency_sum,
                latencies,
                oldest,
                at_device,
                outstanding,
                bound,
            }
        },
    )
}

fn target() -> impl Strategy<Value = Option<Target>> {
    let rate = prop_oneof![Just(1e-300), 1.0..1e6, Just(1e300)];
    let span = prop_oneof![Just(0), 0..1_000_000_000_u64, Just(u64::MAX)].prop_map(Span::from_nanos);
    prop_oneof![
        Just(None),
        rate.prop_map(|rate| Iops::new(rate).map(Target::Rate)),
        (1..u64::MAX).prop_map(|rate| Bandwidth::new(rate).map(Target::Throughput)),
        span.clone().prop_map(|span| Some(Target::Latency(span))),
        (1..999_u16, span).prop_map(|(p, span)| Some(Target::Percentile(Percentile::from_tenths(p)?, span))),
    ]
}

fn application() -> impl Strategy<Value = ApplicationObservation> {
    let priority = prop_oneof![Just(1.0), 0.1..10.0, Just(1e-300), Just(1e300)];
    let priority = priority.prop_map(|priority| Priority::new(priority).unwrap());
    let ports = prop::collection::vec(port(), 1..5);
    let limit = prop::option::of(5..200_u32);
    let rate = prop::option::of(100..100_000_u32);
    (0..8_u64, target(), priority, ports, limit, rate).prop_map(
        |(id, target, priority, ports, limit, rate)| {
            let limits = Limits {
                concurrency: limit.and_then(NonZeroU32::new),
                max_iops: rate.and_then(|rate| Iops::new(f64::from(rate))),
                max_bandwidth: rate.and_then(|rate| Bandwidth::new(u64::from(rate))),
            };
            ApplicationObservation { id, objective: Objective { target, priority }, limits, ports }
        },
    )
}

fn array() -> impl Strategy<Value = ArrayObservation> {
    let applications = prop::collection::vec(application(), 0..8);
    (applications, prop_oneof![Just(0), 0..300_u32]).prop_map(|(mut applications, spare)| {
        for (id, application) in (0..).zip(&mut applications) {
            application.id = id;
        }
        let ports: usize = applications.iter().map(|application| application.ports.len()).sum();
        let total = u32::try_from(ports).unwrap() + spare;
        ArrayObservation { total: NonZeroU32::new(total).unwrap_or(NonZeroU32::MIN), applications }
    })
}

fn assert_holds(seen: &ArrayObservation, setting: &ArraySetting) -> Result<(), TestCaseError> {
    prop_assert_eq!(setting.applications.len(), seen.applications.len());
    let mut sum = 0;
    for (seen, given) in seen.applications.iter().zip(&setting.applications) {
        prop_assert_eq!(given.ports.len(), seen.ports.len());
        let granted: u64 = given.ports.iter().map(|grant| u64::from(grant.concurrency.get())).sum();
        sum += granted;
        if let Some(limit) = seen.limits.concurrency {
            prop_assert!(granted <= u64::from(limit.get()), "{} of {}", granted, limit);
        }
        let Reasoning { performance, slope, fit, had, required, allotted, .. } = given.reasoning;
        let found = match fit {
            Fit::Regression(found) | Fit::Poor(found) | Fit::OutOfBounds(found) => found,
            Fit::NoInformation => 0.0,
        };
        for number in [performance.unwrap_or_default(), slope, found, had, required, allotted] {
            prop_assert!(number.is_finite(), "{:?}", given.reasoning);
        }
        let iops: u64 = given.ports.iter().filter_map(|grant| Some(grant.max_iops?.get())).sum();
        prop_assert!(seen.limits.max_iops.is_none_or(|limit| iops <= MilliIops::at_most(limit).get()));
        let bytes: u64 = given.ports.iter().filter_map(|grant| Some(grant.max_bandwidth?.get())).sum();
        prop_assert!(seen.limits.max_bandwidth.is_none_or(|limit| bytes <= limit.get()));
    }
    prop_assert!(sum <= u64::from(seen.total.get()), "{} of {}", sum, seen.total);
    Ok(())
}

proptest! {
    #[test]
    fn the_sum_of_all_grants_is_at_most_the_total_and_all_numbers_are_finite(
        arrays in prop::collection::vec(array(), 1..12)
    ) {
        let mut law = Maestro::new();
        for seen in &arrays {
            assert_holds(seen, &law.step(Instant::ORIGIN, seen))?;
        }
    }

    #[test]
    fn the_same_observations_give_the_same_setting(arrays in prop::collection::vec(array(), 1..4)) {
        let (mut one, mut other) = (Maestro::new(), Maestro::new());
        for seen in &arrays {
            prop_assert_eq!(one.step(Instant::ORIGIN, seen), other.step(Instant::ORIGIN, seen));
        }
    }
}
