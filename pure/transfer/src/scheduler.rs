//! The state machine of all transfers: which wait, which go where, what each node does.
//!
//! A driver tells it what happens, asks for starts until there is none, and gives it a sample of time each
//! second:
//!
//! ```
//! use weir_model::{Bandwidth, Direction, Instant, Span};
//! use weir_transfer::{
//!     Class, Domain, NodeIndex, NodeSet, NodeSpec, PolicyName, Request, SAMPLE, Scheduler, TransferId,
//! };
//!
//! let rate = |megabytes: u64| Bandwidth::new(megabytes * 1_000_000).expect("above zero");
//! let node = |peak| NodeSpec { peak_read: rate(peak), peak_write: rate(peak), domain: Domain(0) };
//! let now = Instant::ORIGIN;
//! let mut scheduler = Scheduler::new(now, PolicyName::SmR3.policy(), vec![node(20), node(300)]);
//! let backup = Request {
//!     id: TransferId(1),
//!     direction: Direction::Write,
//!     bytes: Some(1_000_000_000),
//!     rate: rate(10),
//!     class: Class::default(),
//!     deadline: None,
//!     nodes: NodeSet::first(2),
//!     object: None,
//! };
//! scheduler.submit(now, backup)?;
//! let start = scheduler.poll_start(now).expect("an idle node takes a transfer");
//! assert_eq!((start.id, start.node), (TransferId(1), NodeIndex(0)));
//! scheduler.moved(TransferId(1), 20_000_000);
//! scheduler.sample(now + SAMPLE);
//! scheduler.done(TransferId(1));
//! # Ok::<(), weir_transfer::Refused>(())
//! ```

use std::collections::{BTreeMap, BTreeSet};

use thiserror::Error;
use weir_model::{Bandwidth, Direction, Instant, Span};

use crate::pace::{Paced, Pacing, Progress};
use crate::policy::{Count, Sample};
use crate::queue::Queue;
use crate::request::bytes_f64;
use crate::share::{Lately, Taken, share};
use crate::{MovingAverage, NodeIndex, NodeSet, NodeSpec, NodeView, ObjectId, Policy, Request, TransferId};

/// How often the driver takes a sample.
pub const SAMPLE: Span = Span::from_secs(1);

/// A transfer that cannot even wait.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum Refused {
    /// It could never start.
    #[error("found no node for transfer {}; accepted: one at least", .0.0)]
    NoNode(TransferId),
    /// The other transfers of its object are in all failure domains that it may use.
    #[error("found no failure domain without a replica for transfer {}; accepted: one at least", .0.0)]
    NoDomain(TransferId),
    /// No node would take it, even one without any other transfer.
    #[error(
        "found {asked} B/s for transfer {}, more than the policy promises on any of its nodes; accepted: less", id.0
    )]
    TooFast {
        /// The transfer.
        id: TransferId,
        /// What it asks for, in bytes a second.
        asked: u64,
    },
    /// All nodes with a replica are down.
    #[error("found no node with a replica that can be reached for transfer {}; accepted: one at least", .0.0)]
    NoReplica(TransferId),
    /// There is no such node.
    #[error("found node {} for transfer {}; accepted: one of those that are configured", node.0, id.0)]
    UnknownNode {
        /// The transfer.
        id: TransferId,
        /// The first of its nodes that there is not.
        node: NodeIndex,
    },
    /// The number is taken.
    #[error("found a transfer {} already; accepted: a number that is free", .0.0)]
    SameNumber(TransferId),
}

/// A transfer that starts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Start {
    /// The transfer.
    pub id: TransferId,
    /// Where.
    pub node: NodeIndex,
}

/// The transfers and nodes of a coordinator.
#[derive(Clone, Debug)]
pub struct Scheduler {
    policy: Policy,
    nodes: Vec<Node>,
    waiting: Queue,
    active: BTreeMap<TransferId, Active>,
    /// The objects of which a replica is written or is to be.
    objects: BTreeMap<ObjectId, Object>,
    sampled: Instant,
}

#[derive(Clone, Debug)]
struct Node {
    spec: NodeSpec,
    is_down: bool,
    reads: Load,
    writes: Load,
}

/// What a node does in one direction.
#[derive(Clone, Default, Debug)]
struct Load {
    active: u32,
    /// In bytes a second. Two transfers may ask for more than a `u64` holds.
    reserved: u128,
    /// In bytes a second.
    needed: f64,
    average: MovingAverage,
    /// The bytes since the last sample.
    moved: u64,
    /// How many transfers there were at the last sample.
    active_before: u32,
    /// What others than the transfers move, in bytes a second.
    external: Option<u64>,
    pacing: Pacing,
}

