//! How long a placement decision takes with 10,000 transfers that wait and 100 nodes. The bar is 100 µs.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use weir_model::{Bandwidth, Direction, Instant};
use weir_transfer::{
    Class, Domain, NodeIndex, NodeSet, NodeSpec, PolicyName, Request, SAMPLE, Scheduler, TransferId,
};

const NODES: usize = 100;
const WAITING: u64 = 10_000;

/// Which nodes may serve the transfers that wait.
#[derive(Clone, Copy)]
enum Among {
    All,
    /// Three replicas each, and all of them on nodes that are busy, but for the last.
    Replicas,
}

fn rate(megabytes: u64) -> Bandwidth {
    Bandwidth::new(megabytes * 1_000_000).expect("above zero")
}

fn request(id: u64, nodes: NodeSet) -> Request {
    Request {
        id: TransferId(id),
        direction: Direction::Read,
        bytes: Some(1_000_000_000),
        rate: rate(10),
        class: Class::default(),
        deadline: None,
        nodes,
        object: None,
    }
}

/// Nodes with as many transfers as they take, 10,000 that wait, and a second of samples.
fn crowded(name: PolicyName, among: Among) -> (Scheduler, Instant) {
    let node = |domain| NodeSpec { peak_read: rate(300), peak_write: rate(300), domain: Domain(domain) };
    let mut scheduler = Scheduler::new(Instant::ORIGIN, name.policy(), (0..).take(NODES).map(node).collect());
    let mut now = Instant::ORIGIN;
    for id in 0..WAITING + 100 * NODES as u64 {
        let place = usize::try_from(id).expect("small");
        let nodes = match among {
            Among::All => NodeSet::first(NODES),
            Among::Replicas => {
                [place, place / 7, place / 31].into_iter().map(|node| NodeIndex(node % (NODES - 1))).collect()
            }
        };
        scheduler.submit(now, request(id, nodes)).expect("it can start some time");
        let _ = scheduler.poll_start(now);
        if scheduler.waiting() as u64 == WAITING {
            break;
        }
    }
    for _ in 0..3 {
        now = now + SAMPLE;
        (0..WAITING + 100 * NODES as u64).for_each(|id| scheduler.moved(TransferId(id), 20_000_000));
        scheduler.sample(now);
        while scheduler.waiting() as u64 > WAITING - 100 && scheduler.poll_start(now).is_some() {}
    }
    (scheduler, now)
}

fn place(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("transfer-place");
    for name in [PolicyName::SmR1, PolicyName::SmR3, PolicyName::Deadline] {
        for (among, shown) in [(Among::All, "any-node"), (Among::Replicas, "3-replicas")] {
            let (mut scheduler, now) = crowded(name, among);
            group.bench_function(BenchmarkId::new(name.to_string(), shown), |bench| {
                bench.iter(|| {
                    let start = scheduler.poll_start(black_box(now));
                    if let Some(start) = start {
                        scheduler.done(start.id);
                        let again = request(start.id.0, NodeSet::first(NODES));
                        scheduler.submit(now, again).expect("it has ended");
                    }
                    start
                });
            });
        }
    }
    group.finish();
}

criterion_group!(benches, place);
criterion_main!(benches);
