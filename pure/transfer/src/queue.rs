//! The transfers that wait, and which of them is the next.
//!
//! Transfers wait in the order of their coming. A transfer of a higher class stands where it would stand if it
//! had come [`PROMOTED_AFTER`] earlier for each class. So a high class is preferred, and a low one is not
//! starved: after so long, it is before all that come from then on.
//!
//! Transfers that may use the same nodes form a **lane**. Only the first of a lane can be the next, because
//! what it cannot get, the others of its lane must not take. So the next transfer is found among the first of
//! the lanes, and not among all that wait: 10,000 backups that may all go anywhere are one lane.

use std::collections::{BTreeMap, BTreeSet};

use weir_model::{Instant, Span};

use crate::{Class, NodeSet, Request, TransferId};

/// A transfer of one class higher stands where it would stand if it had come so much earlier.
pub const PROMOTED_AFTER: Span = Span::from_secs(600);

/// The place of a transfer: when it came, put back for its class; then the number in the order of coming.
type Place = (u64, u64);

/// The transfers that wait.
#[derive(Clone, Default, Debug)]
pub(crate) struct Queue {
    lanes: BTreeMap<NodeSet, BTreeMap<Place, Waiting>>,
    /// The first of each lane.
    heads: BTreeSet<(Place, NodeSet)>,
    places: BTreeMap<TransferId, (Place, NodeSet)>,
    came: u64,
}

/// A transfer that waits.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Waiting {
    pub(crate) request: Request,
    pub(crate) since: Instant,
}

impl Queue {
    /// A transfer waits from now on. The caller sees to it that its number is new.
    pub(crate) fn push(&mut self, now: Instant, request: Request) {
        let later = PROMOTED_AFTER.saturating_mul(u64::from(Class(u8::MAX).0 - request.class.0));
        let place = ((now + later).as_nanos(), self.came);
        self.came += 1;
        let nodes = request.nodes.clone();
        self.places.insert(request.id, (place, nodes.clone()));
        self.change(&nodes, |lane| {
            lane.insert(place, Waiting { request, since: now });
        });
    }

    /// Takes a transfer out; `None` if it does not wait.
    pub(crate) fn remove(&mut self, id: TransferId) -> Option<Waiting> {
        let (place, nodes) = self.places.remove(&id)?;
        let mut removed = None;
        self.change(&nodes, |lane| removed = lane.remove(&place));
        removed
    }

    /// From now on, a transfer may not use some nodes. It keeps its place in time.
    pub(crate) fn exclude(&mut self, id: TransferId, excluded: &NodeSet) {
        let Some((place, nodes)) = self.places.remove(&id) else { return };
        let mut taken = None;
        self.change(&nodes, |lane| taken = lane.remove(&place));
        let Some(mut waiting) = taken else { return };
        excluded.iter().for_each(|node| waiting.request.nodes.remove(node));
        let nodes = waiting.request.nodes.clone();
        self.places.insert(id, (place, nodes.clone()));
        self.change(&nodes, |lane| {
            lane.insert(place, waiting);
        });
    }

    /// The first of each lane, in their order.
    pub(crate) fn heads(&self) -> impl Iterator<Item = &Waiting> {
        self.heads.iter().filter_map(|(place, nodes)| self.lanes.get(nodes)?.get(place))
    }

    pub(crate) fn contains(&self, id: TransferId) -> bool {
        self.places.contains_key(&id)
    }

    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    /// Changes a lane, and keeps its head.
    fn change(&mut self, nodes: &NodeSet, change: impl FnOnce(&mut BTreeMap<Place, Waiting>)) {
        let lane = self.lanes.entry(nodes.clone()).or_default();
        let head = |lane: &BTreeMap<Place, Waiting>| lane.keys().next().copied();
        let before = head(lane);
        change(lane);
        let after = head(lane);
        if lane.is_empty() {
            self.lanes.remove(nodes);
        }
        if before != after {
            before.map(|place| self.heads.remove(&(place, nodes.clone())));
            after.map(|place| self.heads.insert((place, nodes.clone())));
        }
    }
}