#[derive(Clone, Debug)]
struct Active {
    request: Request,
    node: NodeIndex,
    progress: Progress,
    /// The bytes that it had moved at the last sample.
    moved_before: u64,
    /// What it had of late.
    lately: Lately,
    held_to: Option<Bandwidth>,
}

#[derive(Clone, Default, Debug)]
struct Object {
    /// Its transfers that wait or go on.
    transfers: BTreeSet<TransferId>,
    /// Where a replica is written, or is.
    replicas: BTreeMap<TransferId, NodeIndex>,
}

impl Scheduler {
    /// A scheduler without transfers. All nodes are up.
    pub fn new(now: Instant, policy: Policy, nodes: Vec<NodeSpec>) -> Self {
        let node = |spec| Node { spec, is_down: false, reads: Load::default(), writes: Load::default() };
        Self {
            policy,
            nodes: nodes.into_iter().map(node).collect(),
            waiting: Queue::default(),
            active: BTreeMap::new(),
            objects: BTreeMap::new(),
            sampled: now,
        }
    }

    /// A transfer is asked for. It waits from now on.
    ///
    /// # Errors
    /// If it can never start, or if it is a read and no replica can be reached now. Then nothing has changed.
    /// A transfer that could never start would wait for ever, and all others behind it.
    pub fn submit(&mut self, now: Instant, mut request: Request) -> Result<(), Refused> {
        let id = request.id;
        if let Some(node) = request.nodes.iter().find(|node| node.0 >= self.nodes.len()) {
            return Err(Refused::UnknownNode { id, node });
        }
        if self.waiting.get(id).is_some() || self.active.contains_key(&id) {
            return Err(Refused::SameNumber(id));
        }
        if request.nodes.is_empty() {
            return Err(Refused::NoNode(id));
        }
        // Nodes that would never take it are none of its nodes. It would otherwise hold up others there.
        let idle = |node: NodeIndex| self.nodes[node.0].idle(node, request.direction);
        let would_take = |node: &NodeIndex| self.policy.would_take(&request, &idle(*node));
        let nodes: NodeSet = request.nodes.iter().filter(would_take).collect();
        if nodes.is_empty() {
            return Err(Refused::TooFast { id, asked: request.rate.get() });
        }
        let is_reachable = nodes.iter().any(|node| !self.nodes[node.0].is_down);
        if request.direction == Direction::Read && !is_reachable {
            return Err(Refused::NoReplica(id));
        }
        let mut free = nodes.clone();
        if let Some(object) = request.object {
            free.remove_all(&self.taken(object));
            if free.is_empty() {
                return Err(Refused::NoDomain(id));
            }
            self.objects.entry(object).or_default().transfers.insert(id);
        }
        request.nodes = nodes;
        self.waiting.push(now, request, free);
        Ok(())
    }

    /// The next transfer that starts now, if there is one. The driver asks until there is none.
    pub fn poll_start(&mut self, now: Instant) -> Option<Start> {
        let Start { id, node } = self.next(now)?;
        let waited = self.waiting.remove(id)?;
        let request = waited.request;
        if let Some(object) = request.object {
            self.objects.entry(object).or_default().replicas.insert(id, node);
            self.spread(object);
        }
        let wanted = request.wanted(now, self.nodes[node.0].spec.peak(request.direction));
        let progress = Progress { started: now, wanted, moved: 0 };
        let load = self.nodes[node.0].load(request.direction);
        load.active += 1;
        load.reserved += u128::from(request.rate.get());
        load.needed += progress.needs(now, &request);
        self.active.insert(
            id,
            Active { request, node, progress, moved_before: 0, lately: Lately::default(), held_to: None },
        );
        Some(Start { id, node })
    }

    /// A transfer has moved so many bytes more.
    pub fn moved(&mut self, id: TransferId, bytes: u64) {
        if let Some(active) = self.active.get_mut(&id) {
            active.progress.moved = active.progress.moved.saturating_add(bytes);
            let load = self.nodes[active.node.0].load(active.request.direction);
            load.moved = load.moved.saturating_add(bytes);
        }
    }

    /// A transfer has moved all its bytes.
    pub fn done(&mut self, id: TransferId) {
        if let Some(request) = self.end(id) {
            self.close(id, &request);
        }
    }

    /// A transfer failed, or is no longer wanted. What it wrote is no replica.
    pub fn give_up(&mut self, id: TransferId) {
        let Some(request) = self.end(id) else { return };
        if let Some(object) = request.object {
            self.objects.entry(object).or_default().replicas.remove(&id);
            self.spread(object);
        }
        self.close(id, &request);
    }

