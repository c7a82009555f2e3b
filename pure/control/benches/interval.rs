//! What a control interval costs: the whole of Maestro's law over 10 to 1,000 applications with 16 ports
//! each, and the linear program alone. The budget is 2 ms for 1,000 applications.

#![allow(missing_docs)] // criterion's macros make a function without

use std::hint::black_box;
use std::num::NonZeroU32;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use weir_control::{
    ApplicationObservation, ArrayObservation, Law, Limits, Maestro, PortObservation, program,
};
use weir_model::{Bandwidth, Instant, Iops, LatencyHistogram, Objective, Percentile, Priority, Span, Target};

const PORTS: u32 = 16;
/// Requests at the array for each application.
const EACH: u32 = 40;
/// Observations made beforehand, so that making them is not measured. There are only a few, so that they are
/// in the processor's cache, as are those of a running array, which were written just before.
const INTERVALS: u64 = 4;
/// Latencies in the histogram of a port.
const LATENCIES: u32 = 200;

/// One of four kinds of targets.
fn target(kind: u64) -> Target {
    let latency = Span::from_millis(10);
    match kind % 4 {
        0 => Target::Rate(Iops::new(16_000.0).expect("above zero")),
        1 => Target::Throughput(Bandwidth::new(1 << 26).expect("above zero")),
        2 => Target::Latency(latency),
        _ => Target::Percentile(Percentile::from_tenths(950).expect("a percentile"), latency),
    }
}

/// A port at which an application falls short of its target by a random part.
fn port(random: &mut Pcg64Mcg, target: Target) -> PortObservation {
    let answered = random.random_range(500..2000);
    let micros = random.random_range(8_000..20_000);
    let mut latencies = LatencyHistogram::new();
    if let Target::Percentile(..) = target {
        for _ in 0..LATENCIES {
            latencies.record(Span::from_micros(micros * random.random_range(50..150) / 100));
        }
    }
    PortObservation {
        over: Span::from_secs(2),
        arrived: answered,
        arrived_bytes: answered << 12,
        answered,
        answered_bytes: answered << 12,
        latency_sum: Span::from_micros(micros * answered),
        latencies,
        oldest: Some(Span::from_micros(micros)),
        at_device: f64::from(EACH) / f64::from(PORTS),
        outstanding: random.random_range(1.0..20.0),
        bound: None,
    }
}

/// Successive intervals of an array in overload.
fn intervals(applications: u32) -> Vec<ArrayObservation> {
    let mut random = Pcg64Mcg::seed_from_u64(1);
    let priorities: Vec<f64> = (0..applications).map(|_| random.random_range(1.0..8.0)).collect();
    let mut application = |id: u64, priority: f64| {
        let target = target(id);
        let limits =
            Limits { max_iops: Iops::new(1e5), max_bandwidth: Bandwidth::new(1 << 30), ..Limits::default() };
        ApplicationObservation {
            id,
            objective: Objective {
                target: Some(target),
                priority: Priority::new(priority).expect("above zero"),
            },
            limits,
            ports: (0..PORTS).map(|_| port(&mut random, target)).collect(),
        }
    };
    let mut interval = || ArrayObservation {
        total: NonZeroU32::new(applications * EACH).expect("above zero"),
        applications: (0..).zip(&priorities).map(|(id, priority)| application(id, *priority)).collect(),
    };
    (0..INTERVALS).map(|_| interval()).collect()
}

fn steps(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("control_interval");
    for applications in [10, 100, 1_000] {
        let intervals = intervals(applications);
        let mut law = Maestro::new();
        let mut seen = intervals.iter().cycle();
        group.bench_function(BenchmarkId::new("maestro", applications), |bencher| {
            bencher.iter(|| black_box(law.step(Instant::ORIGIN, seen.next().expect("without end"))));
        });
        let ranges = ranges(applications);
        let sum = ranges.iter().map(|range| range.lower.midpoint(range.upper)).sum();
        group.bench_function(BenchmarkId::new("program", applications), |bencher| {
            bencher.iter(|| black_box(program::solve(black_box(&ranges), sum)));
        });
    }
    group.finish();
}

/// Ranges as the arbiter gives them to the program.
fn ranges(applications: u32) -> Vec<program::Range> {
    let mut random = Pcg64Mcg::seed_from_u64(2);
    let mut range = || {
        let (lower, width) = (random.random_range(0.0..1.0), random.random_range(0.0..1.0));
        let (error, fall) = (random.random_range(-1.0..1.0), random.random_range(0.0..1.0));
        program::Range { lower, upper: lower + width, error_at_lower: error, error_at_upper: error - fall }
    };
    (0..applications).map(|_| range()).collect()
}

criterion_group!(benches, steps);
criterion_main!(benches);
