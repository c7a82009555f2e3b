//! Which leaf each connection's packets enter, so that no packet overtakes an earlier one.
//!
//! A packet that overtakes an earlier one looks to TCP like a loss, and several make it send again. Within a
//! leaf none does, because a leaf is a queue. Between leaves, and from a leaf to no delay at all, a
//! connection goes only when all of its earlier packets are out by the time a new one would be:
//!
//! - It **enters** a leaf when the leaf has a delay. While nothing is delayed, no packet is touched.
//! - It **moves** to another leaf that it may enter when the delay there is longer, and a packet that enters
//!   there now gets out no earlier than all that are in its present leaf.
//! - It **leaves** when the leaf has had no delay for a second and is empty. The second also keeps the map
//!   from changing with each dip of the delay.
//! - It leaves **at once** when it is no longer to be delayed: its initiator has stopped writing, or is
//!   exempt now. Packets may then overtake those that are in the leaf; but to delay it on would be wrong.

use std::collections::{BTreeMap, BTreeSet};

use weir_model::{Instant, Span};

use crate::kernel::LeafId;
use crate::survey::Connection;

/// How long a leaf has no delay before its connections leave it.
const LINGER: Span = Span::from_secs(1);

/// What there is to know of a leaf at an instant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LeafState {
    /// How long a packet that enters now stays in it.
    pub(crate) delay: Span,
    /// The delay before. Until the kernel is told of the new one, packets have the old one.
    before: Span,
    /// When the last packet that has entered so far is out, at the latest.
    drained: Instant,
    /// Whether the kernel was seen to hold packets in it.
    pub(crate) has_packets: bool,
}

impl LeafState {
    /// No delay, and no packet.
    pub(crate) const IDLE: Self =
        Self { delay: Span::ZERO, before: Span::ZERO, drained: Instant::ORIGIN, has_packets: false };

    /// Sets the delay of packets that enter from now on. Until now they had the delay before.
    pub(crate) fn set_delay(&mut self, now: Instant, delay: Span) {
        if !self.delay.is_zero() {
            self.drained = self.drained.max(now + self.delay);
        }
        self.before = self.delay;
        self.delay = delay;
    }

    /// When all packets that entered until `now` are out, at the latest.
    fn is_drained_at(&self, now: Instant) -> Instant {
        self.drained.max(now + self.delay)
    }

    /// When a packet that enters `now` is out, at the earliest.
    fn lets_out_at(&self, now: Instant) -> Instant {
        now + self.delay.min(self.before)
    }

    fn may_be_left(&self, now: Instant) -> bool {
        self.delay.is_zero() && !self.has_packets && now >= self.drained + LINGER
    }
}

/// Where each connection is.
#[derive(Default, Debug)]
pub(crate) struct Placement {
    /// Those that are to be delayed, by the leaves that they may enter: these are a few sets, and to go
    /// through them ten times a second for each of a thousand connections would cost the most of all.
    eligible: BTreeMap<BTreeSet<LeafId>, Vec<Eligible>>,
    /// Those that are no longer to be delayed, and have not left yet.
    leaving: Vec<Change>,
}

/// A connection that is to be delayed.
#[derive(Debug)]
struct Eligible {
    connection: Connection,
    /// The leaf that it is in.
    is_in: Option<LeafId>,
}

/// A connection that is elsewhere than before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Change {
    pub(crate) connection: Connection,
    pub(crate) from: Option<LeafId>,
    pub(crate) to: Option<LeafId>,
}

impl Placement {
    /// From now on these are to be delayed, each in one of its leaves.
    pub(crate) fn set_eligible(&mut self, eligible: BTreeMap<Connection, BTreeSet<LeafId>>) {
        let before = std::mem::take(&mut self.eligible).into_values().flatten();
        let mut entered: BTreeMap<_, _> =
            before.filter_map(|before| Some((before.connection, before.is_in?))).collect();
        for (connection, candidates) in eligible {
            let is_in = entered.remove(&connection);
            self.eligible.entry(candidates).or_default().push(Eligible { connection, is_in });
        }
        let leaves = |(connection, from)| Change { connection, from: Some(from), to: None };
        self.leaving.extend(entered.into_iter().map(leaves));
    }

    /// Decides anew where each connection is; what has changed.
    pub(crate) fn update(&mut self, now: Instant, leaves: &BTreeMap<LeafId, LeafState>) -> Vec<Change> {
        let state = |leaf: &LeafId| leaves.get(leaf).copied().unwrap_or(LeafState::IDLE);
        let mut changes = std::mem::take(&mut self.leaving);
        for (candidates, connections) in &mut self.eligible {
            let longest =
                candidates.iter().map(|leaf| (state(leaf).delay, *leaf)).max_by_key(|longest| longest.0);
            let longest = longest.filter(|longest| !longest.0.is_zero());
            for Eligible { connection, is_in } in connections {
                let from = is_in.filter(|leaf| candidates.contains(leaf));
                let to = next_leaf(now, from, longest, state);
                if *is_in != to {
                    changes.push(Change { connection: *connection, from: *is_in, to });
                    *is_in = to;
                }
            }
        }
        changes
    }
}

/// Where a connection goes that is in `from`. The longest delay of the leaves that it may enter is `longest`.
fn next_leaf(
    now: Instant,
    from: Option<LeafId>,
    longest: Option<(Span, LeafId)>,
    state: impl Fn(&LeafId) -> LeafState,
) -> Option<LeafId> {
    let Some(from) = from else { return longest.map(|longest| longest.1) };
    let is = state(&from);
    match longest {
        Some((delay, leaf)) if delay > is.delay && state(&leaf).lets_out_at(now) >= is.is_drained_at(now) => {
            Some(leaf)
        }
        Some(_) => Some(from),
        None if is.may_be_left(now) => None,
        None => Some(from),
    }
}

#[cfg(test)]
mod props;
#[cfg(test)]
mod tests;
