//! What the end of a period costs in which a thousand volumes waited: all that was waited is charged. The
//! budget is 0.5 ms for each period of 20 ms.

#![allow(missing_docs)] // criterion's macros make a function without

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use weir_engine::{Control, DepthFeedbackConfig, Dispatch, Engine, EngineConfig, Request, VolumeConfig};
use weir_model::{Instant, IoKind, QueueDepth, Span, VolumeId};

const PERIOD: Span = Span::from_millis(20);

/// A pool in which each volume has one request at the device and one that waits. No law decides anything
/// meanwhile, and no window ends.
fn pool(volumes: u32) -> Engine {
    let now = Instant::ORIGIN;
    let period = Span::from_secs(1_000_000_000);
    let initial_depth = QueueDepth::new(volumes);
    let law = DepthFeedbackConfig { period, initial_depth, ..DepthFeedbackConfig::default() };
    let control = Control::Facade(law);
    let mut engine =
        Engine::new(now, EngineConfig { control, slo_window: period, ..EngineConfig::default() });
    for _ in 0..volumes {
        engine.add_volume(now, VolumeConfig::default());
    }
    for _ in 0..2 {
        for volume in (0..volumes).map(VolumeId) {
            engine.handle_submit(now, Request { volume, kind: IoKind::Read, offset: 0, length: 4096 });
        }
        while let Dispatch::Issue(_) = engine.poll_dispatch(now) {}
    }
    engine
}

fn periods(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("a_period_is_charged");
    for volumes in [10, 100, 1_000] {
        let (mut engine, mut now) = (pool(volumes), Instant::ORIGIN);
        group.bench_function(BenchmarkId::new("volumes", volumes), |bencher| {
            bencher.iter(|| {
                now = now + PERIOD;
                engine.handle_timeout(now);
            });
        });
    }
    group.finish();
}

criterion_group!(benches, periods);
criterion_main!(benches);
