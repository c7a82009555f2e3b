//! What an engine adds to a request: submission, dispatch, completion, reply and report. The budget is 150 ns
//! with few volumes.

#![allow(missing_docs)] // criterion's macros make a function without

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use weir_engine::{Control, Dispatch, Engine, EngineConfig, Request, VolumeConfig};
use weir_model::{Instant, IoId, IoKind, Iops, Slo, SloPoint, Span, VolumeId};

const VOLUMES: u32 = 4;
/// Requests in one turn of the driver: as many as a client at this depth sends at once.
const BATCH: u32 = 32;

fn volume(number: u32) -> VolumeConfig {
    let latency = Span::from_millis(10);
    let point = SloPoint { up_to: Iops::new(1e7).expect("above zero"), read: latency, write: latency };
    let slo = (number == 0).then(|| Slo::new(vec![point]).expect("one point"));
    VolumeConfig { slo, ..VolumeConfig::default() }
}

/// One turn: a batch comes in, goes out, is finished and answered. Time passes as it would at a million a
/// second.
fn turn(engine: &mut Engine, now: &mut Instant, at_device: &mut Vec<IoId>) {
    *now = *now + Span::from_micros(u64::from(BATCH));
    for i in 0..BATCH {
        let volume = VolumeId(i % VOLUMES);
        engine.handle_submit(*now, Request { volume, kind: IoKind::Read, offset: 0, length: 4096 });
    }
    while let Dispatch::Issue(io) = engine.poll_dispatch(*now) {
        at_device.push(io.id);
    }
    for id in at_device.drain(..) {
        engine.handle_complete(*now, id, true);
        engine.handle_reply(*now, id);
    }
    if engine.poll_timeout().is_some_and(|at| at <= *now) {
        engine.handle_timeout(*now);
    }
    while let Some(event) = engine.poll_event() {
        black_box(event);
    }
}

fn requests(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("a_request_through_the_engine");
    group.throughput(criterion::Throughput::Elements(u64::from(BATCH)));
    let none = EngineConfig { control: Control::None, ..EngineConfig::default() };
    let promise = EngineConfig { control: Control::Promise, ..EngineConfig::default() };
    for (name, config) in [("facade", EngineConfig::default()), ("promise", promise), ("none", none)] {
        let mut now = Instant::ORIGIN;
        let mut engine = Engine::new(now, config);
        for number in 0..VOLUMES {
            engine.add_volume(now, volume(number));
        }
        let mut at_device = Vec::new();
        group.bench_function(BenchmarkId::new("batch_of_32", name), |bencher| {
            bencher.iter(|| turn(&mut engine, &mut now, &mut at_device));
        });
    }
    group.finish();
}

criterion_group!(benches, requests);
criterion_main!(benches);
