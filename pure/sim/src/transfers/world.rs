//! The nodes, the host and the transfers that go on.

use std::collections::BTreeMap;

use rand::RngExt;
use weir_model::{Instant, Span};
use weir_transfer::{Domain, NodeIndex, NodeSpec, Policy, Request, Scheduler, Start, TransferId};

use super::shares::{Taker, shares};
use super::{StorageNode, TransferOptions, TransferOutcome};
use crate::{Prng, Seed};

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
    /// When it is done, if it has moved all its bytes.
    ends: Option<Instant>,
}

pub(super) struct World<'o> {
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

impl<'o> World<'o> {
    pub(super) fn new(options: &'o TransferOptions, policy: Policy, seed: Seed) -> Self {
        let spec = |(place, node): (u32, &StorageNode)| NodeSpec {
            peak_read: node.peak,
            peak_write: node.peak,
            domain: Domain(place),
        };
        let mut scheduler =
            Scheduler::new(Instant::ORIGIN, policy, (0..).zip(&options.nodes).map(spec).collect());
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

    /// A transfer is asked for.
    pub(super) fn ask(&mut self, now: Instant, request: Request) {
        let id = request.id;
        #[allow(clippy::cast_precision_loss)] // above 2^53 bytes, a rounding of a byte
        self.sizes.insert(id, request.bytes.unwrap_or(0) as f64);
        let refused = self.scheduler.submit(now, request).err();
        let outcome = TransferOutcome { id, asked: now, refused, started: None, ended: None, moved: 0 };
        self.outcomes.insert(id, outcome);
    }

    /// Starts what can start, and returns it.
    pub(super) fn start(&mut self, now: Instant) -> Vec<Start> {
        let starts: Vec<_> = std::iter::from_fn(|| self.scheduler.poll_start(now)).collect();
        for Start { id, node } in starts.iter().copied() {
            let spread = self.options.spread;
            let mut stream = self.seed.stream(&format!("share of transfer {}", id.0));
            let weight = 1.0 + spread * (2.0 * stream.random::<f64>() - 1.0);
            let bytes = self.sizes[&id];
            self.running
                .insert(id, Running { node, weight, bytes, moved: 0.0, told: 0, rate: 0.0, ends: None });
            if let Some(outcome) = self.outcomes.get_mut(&id) {
                outcome.started = Some((now, node));
            }
        }
        starts
    }

    /// A transfer is given up.
    pub(super) fn give_up(&mut self, id: TransferId) {
        self.running.remove(&id);
        self.scheduler.give_up(id);
    }

    /// A node goes down, and what goes on there is given up; or it comes up again.
    pub(super) fn set_down(&mut self, node: NodeIndex, is_down: bool) {
        self.scheduler.set_down(node, is_down);
        let there = self.running.iter().filter(|(_, running)| is_down && running.node == node);
        let there: Vec<_> = there.map(|(id, _)| *id).collect();
        there.into_iter().for_each(|id| self.give_up(id));
    }

    /// Whether a transfer waits for a node that there is.
    pub(super) fn waits_for_a_node(&self) -> bool {
        let nodes = self.outcomes.keys().filter_map(|id| self.scheduler.waits_for(*id));
        nodes.into_iter().any(|nodes| !nodes.is_empty())
    }

    /// How many transfers wait.
    pub(super) fn waiting(&self) -> usize {
        self.scheduler.waiting()
    }

    /// Whether no transfer goes on.
    pub(super) fn is_idle(&self) -> bool {
        self.running.is_empty()
    }

    /// Whether no transfer waits or goes on.
    pub(super) fn is_done(&self) -> bool {
        self.waiting() == 0 && self.is_idle()
    }

    /// What became of each transfer, by their numbers.
    pub(super) fn outcomes(self) -> Vec<TransferOutcome> {
        self.outcomes.into_values().collect()
    }

    /// Gives each transfer its rate.
    #[allow(clippy::cast_precision_loss)] // rates and counts are far below 2^53
    pub(super) fn share(&mut self, now: Instant) {
        let crowd = f64::from(self.options.crowd);
        let above = (self.running.len() as f64 - crowd).max(0.0) / crowd;
        let host = 1.0 / (1.0 + above * above);
        for (place, node) in self.options.nodes.iter().enumerate() {
            let here = |running: &Running| running.node == NodeIndex(place) && running.ends.is_none();
            let stream = self.options.stream.get() as f64;
            let takers: Vec<_> = self
                .running
                .iter()
                .filter(|(_, running)| here(running))
                .map(|(id, running)| {
                    let held = self.scheduler.held_to(*id).map_or(f64::INFINITY, |rate| rate.get() as f64);
                    let client = self.options.clients.get(id).map_or(f64::INFINITY, |rate| rate.get() as f64);
                    Taker { weight: running.weight, most: stream.min(held.min(client) / host) }
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

    /// When the next transfer is done if the rates stay, or others begin to use a node.
    pub(super) fn next_event(&self, now: Instant) -> Option<Instant> {
        let moves = |running: &&Running| running.ends.is_none();
        let left = |running: &Running| (running.bytes - running.moved).max(0.0) / running.rate;
        let lefts = self.running.values().filter(moves).map(left).filter(|left| left.is_finite());
        let ending = self.running.values().filter_map(|running| running.ends);
        // A nanosecond more, so that rounding leaves no part of a byte.
        let ends = lefts.map(|left| now + Span::from_secs_f64(left) + Span::from_nanos(1));
        let externals = self.options.nodes.iter().filter_map(|node| node.external);
        let froms = externals.map(|external| Instant::ORIGIN + external.from).filter(|from| *from > now);
        ends.chain(ending).chain(froms).min()
    }

    /// Moves bytes until `next`.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // bytes that were moved
    pub(super) fn advance(&mut self, now: Instant, next: Instant) {
        let passed = next.saturating_since(now).as_secs_f64();
        let mut done = Vec::new();
        for (id, running) in &mut self.running {
            if running.ends.is_none() {
                running.moved = (running.moved + running.rate * passed).min(running.bytes);
            }
            let moved = running.moved as u64;
            let has_moved_all = running.moved >= running.bytes;
            let counted = if has_moved_all { moved } else { moved - moved % self.options.piece };
            self.scheduler.moved(*id, counted - running.told);
            running.told = counted;
            let outcome = self.outcomes.get_mut(id).expect("it was asked for");
            outcome.moved = moved;
            if has_moved_all && *running.ends.get_or_insert(next + self.options.ending) <= next {
                outcome.ended = Some(next);
                done.push(*id);
            }
        }
        for id in done {
            self.running.remove(&id);
            self.scheduler.done(id);
        }
    }

    pub(super) fn sample(&mut self, now: Instant) {
        self.scheduler.sample(now);
        for (swayed, stream) in self.swayed.iter_mut().zip(&mut self.sways) {
            *swayed = 1.0 + self.options.sway * (2.0 * stream.random::<f64>() - 1.0);
        }
    }
}
