//! Simulated requests a second, with clients, engine, control, array, disks, checkers and report. The budget
//! is 1 us for each request. Runs have three lengths, because the cost must not depend on the number of
//! earlier requests.

#![allow(missing_docs)] // criterion's macros make a function without

use std::hint::black_box;
use std::num::NonZeroU32;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use weir_engine::{Control, EngineConfig, Event, VolumeConfig};
use weir_model::{Bandwidth, Instant, Iops, Slo, SloPoint, Span};
use weir_sim::{
    ArrayOptions, Arrivals, CacheOptions, DiskOptions, Layout, LinkOptions, Locality, MemberOptions,
    Observer, Phase, RaidLevel, Scenario, StationOptions, UnitOptions, VolumeScenario, Workload, World,
};

/// Counts the answered requests: the least that an observer does.
#[derive(Default)]
struct Count(u64);

impl Observer for Count {
    fn on_event(&mut self, _now: Instant, event: &Event) {
        self.0 += u64::from(matches!(event, Event::Finished { .. }));
    }
}

/// Six disks of 10,000 rpm in RAID-5 behind a port of 100 MB/s. They have so little NVRAM that it is full
/// within seconds. Until NVRAM is full, writes cost nothing, so a short run would be faster than a long one.
fn raid_5() -> ArrayOptions {
    let cache = CacheOptions {
        nvram: 8 << 20,
        high_water: 0.8,
        low_water: 0.6,
        flush_after: Some(Span::from_secs(10)),
        destages: 4,
        filled: 0.0,
        read_cache: 0,
        prefetch: 0,
    };
    let unit = UnitOptions {
        member: MemberOptions::Disk(DiskOptions::preset("cheetah-18lp").expect("a known disk")),
        members: 6,
        raid: RaidLevel::Raid5,
        stripe_unit: 16 << 10,
        size: None,
        cache,
        overhead: Span::from_micros(100),
        rebuild_rate: bandwidth(10_000_000),
    };
    let port = LinkOptions { bandwidth: bandwidth(100_000_000), overhead: Span::from_micros(10) };
    ArrayOptions { units: vec![unit], layout: Layout::Concatenated, ports: vec![port] }
}

/// An array that costs next to nothing, so that the run shows the cost of the driver.
fn station() -> ArrayOptions {
    let servers = NonZeroU32::new(6).expect("above zero");
    let station = StationOptions { servers, service_time: Span::from_millis(8), exponential: false };
    ArrayOptions::bare(MemberOptions::Station(station), 64 << 30)
}

fn bandwidth(bytes_a_second: u64) -> Bandwidth {
    Bandwidth::new(bytes_a_second).expect("above zero")
}

/// A volume with a promise beside one that always has 64 requests outstanding: 67 % reads, 4 KiB, anywhere.
fn scenario(array: ArrayOptions, control: Control, duration: Span) -> Scenario {
    let latency = Span::from_millis(50);
    let up_to = Iops::new(300.0).expect("above zero");
    let slo = Slo::new(vec![SloPoint { up_to, read: latency, write: latency }]).expect("one point");
    let open = Arrivals::Poisson(Iops::new(200.0).expect("above zero"));
    let closed = Arrivals::Closed { threads: 64, think: Span::ZERO };
    let size = array.size();
    let volume = |name: &str, arrivals, slo| VolumeScenario {
        name: name.to_owned(),
        config: VolumeConfig { slo, ..VolumeConfig::default() },
        start: 0,
        size,
        phases: vec![Phase {
            at: Span::ZERO,
            workload: Some(Workload {
                flush_every: None,
                arrivals,
                reads: 0.67,
                sizes: vec![(4096, 1.0)],
                locality: Locality::Uniform,
            }),
        }],
        repeat: None,
        changes: Vec::new(),
    };
    let volumes = vec![volume("promised", open, Some(slo)), volume("greedy", closed, None)];
    let engine = EngineConfig { control, ..EngineConfig::default() };
    Scenario { seed: 1, duration, engine, array, volumes, faults: Vec::new() }
}

fn run(scenario: Scenario) -> u64 {
    let mut count = Count::default();
    World::new(scenario).run(&mut count).expect("no checker objects");
    count.0
}

fn runs(criterion: &mut Criterion) {
    let facade = EngineConfig::default().control;
    let mut group = criterion.benchmark_group("simulated_requests");
    group.sample_size(10);
    for (name, array, control, seconds) in [
        ("raid_5_facade", raid_5(), facade, [30, 300, 1_500].as_slice()),
        ("raid_5_none", raid_5(), Control::None, &[300]),
        ("station_facade", station(), facade, &[300]),
    ] {
        for seconds in seconds {
            let scenario = scenario(array.clone(), control, Span::from_secs(*seconds));
            group.throughput(Throughput::Elements(run(scenario.clone())));
            group.bench_function(BenchmarkId::new(name, format!("{seconds}s")), |bencher| {
                bencher.iter(|| black_box(run(scenario.clone())));
            });
        }
    }
    group.finish();
}

criterion_group!(benches, runs);
criterion_main!(benches);
