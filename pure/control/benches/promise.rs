//! What a period of the law of promises costs, over 10 to 1,000 volumes: with all kinds of targets, and with
//! rates that do not fit. The budget is 0.5 ms for 1,000.

#![allow(missing_docs)] // criterion's macros make a function without

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use weir_control::{Law, PromiseObservation, PromisedObservation, Promises, WindowSeen};
use weir_model::{Instant, Iops, Percentile, Span, Target};

/// Observations made beforehand, so that making them is not measured.
const PERIODS: usize = 4;

/// A rate that no volume gets.
fn rate(_: u64) -> Option<Target> {
    Iops::new(400.0).map(Target::Rate)
}

/// One of four kinds: three targets, and none.
fn mixed(kind: u64) -> Option<Target> {
    let latency = Span::from_millis(10);
    match kind % 4 {
        0 => Iops::new(200.0).map(Target::Rate),
        1 => Some(Target::Latency(latency)),
        2 => Percentile::from_tenths(990).map(|percentile| Target::Percentile(percentile, latency)),
        _ => None,
    }
}

fn volume(random: &mut Pcg64Mcg, serial: u64, target: fn(u64) -> Option<Target>) -> PromisedObservation {
    let arrived = random.random_range(5..15);
    let spent = |requests: u32| Span::from_micros(u64::from(requests) * 5_000);
    let window = |arrived| WindowSeen { arrived, outstanding: 2, spent: spent(arrived) };
    PromisedObservation {
        serial,
        target: target(serial),
        spent: spent(arrived),
        busy: Promises::PERIOD,
        arrived,
        answered: arrived,
        outstanding: 4,
        at_device: 2,
        current: window(100),
        previous: window(200),
        at_device_for: spent(arrived),
        finished: arrived,
        ended: Some(window(200)),
        ..PromisedObservation::default()
    }
}

fn period(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("period of the law of promises");
    let kinds: [(_, fn(u64) -> _); 2] = [("mixed", mixed), ("rates", rate)];
    let cases = kinds.into_iter().flat_map(|kind| [10, 100, 1_000].map(|volumes| (kind, volumes)));
    for ((name, target), volumes) in cases {
        let mut random = Pcg64Mcg::seed_from_u64(1);
        let mut seen = || PromiseObservation {
            volumes: (0..volumes).map(|serial| volume(&mut random, serial, target)).collect(),
            background_peak: 8,
            background_at_device: 8,
        };
        let periods: Vec<_> = (0..PERIODS).map(|_| seen()).collect();
        group.bench_function(BenchmarkId::new(name, volumes), |bencher| {
            let (mut law, mut now, mut number) = (Promises::default(), Instant::ORIGIN, 0);
            bencher.iter(|| {
                number += 1;
                now = now + Promises::PERIOD;
                black_box(law.step(now, black_box(&periods[number % PERIODS])))
            });
        });
    }
    group.finish();
}

criterion_group!(benches, period);
criterion_main!(benches);
