//! Random nodes and transfers on which anything happens: nodes go down and come up, transfers are given up,
//! others use the nodes. At the end, all nodes are up.
//!
//! # What must hold
//!
//! 1. **A transfer starts once, on one of its nodes, while that is up.**
//! 2. **Replicas of an object are at different nodes.** Each node is a failure domain here.
//! 3. **A transfer ends with all its bytes**, and no other ends.
//! 4. **Nothing waits for ever**: once all nodes are up and idle, the next transfer starts within [`SOON`].

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU64;

use rand::RngExt;
use weir_model::{Bandwidth, Direction, Instant, Span};
use weir_transfer::{Class, NodeIndex, ObjectId, PolicyName, Request, SAMPLE, Start, TransferId};

use super::world::World;
use super::{External, StorageNode, TransferOptions, TransferOutcome};
use crate::check::{Breach, Violation};
use crate::random::{Prng, Seed};
use crate::world::Outcome;

/// How soon a transfer starts on nodes that are all idle. Under SM-R2, the average of ten samples must first
/// be low.
pub const SOON: Span = Span::from_secs(11);
/// How many transfers there are at most.
const MOST_TRANSFERS: u64 = 40;
/// In how much time anything happens.
const BUSY: Span = Span::from_secs(300);

/// Something that happens.
#[derive(Clone, PartialEq, Debug)]
enum Happening {
    Ask(Request),
    GiveUp(TransferId),
    Node { node: NodeIndex, is_down: bool },
}

/// Runs the nodes of a seed.
///
/// # Errors
/// If a rule is broken that must hold in every run.
pub fn run(seed: u64) -> Result<Outcome, Violation> {
    let stream = |name: &str| Seed(seed).stream(&format!("transfers/swarm/{name}"));
    let options = options(&mut stream("options"));
    let name = PolicyName::ALL[stream("policy").random_range(0..PolicyName::ALL.len())];
    let happenings = happenings(&mut stream("happenings"), options.nodes.len());
    let mut world = World::new(&options, name.policy(), Seed(seed));
    let mut watch = Watch::default();
    let mut ahead = happenings.into_iter().peekable();
    let (mut now, mut next_sample) = (Instant::ORIGIN, Instant::ORIGIN + SAMPLE);
    let mut busy = now;
    let violation = |at, what| Err(Violation { seed, at, what: Box::new(what) });
    loop {
        while let Some((_, happening)) = ahead.next_if(|(at, _)| Instant::ORIGIN + *at <= now) {
            match happening {
                Happening::Ask(request) => world.ask(now, watch.asks(request)),
                Happening::GiveUp(id) => world.give_up(id),
                Happening::Node { node, is_down } => {
                    world.set_down(node, is_down);
                    watch.set_down(node, is_down);
                }
            }
        }
        for start in world.start(now) {
            if let Some(breach) = watch.starts(start) {
                return violation(now, breach);
            }
        }
        if !world.is_idle() || ahead.peek().is_some() {
            busy = now;
        } else if !world.waits_for_a_node() {
            break;
        } else if now.saturating_since(busy) > SOON {
            return violation(now, Breach::TransferWaits);
        }
        world.share(now);
        let next_happening = ahead.peek().map(|(at, _)| Instant::ORIGIN + *at);
        let next = [Some(next_sample), next_happening, world.next_event(now)];
        let next = next.into_iter().flatten().min().unwrap_or(next_sample).max(now);
        world.advance(now, next);
        now = next;
        if now >= next_sample {
            world.sample(now);
            next_sample = now + SAMPLE;
        }
    }
    let outcomes = world.outcomes();
    match watch.ended(&outcomes) {
        Some(breach) => violation(now, breach),
        None => Ok(counted(&outcomes)),
    }
}

fn counted(outcomes: &[TransferOutcome]) -> Outcome {
    let count = |is: &dyn Fn(&&TransferOutcome) -> bool| outcomes.iter().filter(is).count() as u64;
    let answered = count(&|outcome| outcome.ended.is_some());
    let failed = count(&|outcome| outcome.refused.is_some());
    let submitted = outcomes.len() as u64;
    Outcome { submitted, answered, failed, aborted: submitted - answered - failed, ..Outcome::default() }
}

/// What the rules need to know.
#[derive(Default)]
struct Watch {
    asked: BTreeMap<TransferId, Request>,
    down: BTreeSet<NodeIndex>,
    started: BTreeMap<TransferId, NodeIndex>,
}

impl Watch {
    /// A transfer is asked for. As a coordinator does, it leaves out the nodes at which a replica is already:
    /// the scheduler knows an object only while one of its transfers waits or goes on.
    fn asks(&mut self, mut request: Request) -> Request {
        for (other, node) in &self.started {
            if request.object.is_some() && self.asked[other].object == request.object {
                request.nodes.remove(*node);
            }
        }
        self.asked.insert(request.id, request.clone());
        request
    }

