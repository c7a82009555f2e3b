//! Bulk transfers to storage nodes, in simulated time, under the real scheduler.
//!
//! The model has what the paper saw on its three nodes (Nikolow, Słota, Kitowski 2010, §IV):
//!
//! - **A node does less the more transfers it has**: `peak / (1 + overhead (n - 1))` in sum. "With concurrent
//!   transfers, the throughput of storage devices is usually lower than given a single transfer."
//! - **A transfer gets a share** of that. The shares are not equal: each transfer has a weight of its own. No
//!   transfer gets more than one stream can carry; what it cannot use, the others of its node get.
//! - **The host slows all transfers down** once it has more of them than it can serve: by
//!   `1 / (1 + ((N - crowd) / crowd)^2)` for `N > crowd`. "Data transfer processes need to compete for CPU time
//!   instead of waiting for I/O access." The nodes of the paper are machines of one host.
//! - **A node sways** from second to second.
//! - **Others use a node**: from some time on, they take a share of what it does.
//!
//! What the model leaves out: caches, files, the network between hosts, and reads and writes that disturb one
//! another otherwise than by their number.

mod shares;

use std::collections::BTreeMap;

use rand::RngExt;
use weir_model::{Bandwidth, Instant, Span};
use weir_transfer::{
    Domain, NodeIndex, NodeSpec, Policy, Refused, Request, SAMPLE, Scheduler, Start, TransferId,
};

use self::shares::{Taker, shares};
use crate::{Prng, Seed};

/// The nodes, and what the host of all of them can carry.
#[derive(Clone, PartialEq, Debug)]
pub struct TransferOptions {
    /// The nodes.
    pub nodes: Vec<StorageNode>,
    /// The most that one transfer gets.
    pub stream: Bandwidth,
    /// By how much of itself the share of a transfer may be smaller or larger; uniformly distributed. From 0
    /// to 1.
    pub spread: f64,
    /// By how much of itself what a node does may be less or more in a second; uniformly distributed. From 0
    /// to 1.
    pub sway: f64,
    /// How many transfers the host serves before they slow one another down; at least one.
    pub crowd: u32,
    /// When the run ends, whatever is not done.
    pub at_most: Span,
}

/// A node.
#[derive(Clone, PartialEq, Debug)]
pub struct StorageNode {
    /// What one transfer would get without any bound of its own, reading and writing.
    pub peak: Bandwidth,
    /// By which part each further transfer lowers what the node does in sum; not below zero.
    pub overhead: f64,
    /// What others take.
    pub external: Option<External>,
    /// Whether it can be reached.
    pub is_down: bool,
}

/// Others use a node.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct External {
    /// From when on.
    pub from: Span,
    /// Which share of what it does they take; from 0 to 1.
    pub share: f64,
}

/// What became of a transfer.
#[derive(Clone, PartialEq, Debug)]
pub struct TransferOutcome {
    /// The transfer.
    pub id: TransferId,
    /// When it was asked for.
    pub asked: Instant,
    /// What was refused, if it was.
    pub refused: Option<Refused>,
    /// When and where it started.
    pub started: Option<(Instant, NodeIndex)>,
    /// When it was done.
    pub ended: Option<Instant>,
    /// The bytes that it moved.
    pub moved: u64,
}

/// A transfer that goes on.
#[derive(Debug)]
struct Running {
    node: NodeIndex,
    weight: f64,
    bytes: f64,
    moved: f64,
    /// What the scheduler has been told of.
    told: u64,
    /// Bytes a second.
    rate: f64,
}

struct World<'o> {
    options: &'o TransferOptions,
    seed: Seed,
    sways: Vec<Prng>,
    /// What each node does in this second, as a part of what it usually does.
    swayed: Vec<f64>,
    scheduler: Scheduler,
    running: BTreeMap<TransferId, Running>,
    outcomes: BTreeMap<TransferId, TransferOutcome>,
    sizes: BTreeMap<TransferId, f64>,
}

/// Asks for one transfer after the other: each `every` after the one before has started, as the paper's test
/// does (§IV-A, steps 1 to 4). Returns what became of each, in their order.
pub fn run_transfers(
    options: &TransferOptions,
    policy: Policy,
    requests: Vec<Request>,
    every: Span,
    seed: Seed,
) -> Vec<TransferOutcome> {
    let mut world = World::new(options, policy, seed);
    let mut requests = requests.into_iter().peekable();
    let mut now = Instant::ORIGIN;
    let (mut next_request, mut next_sample) = (now, now + SAMPLE);
    while now < Instant::ORIGIN + options.at_most {
        if world.scheduler.waiting() == 0
            && now >= next_request
            && let Some(request) = requests.next()
        {
            world.ask(now, request);
            next_request = now + every;
        }
        if world.start(now) {
            next_request = now + every;
        }
        if requests.peek().is_none() && world.scheduler.waiting() == 0 && world.running.is_empty() {
            break;
        }
        world.share(now);
        let next_ask = (world.scheduler.waiting() == 0 && requests.peek().is_some()).then_some(next_request);
        let ahead = [Some(next_sample), next_ask, world.next_end(now), world.next_external(now)];
        let next = ahead.into_iter().flatten().min().unwrap_or(next_sample).max(now);
        world.advance(now, next);
        now = next;
        if now >= next_sample {
            world.sample(now);
            next_sample = now + SAMPLE;
        }
    }
    world.outcomes.into_values().collect()
}