    /// A node goes down, or comes up again. Its transfers go on until the driver gives them up. What it did
    /// before is forgotten.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn set_down(&mut self, node: NodeIndex, is_down: bool) {
        let known = &mut self.nodes[node.0];
        if known.is_down == is_down {
            return;
        }
        known.is_down = is_down;
        (known.reads.average, known.writes.average) = (MovingAverage::default(), MovingAverage::default());
        self.policy.forget(node);
    }

    /// What is known of a node from now on is this. Its transfers, and what they had, stay.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn set_spec(&mut self, node: NodeIndex, spec: NodeSpec) {
        self.nodes[node.0].spec = spec;
    }

    /// Others than the transfers move so much at a node now, in bytes a second; `None`: nobody knows.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn set_external(&mut self, node: NodeIndex, direction: Direction, external: Option<u64>) {
        self.nodes[node.0].load(direction).external = external;
    }

    /// A sample: what has moved since the last one becomes each node's measured rate, and transfers are held
    /// back or released. The driver calls it each [`SAMPLE`]. If a call comes late, the rate is still that of
    /// the time that has passed; one that comes within half of that time is ignored, because the rate of so
    /// short a time says little.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a rate above zero; `as` saturates
    pub fn sample(&mut self, now: Instant) {
        let passed = now.saturating_since(self.sampled);
        if passed.saturating_mul(2) < SAMPLE {
            return;
        }
        let before = std::mem::replace(&mut self.sampled, now);
        let paces = self.policy.is_beyond_the_paper();
        let mut here: BTreeMap<(NodeIndex, Direction), Vec<TransferId>> = BTreeMap::new();
        for (id, active) in &self.active {
            here.entry((active.node, active.request.direction)).or_default().push(*id);
        }
        for place in (0..self.nodes.len()).map(NodeIndex) {
            for direction in [Direction::Read, Direction::Write] {
                let ids = here.get(&(place, direction)).map_or(&[][..], Vec::as_slice);
                let (mut transfers, mut taken, mut newcomers) = (Vec::new(), Vec::new(), Vec::new());
                let mut is_ending = false;
                for id in ids {
                    let active = self.active.get_mut(id).expect("it goes on");
                    let paced = active.paced(now, passed);
                    transfers.push(paced);
                    if active.has_moved_all() {
                        is_ending = true;
                    } else if active.progress.started <= before {
                        taken.push(Taken { had: paced.had, lately: active.lately.push(paced.had) });
                    } else {
                        newcomers.push(Taken { had: paced.had, lately: paced.had });
                    }
                }
                let taken = if taken.is_empty() { newcomers } else { taken };
                let load = self.nodes[place.0].load(direction);
                let rate = bytes_f64(load.moved) / passed.as_secs_f64();
                load.average.push(rate as u64);
                let count = match (load.active_before, load.active) {
                    _ if load.pacing.holds() => Count::Held,
                    (before, now) if before == now && !is_ending => Count::Same(now),
                    (before, now) => Count::UpTo(before.max(now)),
                };
                let sample = Sample { count, rate, share: share(&taken) };
                self.policy.sampled(now, place, direction, sample);
                load.needed = transfers.iter().map(|one| one.needs).sum();
                (load.moved, load.active_before) = (0, load.active);
                let held =
                    if paces { load.pacing.sample(now, rate, &transfers) } else { vec![None; ids.len()] };
                for (id, held) in ids.iter().zip(held) {
                    let active = self.active.get_mut(id).expect("it goes on");
                    active.moved_before = active.progress.moved;
                    active.held_to = held.and_then(|rate| Bandwidth::new((rate as u64).max(1)));
                }
            }
        }
    }

    /// The most that a transfer may move in a second; `None` if it is not held back.
    pub fn held_to(&self, id: TransferId) -> Option<Bandwidth> {
        self.active.get(&id)?.held_to
    }

    /// The nodes that a waiting transfer may use; `None` if it does not wait. There is none left for a
    /// replica of an object whose other replicas are in all failure domains already.
    pub fn waits_for(&self, id: TransferId) -> Option<&NodeSet> {
        self.waiting.get(id).map(|waiting| &waiting.nodes)
    }

    /// Whether a node would take a transfer that waits, if the node had no other; `None` if it does not wait.
    /// What is known of the node may have changed since the transfer was asked for.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn would_take(&self, id: TransferId, node: NodeIndex) -> Option<bool> {
        let request = &self.waiting.get(id)?.request;
        Some(self.policy.would_take(request, &self.nodes[node.0].idle(node, request.direction)))
    }

    /// A node as the policy sees it, and its rate in the last sample, in bytes a second.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn load(&self, node: NodeIndex, direction: Direction) -> (NodeView, u64) {
        let known = &self.nodes[node.0];
        let load = match direction {
            Direction::Read => &known.reads,
            Direction::Write => &known.writes,
        };
        (known.view(node, direction), load.average.last())
    }

    /// How many transfers wait.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// The transfer that starts next, and where.
    fn next(&mut self, now: Instant) -> Option<Start> {
        let up = (0..self.nodes.len()).filter(|node| !self.nodes[*node].is_down).map(NodeIndex);
        // The nodes for which no earlier transfer waits.
        let mut to_read: NodeSet = up.collect();
        let mut to_write = to_read.clone();
        while let Some(waiting) = self.waiting.first(&to_read, &to_write) {
            let request = &waiting.request;
            let free = match request.direction {
                Direction::Read => &mut to_read,
                Direction::Write => &mut to_write,
            };
            let view = |node: NodeIndex| self.nodes[node.0].view(node, request.direction);
            let views: Vec<_> = waiting.nodes.iter().filter(|node| free.contains(*node)).map(view).collect();
            if let Some(node) = self.policy.place(now, request, waiting.since, &views) {
                return Some(Start { id: request.id, node });
            }
            if !self.policy.is_beyond_the_paper() {
                return None;
            }
            free.remove_all(&waiting.nodes);
        }
        None
    }

    /// Takes a transfer out of the queue, or off its node.
    fn end(&mut self, id: TransferId) -> Option<Request> {
        let Some(Active { request, node, .. }) = self.active.remove(&id) else {
            return self.waiting.remove(id).map(|waiting| waiting.request);
        };
        let load = self.nodes[node.0].load(request.direction);
        load.active -= 1;
        load.reserved -= u128::from(request.rate.get());
        Some(request)
    }

    /// Forgets a transfer of an object, and the object with the last of them.
    fn close(&mut self, id: TransferId, request: &Request) {
        if let Some(object) = request.object
            && let Some(known) = self.objects.get_mut(&object)
        {
            known.transfers.remove(&id);
            if known.transfers.is_empty() {
                self.objects.remove(&object);
            }
        }
    }

    /// The nodes of all failure domains with a replica of an object.
    fn taken(&self, object: ObjectId) -> NodeSet {
        let replicas = self.objects.get(&object).into_iter().flat_map(|object| object.replicas.values());
        let domains: BTreeSet<_> = replicas.map(|node| self.nodes[node.0].spec.domain).collect();
        let nodes = (0..self.nodes.len()).filter(|node| domains.contains(&self.nodes[*node].spec.domain));
        nodes.map(NodeIndex).collect()
    }

    /// Keeps the waiting transfers of an object away from its replicas.
    fn spread(&mut self, object: ObjectId) {
        let taken = self.taken(object);
        for id in self.objects.get(&object).into_iter().flat_map(|object| &object.transfers) {
            self.waiting.exclude(*id, &taken);
        }
    }
}

