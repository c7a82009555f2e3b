//! Bulk transfers to storage nodes, in simulated time, under the real scheduler.
//!
//! The model has what the paper saw on its three nodes (Nikolow, Słota, Kitowski 2010, §IV):
//!
//! - **A node does less the more transfers it has**: `peak / (1 + overhead (n - 1))` in sum. "With concurrent
//!   transfers, the throughput of storage devices is usually lower than given a single transfer."
//! - **A transfer gets a share** of that. The shares are not equal: each transfer has a weight of its own. No
//!   transfer gets more than one stream can carry; what it cannot use, the others of its node get.
//! - **The host slows all transfers down** once it has more of them than it can serve: by `1 / (1 + ((N -
//!   crowd) / crowd)^2)` for `N > crowd`. "Data transfer processes need to compete for CPU time instead of
//!   waiting for I/O access." The nodes of the paper are machines of one host.
//! - **A node sways** from second to second.
//! - **A client may be slow**: its transfer gets no more.
//! - **A client counts in pieces**: so a sample of a slow transfer has one of them, or none, or two.
//! - **A transfer ends** some time after its last byte, when what it wrote is durable.
//! - **Others use a node**: from some time on, they take a share of what it does.
//!
//! What the model leaves out: caches, files, the network between hosts, and reads and writes that disturb one
//! another otherwise than by their number.

mod shares;
pub mod swarm;
mod world;

use std::collections::BTreeMap;
use std::num::NonZeroU64;

use weir_model::{Bandwidth, Instant, Span};
use weir_transfer::{NodeIndex, Policy, Refused, Request, SAMPLE, TransferId};

use self::world::World;
use crate::Seed;

pub use self::shares::{Taker, shares};

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
    /// The most that the client of a transfer can do; absent: it bounds nothing.
    pub clients: BTreeMap<TransferId, Bandwidth>,
    /// A client counts what it moved in pieces of so many bytes, and the rest at its end.
    pub piece: NonZeroU64,
    /// How long a transfer still takes when it has moved its last byte.
    pub ending: Span,
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
        if world.waiting() == 0
            && now >= next_request
            && let Some(request) = requests.next()
        {
            world.ask(now, request);
            next_request = now + every;
        }
        if !world.start(now).is_empty() {
            next_request = now + every;
        }
        if requests.peek().is_none() && world.is_done() {
            break;
        }
        world.share(now);
        let next_ask = (world.waiting() == 0 && requests.peek().is_some()).then_some(next_request);
        let ahead = [Some(next_sample), next_ask, world.next_event(now)];
        let next = ahead.into_iter().flatten().min().unwrap_or(next_sample).max(now);
        world.advance(now, next);
        now = next;
        if now >= next_sample {
            world.sample(now);
            next_sample = now + SAMPLE;
        }
    }
    world.outcomes()
}

#[cfg(test)]
mod tests;