impl<'o> World<'o> {
    fn new(options: &'o TransferOptions, policy: Policy, seed: Seed) -> Self {
        let spec = |(place, node): (u32, &StorageNode)| NodeSpec {
            peak_read: node.peak,
            peak_write: node.peak,
            domain: Domain(place),
        };
        let mut scheduler = Scheduler::new(policy, (0..).zip(&options.nodes).map(spec).collect());
        for (place, node) in options.nodes.iter().enumerate() {
            scheduler.set_down(NodeIndex(place), node.is_down);
        }
        let nodes = options.nodes.len();
        Self {
            options,
            seed,
            sways: (0..nodes).map(|node| seed.stream(&format!("sway of node {node}"))).collect(),
            swayed: vec![1.0; nodes],
            scheduler,
            running: BTreeMap::new(),
            outcomes: BTreeMap::new(),
            sizes: BTreeMap::new(),
        }
    }

    fn ask(&mut self, now: Instant, request: Request) {
        let id = request.id;
        #[allow(clippy::cast_precision_loss)] // above 2^53 bytes, a rounding of a byte
        self.sizes.insert(id, request.bytes.unwrap_or(0) as f64);
        let refused = self.scheduler.submit(now, request).err();
        let outcome = TransferOutcome { id, asked: now, refused, started: None, ended: None, moved: 0 };
        self.outcomes.insert(id, outcome);
    }

    /// Whether a transfer has started.
    fn start(&mut self, now: Instant) -> bool {
        let mut any = false;
        while let Some(Start { id, node }) = self.scheduler.poll_start(now) {
            any = true;
            let spread = self.options.spread;
            let mut stream = self.seed.stream(&format!("share of transfer {}", id.0));
            let weight = 1.0 + spread * (2.0 * stream.random::<f64>() - 1.0);
            let bytes = self.sizes[&id];
            self.running.insert(id, Running { node, weight, bytes, moved: 0.0, told: 0, rate: 0.0 });
            if let Some(outcome) = self.outcomes.get_mut(&id) {
                outcome.started = Some((now, node));
            }
        }
        any
    }

    /// Gives each transfer its rate.
    #[allow(clippy::cast_precision_loss)] // rates and counts are far below 2^53
    fn share(&mut self, now: Instant) {
        let crowd = f64::from(self.options.crowd);
        let above = (self.running.len() as f64 - crowd).max(0.0) / crowd;
        let host = 1.0 / (1.0 + above * above);
        for (place, node) in self.options.nodes.iter().enumerate() {
            let here = |running: &Running| running.node == NodeIndex(place);
            let stream = self.options.stream.get() as f64;
            let takers: Vec<_> = self
                .running
                .iter()
                .filter(|(_, running)| here(running))
                .map(|(id, running)| {
                    let held = self.scheduler.held_to(*id).map_or(f64::INFINITY, |rate| rate.get() as f64);
                    Taker { weight: running.weight, most: stream.min(held / host) }
                })
                .collect();
            let others = node.external.filter(|external| now >= Instant::ORIGIN + external.from);
            let left = 1.0 - others.map_or(0.0, |external| external.share);
            let crowded = 1.0 + node.overhead * (takers.len().max(1) - 1) as f64;
            let does = node.peak.get() as f64 * left * self.swayed[place] / crowded;
            let rates = shares(does, &takers);
            for (running, rate) in self.running.values_mut().filter(|running| here(running)).zip(rates) {
                running.rate = rate * host;
            }
        }
    }

    /// When the next transfer is done, if the rates stay.
    fn next_end(&self, now: Instant) -> Option<Instant> {
        let left = |running: &Running| (running.bytes - running.moved).max(0.0) / running.rate;
        let ends = self.running.values().map(left).filter(|left| left.is_finite());
        let first = ends.min_by(f64::total_cmp)?;
        Some(now + Span::from_secs_f64(first) + Span::from_nanos(1))
    }

    fn next_external(&self, now: Instant) -> Option<Instant> {
        let froms = self.options.nodes.iter().filter_map(|node| node.external);
        froms.map(|external| Instant::ORIGIN + external.from).filter(|from| *from > now).min()
    }

    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // bytes that were moved
    fn advance(&mut self, now: Instant, next: Instant) {
        let passed = next.saturating_since(now).as_secs_f64();
        let mut done = Vec::new();
        for (id, running) in &mut self.running {
            running.moved = (running.moved + running.rate * passed).min(running.bytes);
            let moved = running.moved as u64;
            self.scheduler.moved(*id, moved - running.told);
            running.told = moved;
            let outcome = self.outcomes.get_mut(id).expect("it was asked for");
            outcome.moved = moved;
            if running.moved >= running.bytes {
                outcome.ended = Some(next);
                done.push(*id);
            }
        }
        for id in done {
            self.running.remove(&id);
            self.scheduler.end(id);
        }
    }

    fn sample(&mut self, now: Instant) {
        self.scheduler.sample(now);
        for (swayed, stream) in self.swayed.iter_mut().zip(&mut self.sways) {
            *swayed = 1.0 + self.options.sway * (2.0 * stream.random::<f64>() - 1.0);
        }
    }
}

#[cfg(test)]
mod tests;
