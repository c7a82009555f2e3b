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
//! let mut scheduler = Scheduler::new(PolicyName::SmR3.policy(), vec![node(20), node(300)]);
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
//! let now = Instant::ORIGIN;
//! scheduler.submit(now, backup)?;
//! let start = scheduler.poll_start(now).expect("an idle node takes a transfer");
//! assert_eq!((start.id, start.node), (TransferId(1), NodeIndex(0)));
//! scheduler.moved(TransferId(1), 20_000_000);
//! scheduler.sample(now + SAMPLE);
//! scheduler.end(TransferId(1));
//! # Ok::<(), weir_transfer::Refused>(())
//! ```

use std::collections::{BTreeMap, BTreeSet};

use thiserror::Error;
use weir_model::{Bandwidth, Direction, Instant, Span};

use crate::pace::Progress;
use crate::queue::Queue;
use crate::{MovingAverage, NodeIndex, NodeSet, NodeSpec, NodeView, ObjectId, Policy, Request, TransferId};

/// How often the driver takes a sample.
pub const SAMPLE: Span = Span::from_secs(1);

/// A transfer that cannot even wait.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum Refused {
    /// It could never start.
    #[error("found no node for transfer {}; accepted: one at least", .0.0)]
    NoNode(TransferId),
    /// No node would take it, even one without any other transfer.
    #[error(
        "transfer {} asks for {asked} B/s; the policy promises that on none of its nodes, accepted: a lower rate",
        id.0
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
    reserved: u64,
    needed: u64,
    average: MovingAverage,
    /// The bytes since the last sample.
    moved: u64,
    /// Whether a transfer came or went since then.
    has_changed: bool,
}

#[derive(Clone, Debug)]
struct Active {
    request: Request,
    node: NodeIndex,
    progress: Progress,
    held_to: Option<Bandwidth>,
}

#[derive(Clone, Default, Debug)]
struct Object {
    /// Its transfers that wait or go on.
    transfers: BTreeSet<TransferId>,
    /// The nodes of all failure domains in which one of them has started.
    taken: NodeSet,
}

impl Scheduler {
    /// A scheduler without transfers. All nodes are up.
    pub fn new(policy: Policy, nodes: Vec<NodeSpec>) -> Self {
        let node = |spec| Node { spec, is_down: false, reads: Load::default(), writes: Load::default() };
        Self {
            policy,
            nodes: nodes.into_iter().map(node).collect(),
            waiting: Queue::default(),
            active: BTreeMap::new(),
            objects: BTreeMap::new(),
            sampled: Instant::ORIGIN,
        }
    }

    /// A transfer is asked for. It waits from now on.
    ///
    /// # Errors
    /// If it can never start, or if it is a read and no replica can be reached now. Then nothing has changed. A
    /// transfer that could never start would wait for ever, and all others behind it.
    pub fn submit(&mut self, now: Instant, request: Request) -> Result<(), Refused> {
        let id = request.id;
        if let Some(node) = request.nodes.iter().find(|node| node.0 >= self.nodes.len()) {
            return Err(Refused::UnknownNode { id, node });
        }
        if self.waiting.get(id).is_some() || self.active.contains_key(&id) {
            return Err(Refused::SameNumber(id));
        }
        let reachable = request.nodes.iter().any(|node| !self.nodes[node.0].is_down);
        match request.direction {
            _ if request.nodes.is_empty() => return Err(Refused::NoNode(id)),
            Direction::Read if !reachable => return Err(Refused::NoReplica(id)),
            Direction::Read | Direction::Write => {}
        }
        // Nodes that would never take it are none of its nodes. It would otherwise hold up others there.
        let idle = |node: NodeIndex| self.nodes[node.0].idle(node, request.direction);
        let would_take = |node: &NodeIndex| self.policy.would_take(now, &request, &idle(*node));
        let nodes: NodeSet = request.nodes.iter().filter(would_take).collect();
        if nodes.is_empty() {
            return Err(Refused::TooFast { id, asked: request.rate.get() });
        }
        let request = Request { nodes, ..request };
        let object = request.object.map(|object| self.objects.entry(object).or_default());
        self.waiting.push(now, request);
        if let Some(object) = object {
            self.waiting.exclude(id, &object.taken);
            object.transfers.insert(id);
        }
        Ok(())
    }