    fn set_down(&mut self, node: NodeIndex, is_down: bool) {
        if is_down {
            self.down.insert(node);
        } else {
            self.down.remove(&node);
        }
    }

    /// The rule that a start breaks, if it breaks one.
    fn starts(&mut self, Start { id, node }: Start) -> Option<Breach> {
        let breach = |why| Some(Breach::WrongTransfer { transfer: id.0, why });
        let request = self.asked.get(&id)?;
        let is_replica =
            |other: &TransferId| request.object.is_some() && self.asked[other].object == request.object;
        if self.started.contains_key(&id) {
            return breach("starts a second time");
        }
        if !request.nodes.contains(node) || self.down.contains(&node) {
            return breach("starts where it may not");
        }
        if self.started.iter().any(|(other, there)| *there == node && is_replica(other)) {
            return breach("starts where another replica is");
        }
        self.started.insert(id, node);
        None
    }

    /// The rule that is broken at the end, if one is.
    fn ended(&self, outcomes: &[TransferOutcome]) -> Option<Breach> {
        let wrong = outcomes.iter().find(|outcome| {
            let whole = self.asked.get(&outcome.id).and_then(|request| request.bytes);
            outcome.ended.is_some() && (outcome.started.is_none() || Some(outcome.moved) != whole)
        });
        wrong.map(|outcome| Breach::WrongTransfer {
            transfer: outcome.id.0,
            why: "ends without all its bytes",
        })
    }
}

fn options(random: &mut Prng) -> TransferOptions {
    let nodes = (0..random.random_range(1..=5)).map(|_| StorageNode {
        peak: megabytes(random.random_range(1..=500)),
        overhead: if random.random_bool(0.5) { 0.0 } else { random.random_range(0.0..=0.2) },
        external: random.random_bool(0.3).then(|| External {
            from: Span::from_secs(random.random_range(0..=300)),
            share: random.random_range(0.0..=0.95),
        }),
        is_down: false,
    });
    let nodes = nodes.collect();
    let slow = (0..MOST_TRANSFERS).filter_map(|id| {
        let rate = megabytes(random.random_range(1..=20));
        random.random_bool(0.1).then_some((TransferId(id), rate))
    });
    let clients = slow.collect();
    TransferOptions {
        nodes,
        stream: megabytes(random.random_range(1..=500)),
        spread: random.random_range(0.0..=0.9),
        sway: random.random_range(0.0..=0.9),
        crowd: random.random_range(1..=50),
        clients,
        piece: NonZeroU64::new(random.random_range(1..=100_000_000)).unwrap_or(NonZeroU64::MIN),
        ending: Span::from_millis(random.random_range(0..=5_000)),
        at_most: Span::MAX,
    }
}

/// What happens, in the order of time.
fn happenings(random: &mut Prng, nodes: usize) -> Vec<(Span, Happening)> {
    let mut all = Vec::new();
    for id in 0..random.random_range(1..=MOST_TRANSFERS) {
        let at = time(random);
        all.push((at, Happening::Ask(request(random, id, nodes))));
        if random.random_bool(0.1) {
            let later = at + Span::from_millis(random.random_range(0..=60_000));
            all.push((later, Happening::GiveUp(TransferId(id))));
        }
    }
    for _ in 0..random.random_range(0..=4) {
        let (node, at) = (NodeIndex(random.random_range(0..nodes)), time(random));
        all.push((at, Happening::Node { node, is_down: true }));
    }
    // A node may go down twice, so all come up last.
    let end = BUSY + Span::from_secs(61);
    all.extend((0..nodes).map(|node| (end, Happening::Node { node: NodeIndex(node), is_down: false })));
    all.sort_by_key(|(at, _)| *at);
    all
}

fn request(random: &mut Prng, id: u64, nodes: usize) -> Request {
    let is_read = random.random_bool(0.4);
    let mut among: Vec<_> = (0..nodes).filter(|_| random.random_bool(0.6)).map(NodeIndex).collect();
    if among.is_empty() {
        among.push(NodeIndex(random.random_range(0..nodes)));
    }
    Request {
        id: TransferId(id),
        direction: if is_read { Direction::Read } else { Direction::Write },
        bytes: Some(1_u64 << random.random_range(0..=30)),
        rate: megabytes(random.random_range(1..=60)),
        class: Class(random.random_range(0..=2)),
        deadline: random.random_bool(0.2).then(|| Instant::ORIGIN + time(random)),
        nodes: among.into_iter().collect(),
        object: (!is_read && random.random_bool(0.3)).then(|| ObjectId(random.random_range(0..=3))),
    }
}

fn time(random: &mut Prng) -> Span {
    Span::from_millis(random.random_range(0..=300_000))
}

fn megabytes(rate: u64) -> Bandwidth {
    Bandwidth::new(rate * 1_000_000).expect("above zero")
}