impl Active {
    /// Whether it only has to end: what it wrote is made durable, for example.
    fn has_moved_all(&self) -> bool {
        self.request.bytes.is_some_and(|bytes| self.progress.moved >= bytes)
    }

    fn paced(&self, now: Instant, passed: Span) -> Paced {
        let moved = self.progress.moved - self.moved_before;
        Paced {
            had: bytes_f64(moved) / passed.as_secs_f64(),
            needs: self.progress.needs(now, &self.request),
            is_behind: self.progress.is_behind(now),
        }
    }
}

impl Node {
    const fn load(&mut self, direction: Direction) -> &mut Load {
        match direction {
            Direction::Read => &mut self.reads,
            Direction::Write => &mut self.writes,
        }
    }

    /// The view of it without transfers.
    const fn idle(&self, node: NodeIndex, direction: Direction) -> NodeView {
        let peak = self.spec.peak(direction);
        NodeView { node, peak, reserved: 0, average: 0, active: 0, needed: 0, external: None }
    }

    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a rate above zero; `as` saturates
    fn view(&self, node: NodeIndex, direction: Direction) -> NodeView {
        let load = match direction {
            Direction::Read => &self.reads,
            Direction::Write => &self.writes,
        };
        NodeView {
            node,
            peak: self.spec.peak(direction),
            reserved: u64::try_from(load.reserved).unwrap_or(u64::MAX),
            average: load.average.get(),
            active: load.active,
            needed: load.needed as u64,
            external: load.external,
        }
    }
}

#[cfg(test)]
mod props;
#[cfg(test)]
mod tests;
