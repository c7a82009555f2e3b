//! Random volumes, their configurations, and their clients' loads.

use std::num::NonZeroU32;

use rand::RngExt;
use weir_engine::VolumeConfig;
use weir_model::{
    Bandwidth, IoKind, Iops, Objective, Percentile, Priority, Slo, SloPoint, Span, Target, VolumeId,
};

use super::{pick, span};
use crate::random::Prng;
use crate::scenario::{Arrivals, Locality, Phase, TraceRequest, VolumeScenario, Workload};

/// Sizes are multiples of this.
const BLOCK: u64 = 4096;
/// The size of the smallest volume. The longest request fits in.
const SMALLEST: u64 = 64 * BLOCK;
const LONGEST: u32 = 32 * 4096;

/// One to eight volumes anywhere on an array of `array` bytes. They may overlap.
pub(super) fn volumes(random: &mut Prng, duration: Span, array: u64) -> Vec<VolumeScenario> {
    let number = random.random_range(1..=8);
    // The total load is the same for any number of volumes. Otherwise, scenarios with eight volumes would
    // take most of the time.
    let mut volumes: Vec<_> = (0..number)
        .map(|volume| draw_volume(random, volume, duration, array, 2_000.0 / f64::from(number)))
        .collect();
    for volume in volumes.iter_mut().skip(1).filter(|_| random.random_bool(0.2)) {
        volume.config.port_of = Some(VolumeId(0));
    }
    volumes
}

/// Requests of every kind, anywhere on a device of a terabyte.
pub(super) fn recording(random: &mut Prng, duration: Span) -> Vec<TraceRequest> {
    let number = random.random_range(0..300);
    let mut recording: Vec<_> = (0..number)
        .map(|_| TraceRequest {
            at: within(random, duration),
            kind: pick(random, &IoKind::ALL),
            offset: random.random_range(0..1 << 31) * 512,
            length: random.random_range(0..=LONGEST / 512) * 512,
        })
        .collect();
    recording.sort_by_key(|request| request.at);
    recording
}

/// Any instant of a run.
pub(super) fn within(random: &mut Prng, duration: Span) -> Span {
    Span::from_nanos(random.random_range(0..=duration.as_nanos()))
}

fn draw_volume(random: &mut Prng, number: u32, duration: Span, array: u64, rate: f64) -> VolumeScenario {
    let size = random.random_range(SMALLEST / BLOCK..=array / BLOCK) * BLOCK;
    let start = random.random_range(0..=(array - size) / BLOCK) * BLOCK;
    let repeat = random.random_bool(0.3).then(|| span(random, 50, 500));
    let begins = if random.random_bool(0.8) { Span::ZERO } else { span(random, 1, 49) };
    let mut phases: Vec<Phase> = Vec::new();
    for number in 0..random.random_range(1..=4) {
        let at = if number == 0 { begins } else { within(random, repeat.unwrap_or(duration)) };
        let workload = random.random_bool(0.8).then(|| workload(random, rate));
        phases.push(Phase { at, workload });
    }
    phases.sort_by_key(|phase| phase.at);
    phases.dedup_by_key(|phase| phase.at);
    phases.retain(|phase| repeat.is_none_or(|repeat| phase.at < repeat));
    let mut changes: Vec<(Span, VolumeConfig)> =
        (0..random.random_range(0..4)).map(|_| (within(random, duration), treatment(random, rate))).collect();
    changes.sort_by_key(|(at, _)| *at);
    let config = treatment(random, rate);
    VolumeScenario { name: format!("volume-{number}"), config, start, size, phases, repeat, changes }
}

/// A load of about this rate. One load in eight has ten times the rate.
fn workload(random: &mut Prng, rate: f64) -> Workload {
    let rate = rate * random.random_range(0.05..1.5) * if random.random_bool(0.125) { 10.0 } else { 1.0 };
    let rate = Iops::new(rate).expect("above zero");
    let arrivals = match random.random_range(0..3) {
        0 => Arrivals::Poisson(rate),
        1 => Arrivals::Constant(rate),
        _ => {
            let think = if random.random_bool(0.5) { Span::ZERO } else { span(random, 0, 20) };
            Arrivals::Closed { threads: random.random_range(0..=32), think }
        }
    };
    let locality = match random.random_range(0..3) {
        0 => Locality::Uniform,
        1 => Locality::Zipf(random.random_range(0.1..2.0)),
        _ => Locality::Runs(random.random_range(1..100)),
    };
    let reads = pick(random, &[0.0, 0.3, 0.67, 1.0]);
    let sizes =
        (0..random.random_range(1..4)).map(|_| (size(random), random.random_range(0.1..1.0))).collect();
    let flush_every = NonZeroU32::new(random.random_range(0..20)).filter(|_| random.random_bool(0.3));
    Workload { arrivals, reads, sizes, locality, flush_every }
}

fn size(random: &mut Prng) -> u32 {
    match random.random_range(0..4) {
        0 => 512 * random.random_range(1..=LONGEST / 512),
        1 => LONGEST,
        _ => 4096,
    }
}

fn treatment(random: &mut Prng, rate: f64) -> VolumeConfig {
    let often = |random: &mut Prng, share: f64| random.random_bool(share);
    VolumeConfig {
        slo: often(random, 0.6).then(|| slo(random, rate)),
        objective: objective(random, rate),
        port_of: None,
        concurrency: often(random, 0.3).then(|| NonZeroU32::new(random.random_range(1..=8))).flatten(),
        max_iops: often(random, 0.3).then(|| Iops::new(rate * random.random_range(0.01..3.0))).flatten(),
        max_bandwidth: often(random, 0.3)
            .then(|| Bandwidth::new(random.random_range(64 * 1024..64 * 1024 * 1024)))
            .flatten(),
    }
}

/// An absolute target of any kind, or none, and a priority.
fn objective(random: &mut Prng, rate: f64) -> Objective {
    let iops = Iops::new(rate * random.random_range(0.05..2.0)).expect("above zero");
    let target = match random.random_range(0..5) {
        0 => Some(Target::Latency(span(random, 1, 100))),
        1 => {
            let percentile = Percentile::from_tenths(random.random_range(1..=999)).expect("within range");
            Some(Target::Percentile(percentile, span(random, 1, 100)))
        }
        2 => Bandwidth::new(random.random_range(64 * 1024..64 * 1024 * 1024)).map(Target::Throughput),
        3 => Some(Target::Rate(iops)),
        _ => None,
    };
    let priority = Priority::new(random.random_range(0.1..10.0)).expect("above zero");
    Objective { target, priority }
}

/// A curve of one to three points, from latencies that no disk can meet to such that any disk can.
fn slo(random: &mut Prng, rate: f64) -> Slo {
    let (mut up_to, mut read, mut write) = (0.0, Span::ZERO, Span::ZERO);
    let points = (0..random.random_range(1..=3)).map(|_| {
        up_to += rate * random.random_range(0.05..2.0);
        read += span(random, 1, 100);
        write += span(random, 1, 100);
        SloPoint { up_to: Iops::new(up_to).expect("above zero"), read, write }
    });
    Slo::new(points.collect()).expect("every point is above the one before")
}
