//! What a decision costs: one completion, one submission and one dispatch, with 10,000 requests queued and
//! from 10 to 10,000 volumes. The budget is 300 ns with 1,000 volumes, and the cost may grow at most
//! logarithmically.

#![allow(missing_docs)] // criterion's macros make a function without

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use weir_model::{Completion, Instant, Io, IoId, IoKind, Iops, QueueDepth, Span, TimeShare, VolumeId};
use weir_sched::{Dispatch, Edf, Scheduler, VolumeKnobs};

const QUEUED: u32 = 10_000;
const DEPTH: u32 = 64;
/// How many volume numbers are drawn beforehand, so that drawing is not measured.
const DRAWN: usize = 1 << 16;

/// A pool in a steady state: in each turn, one request is finished, one comes in and one is issued.
struct Pool {
    edf: Edf,
    now: Instant,
    turn: usize,
    volumes: Vec<VolumeId>,
    /// The requests at the device, which finish in turn.
    at_device: Vec<Io>,
}

impl Pool {
    /// `limited`: whether each volume has a rate, which it does not reach.
    fn new(volumes: u32, limited: bool) -> Self {
        let mut random = Pcg64Mcg::seed_from_u64(1);
        let mut edf = Edf::new(QueueDepth::new(DEPTH), TimeShare::PERCENT);
        for volume in 0..volumes {
            // Targets are about as long as a request waits. So the order is neither that of arrival nor that
            // of volumes.
            let target = Span::from_micros(random.random_range(1_000..4_000));
            let max_iops = limited.then(|| Iops::new(1e8)).flatten();
            let knobs = VolumeKnobs { max_iops, ..VolumeKnobs::with_target(target) };
            edf.set_volume(Instant::ORIGIN, VolumeId(volume), &knobs);
        }
        let drawn = (0..DRAWN).map(|_| VolumeId(random.random_range(0..volumes))).collect();
        let now = Instant::from_nanos(1);
        let mut pool = Self { edf, now, turn: 0, volumes: drawn, at_device: Vec::new() };
        for slot in 0..QUEUED + DEPTH {
            pool.submit(slot);
        }
        for _ in 0..DEPTH {
            pool.dispatch();
        }
        pool
    }

    fn submit(&mut self, slot: u32) {
        self.turn += 1;
        self.now = self.now + Span::from_nanos(200);
        let id = IoId { slot, generation: 0 };
        let volume = self.volumes[self.turn % DRAWN];
        let io = Io { id, volume, kind: IoKind::Read, offset: 0, length: 4096, arrived: self.now };
        self.edf.submit(self.now, io);
    }

    fn turn(&mut self) {
        let place = self.turn % self.at_device.len();
        let Io { id, volume, .. } = self.at_device.swap_remove(place);
        self.edf.on_complete(self.now, &Completion { id, volume, ok: true });
        self.submit(id.slot);
        self.dispatch();
    }

    fn dispatch(&mut self) {
        match black_box(self.edf.poll_dispatch(self.now)) {
            Dispatch::Issue(io) => self.at_device.push(io),
            reason => unreachable!("there is room and there is work, but {reason:?}"),
        }
    }
}

fn decision(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("submit_dispatch_complete");
    for limited in [false, true] {
        for volumes in [10, 100, 1_000, 10_000] {
            let mut pool = Pool::new(volumes, limited);
            let name = if limited { "edf_with_rates" } else { "edf" };
            group.bench_function(BenchmarkId::new(name, volumes), |bencher| bencher.iter(|| pool.turn()));
        }
    }
    group.finish();
}

criterion_group!(benches, decision);
criterion_main!(benches);
