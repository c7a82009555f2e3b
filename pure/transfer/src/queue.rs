//! The transfers that wait, and which of them is the next.
//!
//! Transfers wait in the order of their coming. A transfer of a higher class stands where it would stand if it
//! had come [`PROMOTED_AFTER`] earlier for each class. So a high class is preferred, and a low one is not
//! starved: after so long, it is before all that come from then on.
//!
//! Transfers that may use the same nodes form a **lane**. Only the first of a lane can be the next, because
//! what it cannot get, the others of its lane must not take. Each node knows the first of its lanes. So the
//! next transfer is found among one for each node, and not among all that wait.

use std::collections::{BTreeMap, BTreeSet};

use weir_model::{Instant, Span};

use crate::{Class, NodeIndex, NodeSet, Request, TransferId};

/// A transfer of one class higher stands where it would stand if it had come so much earlier.
pub const PROMOTED_AFTER: Span = Span::from_secs(600);

/// The place of a transfer: when it came, put back for its class; then the number in the order of coming.
type Place = (u64, u64);

/// The number of a lane.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct LaneId(u64);

/// The transfers that wait.
#[derive(Clone, Default, Debug)]
pub(crate) struct Queue {
    lanes: BTreeMap<LaneId, Lane>,
    by_nodes: BTreeMap<NodeSet, LaneId>,
    /// For each node, the first of each lane that may use it.
    heads: Vec<BTreeSet<(Place, LaneId)>>,
    places: BTreeMap<TransferId, (Place, LaneId)>,
    came: u64,
    lanes_made: u64,
}

#[derive(Clone, Debug)]
struct Lane {
    nodes: NodeSet,
    waiting: BTreeMap<Place, Waiting>,
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
        self.insert(place, Waiting { request, since: now });
    }

    /// Takes a transfer out; `None` if it does not wait.
    pub(crate) fn remove(&mut self, id: TransferId) -> Option<Waiting> {
        Some(self.take(id)?.1)
    }

    /// From now on, a transfer may not use some nodes. It keeps its place in time.
    pub(crate) fn exclude(&mut self, id: TransferId, excluded: &NodeSet) {
        if let Some((place, mut waiting)) = self.take(id) {
            waiting.request.nodes.remove_all(excluded);
            self.insert(place, waiting);
        }
    }

    /// The first that may use one of these nodes.
    pub(crate) fn first(&self, among: &NodeSet) -> Option<&Waiting> {
        let first = |node: NodeIndex| self.heads.get(node.0)?.first().copied();
        let (place, lane) = among.iter().filter_map(first).min()?;
        self.lanes.get(&lane)?.waiting.get(&place)
    }

    pub(crate) fn get(&self, id: TransferId) -> Option<&Waiting> {
        let (place, lane) = self.places.get(&id)?;
        self.lanes.get(lane)?.waiting.get(place)
    }

    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    fn insert(&mut self, place: Place, waiting: Waiting) {
        let nodes = &waiting.request.nodes;
        let id = match self.by_nodes.get(nodes) {
            Some(id) => *id,
            None => {
                let id = LaneId(self.lanes_made);
                self.lanes_made += 1;
                self.by_nodes.insert(nodes.clone(), id);
                self.lanes.insert(id, Lane { nodes: nodes.clone(), waiting: BTreeMap::new() });
                id
            }
        };
        self.places.insert(waiting.request.id, (place, id));
        self.change(id, |lane| {
            lane.insert(place, waiting);
        });
    }

    fn take(&mut self, id: TransferId) -> Option<(Place, Waiting)> {
        let (place, lane) = self.places.remove(&id)?;
        let mut taken = None;
        self.change(lane, |lane| taken = lane.remove(&place));
        Some((place, taken?))
    }

    /// Changes what waits in a lane, and keeps the heads of its nodes.
    fn change(&mut self, id: LaneId, change: impl FnOnce(&mut BTreeMap<Place, Waiting>)) {
        let Some(lane) = self.lanes.get_mut(&id) else { return };
        let head = |waiting: &BTreeMap<Place, Waiting>| waiting.keys().next().copied();
        let before = head(&lane.waiting);
        change(&mut lane.waiting);
        let after = head(&lane.waiting);
        if before != after {
            for node in lane.nodes.iter() {
                if node.0 >= self.heads.len() {
                    self.heads.resize_with(node.0 + 1, BTreeSet::new);
                }
                let heads = &mut self.heads[node.0];
                before.map(|place| heads.remove(&(place, id)));
                after.map(|place| heads.insert((place, id)));
            }
        }
        if after.is_none() {
            self.by_nodes.remove(&lane.nodes);
            self.lanes.remove(&id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::testing::write;

    #[test]
    fn the_first_among_some_nodes_is_found_and_an_empty_lane_is_forgotten() {
        let mut queue = Queue::default();
        let on = |id, nodes: &[usize]| Request {
            nodes: nodes.iter().copied().map(NodeIndex).collect(),
            ..write(id, 1, 1)
        };
        for request in [on(1, &[0]), on(2, &[0, 1]), on(3, &[1]), on(4, &[0])] {
            queue.push(Instant::ORIGIN, request);
        }
        let first = |queue: &Queue, nodes: &[usize]| {
            let nodes = nodes.iter().copied().map(NodeIndex).collect();
            queue.first(&nodes).map(|waiting| waiting.request.id.0)
        };
        assert_eq!(
            (first(&queue, &[0, 1]), first(&queue, &[1]), first(&queue, &[2])),
            (Some(1), Some(2), None)
        );
        queue.exclude(TransferId(2), &[NodeIndex(1)].into_iter().collect());
        assert_eq!(first(&queue, &[1]), Some(3));
        queue.remove(TransferId(1));
        assert_eq!(first(&queue, &[0]), Some(2), "it keeps its place before the fourth");
        (2..=4).for_each(|id| assert!(queue.remove(TransferId(id)).is_some()));
        assert!(
            queue.lanes.is_empty() && queue.by_nodes.is_empty() && queue.heads.iter().all(BTreeSet::is_empty)
        );
    }
}
