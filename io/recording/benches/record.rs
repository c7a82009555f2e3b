//! What recording adds to a request on the thread that serves it: some five entries. The budget is 400 ns, a
//! few percent of what a request costs a gateway.

#![allow(missing_docs)] // criterion's macros make a function without

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use weir_engine::{Dispatch, Engine, EngineConfig, Entry, Recorder, Request, VolumeConfig};
use weir_model::{Instant, IoId, IoKind, Span, VolumeId};

/// Requests in one turn of the driver: as many as a client at this depth sends at once.
const BATCH: u32 = 32;

/// Is told of everything and keeps nothing: the hook alone.
#[derive(Debug)]
struct Deaf;

impl Recorder for Deaf {
    fn record(&mut self, _now: Instant, entry: &Entry) {
        black_box(entry);
    }
}

/// One turn: a batch comes in, goes out, is finished and answered, at random places of a disk.
fn turn(engine: &mut Engine, volume: VolumeId, now: &mut Instant, at_device: &mut Vec<IoId>) {
    *now = *now + Span::from_micros(64);
    for i in 0..BATCH {
        let offset = u64::from(i).wrapping_mul(now.as_nanos()).wrapping_mul(0x9e37_79b9) % (1 << 36);
        engine.handle_submit(
            *now,
            Request { volume, kind: IoKind::Read, offset: offset & !4095, length: 4096 },
        );
    }
    while let Dispatch::Issue(io) = engine.poll_dispatch(*now) {
        at_device.push(io.id);
    }
    *now = *now + Span::from_micros(100);
    for id in at_device.drain(..) {
        engine.handle_complete(*now, id, true);
        engine.handle_reply(*now, id);
    }
    engine.handle_timeout(*now);
    while let Some(event) = engine.poll_event() {
        black_box(event);
    }
}

fn requests(criterion: &mut Criterion) {
    let directory = tempfile::tempdir().expect("a directory");
    let mut group = criterion.benchmark_group("a_request_through_a_recorded_engine");
    group.throughput(criterion::Throughput::Elements(u64::from(BATCH)));
    for name in ["not_recorded", "hook_alone", "to_a_file"] {
        group.bench_function(BenchmarkId::new("batch_of_32", name), |bencher| {
            let (now, config) = (Instant::ORIGIN, EngineConfig::default());
            let mut writing = None;
            let mut engine = match name {
                "not_recorded" => Engine::new(now, config),
                "hook_alone" => Engine::with_recorder(now, config, Box::new(Deaf)),
                _ => {
                    let path = directory.path().join("p.decisions");
                    let _ = std::fs::remove_file(&path); // of the round before
                    let (recorder, file) = weir_recording::create(&path, "p").expect("a file");
                    writing = Some(file);
                    Engine::with_recorder(now, config, Box::new(recorder))
                }
            };
            let volume = engine.add_volume(now, VolumeConfig::default());
            let (mut now, mut at_device) = (now, Vec::new());
            bencher.iter(|| turn(&mut engine, volume, &mut now, &mut at_device));
            drop(engine);
            if let Some(written) = writing.map(|writing| writing.finish().expect("written")) {
                // A recording that was given up costs nothing, which is not what is measured here.
                let per_request = written.bytes * 10 / (written.entries / 5).max(1);
                println!("{written:?}: {}.{} bytes a request", per_request / 10, per_request % 10);
            }
        });
    }
    group.finish();
}

criterion_group!(benches, requests);
criterion_main!(benches);