    /// The next transfer that starts now, if there is one. The driver asks until there is none.
    pub fn poll_start(&mut self, now: Instant) -> Option<Start> {
        let Start { id, node } = self.next(now)?;
        let waited = self.waiting.remove(id)?;
        let request = waited.request;
        if let Some(object) = request.object.and_then(|object| self.objects.get_mut(&object)) {
            let domain = self.nodes[node.0].spec.domain;
            let together = self.nodes.iter().zip(0..).filter(|(node, _)| node.spec.domain == domain);
            object.taken.add_all(&together.map(|(_, place)| NodeIndex(place)).collect());
            object.transfers.iter().for_each(|other| self.waiting.exclude(*other, &object.taken));
        }
        let progress = Progress { started: now, moved: 0 };
        let load = self.nodes[node.0].load(request.direction);
        load.active += 1;
        load.reserved = load.reserved.saturating_add(request.rate.get());
        load.needed = load.needed.saturating_add(progress.needs(now, &request));
        load.has_changed = true;
        self.active.insert(id, Active { request, node, progress, held_to: None });
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

    /// A transfer has ended, is given up, or no longer waits.
    pub fn end(&mut self, id: TransferId) {
        let ended = match self.active.remove(&id) {
            Some(Active { request, node, .. }) => {
                let load = self.nodes[node.0].load(request.direction);
                load.active -= 1;
                load.reserved = load.reserved.saturating_sub(request.rate.get());
                load.has_changed = true;
                Some(request)
            }
            None => self.waiting.remove(id).map(|waiting| waiting.request),
        };
        if let Some(object) = ended.and_then(|request| request.object)
            && let Some(known) = self.objects.get_mut(&object)
        {
            known.transfers.remove(&id);
            if known.transfers.is_empty() {
                self.objects.remove(&object);
            }
        }
    }

    /// A node goes down, or comes up again. Its transfers go on until the driver ends them.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn set_down(&mut self, node: NodeIndex, is_down: bool) {
        self.nodes[node.0].is_down = is_down;
    }

    /// A sample: what has moved since the last one becomes each node's measured rate, and transfers are held
    /// back or released. The driver calls it each [`SAMPLE`]; if a call comes late, the rate is still that of
    /// the time that has passed.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a rate above zero; `as` saturates
    pub fn sample(&mut self, now: Instant) {
        let passed = now.saturating_since(self.sampled);
        if passed.is_zero() {
            return;
        }
        self.sampled = now;
        for (place, node) in self.nodes.iter_mut().enumerate() {
            for direction in [Direction::Read, Direction::Write] {
                let load = node.load(direction);
                let rate = crate::request::bytes_f64(load.moved) / passed.as_secs_f64();
                load.average.push(rate as u64);
                let active = (!load.has_changed).then_some(load.active);
                self.policy.sampled(now, NodeIndex(place), direction, active, rate as u64);
                (load.moved, load.needed, load.has_changed) = (0, 0, false);
            }
        }
        let mut behind = NodeSet::EMPTY;
        for active in self.active.values() {
            let load = self.nodes[active.node.0].load(active.request.direction);
            load.needed = load.needed.saturating_add(active.progress.needs(now, &active.request));
            if active.progress.is_behind(now, &active.request) {
                behind.insert(active.node);
            }
        }
        let paces = self.policy.is_beyond_the_paper();
        for active in self.active.values_mut() {
            let is_held = paces && behind.contains(active.node);
            active.held_to = if is_held { active.progress.held_to(now, &active.request) } else { None };
        }
    }

    /// The most that a transfer may move in a second; `None` if it is not held back.
    pub fn held_to(&self, id: TransferId) -> Option<Bandwidth> {
        self.active.get(&id)?.held_to
    }

    /// The nodes that a waiting transfer may use; `None` if it does not wait. There is none left for a replica
    /// of an object whose other replicas are in all failure domains already.
    pub fn waits_for(&self, id: TransferId) -> Option<&NodeSet> {
        self.waiting.get(id).map(|waiting| &waiting.request.nodes)
    }

    /// How many transfers wait.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// The transfer that starts next, and where.
    fn next(&mut self, now: Instant) -> Option<Start> {
        let up = (0..self.nodes.len()).filter(|node| !self.nodes[*node].is_down).map(NodeIndex);
        // The nodes for which no earlier transfer waits.
        let mut free: NodeSet = up.collect();
        while let Some(waiting) = self.waiting.first(&free) {
            let request = &waiting.request;
            let view = |node: NodeIndex| self.nodes[node.0].view(node, request.direction);
            let views: Vec<_> = request.nodes.iter().filter(|node| free.contains(*node)).map(view).collect();
            if let Some(node) = self.policy.place(now, request, waiting.since, &views) {
                return Some(Start { id: request.id, node });
            }
            if !self.policy.is_beyond_the_paper() {
                return None;
            }
            free.remove_all(&request.nodes);
        }
        None
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
        NodeView { node, peak, reserved: 0, average: 0, active: 0, needed: 0 }
    }

    fn view(&self, node: NodeIndex, direction: Direction) -> NodeView {
        let load = match direction {
            Direction::Read => &self.reads,
            Direction::Write => &self.writes,
        };
        NodeView {
            node,
            peak: self.spec.peak(direction),
            reserved: load.reserved,
            average: load.average.get(),
            active: load.active,
            needed: load.needed,
        }
    }
}

#[cfg(test)]
mod props;
#[cfg(test)]
mod tests;
