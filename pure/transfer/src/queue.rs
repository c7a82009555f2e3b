//! The transfers that wait, and which of them is the next.
//!
//! Transfers wait in the order of their coming. A transfer of a higher class stands where it would stand if
//! it had come [`PROMOTED_AFTER`] earlier for each class. So a high class is preferred, and a low one is not
//! starved: after so long, it is before all that come from then on.
//!
//! Transfers of one direction that may use the same nodes form a **lane**. Only the first of a lane can be
//! the next, because what it cannot get, the others of its lane must not take. Each node knows the first of
//! its lanes. So the next transfer is found among one for each node and direction, and not among all that
//! wait.

use std::collections::{BTreeMap, BTreeSet};

use weir_model::{Direction, Instant, Span};

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
    by_nodes: BTreeMap<(Direction, NodeSet), LaneId>,
    to_read: Heads,
    to_write: Heads,
    places: BTreeMap<TransferId, (Place, LaneId)>,
    came: u64,
    lanes_made: u64,
}

/// For each node, the first of each lane that may use it.
type Heads = Vec<BTreeSet<(Place, LaneId)>>;

#[derive(Clone, Debug)]
struct Lane {
    direction: Direction,
    nodes: NodeSet,
    waiting: BTreeMap<Place, Waiting>,
}

/// A transfer that waits.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Waiting {
    pub(crate) request: Request,
    /// Those of its nodes that it may use now.
    pub(crate) nodes: NodeSet,
    pub(crate) since: Instant,
}

impl Queue {
    /// A transfer waits from now on. The caller sees to it that its number is new.
    pub(crate) fn push(&mut self, now: Instant, request: Request, nodes: NodeSet) {
        let later = PROMOTED_AFTER.saturating_mul(u64::from(Class(u8::MAX).0 - request.class.0));
        let place = ((now + later).as_nanos(), self.came);
        self.came += 1;
        self.insert(place, Waiting { request, nodes, since: now });
    }

    /// Takes a transfer out; `None` if it does not wait.
    pub(crate) fn remove(&mut self, id: TransferId) -> Option<Waiting> {
        Some(self.take(id)?.1)
    }

    /// From now on, a transfer may use all of its nodes but these. It keeps its place in time.
    pub(crate) fn exclude(&mut self, id: TransferId, excluded: &NodeSet) {
        if let Some((place, mut waiting)) = self.take(id) {
            waiting.nodes.clone_from(&waiting.request.nodes);
            waiting.nodes.remove_all(excluded);
            self.insert(place, waiting);
        }
    }

    /// The first that may use one of these nodes, to read or to write.
    pub(crate) fn first(&self, to_read: &NodeSet, to_write: &NodeSet) -> Option<&Waiting> {
        let of = |heads: &Heads, nodes: &NodeSet| {
            nodes.iter().filter_map(|node| heads.get(node.0)?.first().copied()).min()
        };
        let firsts = [of(&self.to_read, to_read), of(&self.to_write, to_write)];
        let (place, lane) = firsts.into_iter().flatten().min()?;
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
        let (direction, nodes) = (waiting.request.direction, waiting.nodes.clone());
        let id = *self.by_nodes.entry((direction, nodes.clone())).or_insert_with(|| {
            self.lanes_made += 1;
            LaneId(self.lanes_made)
        });
        self.lanes.entry(id).or_insert(Lane { direction, nodes, waiting: BTreeMap::new() });
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
            let of_direction = match lane.direction {
                Direction::Read => &mut self.to_read,
                Direction::Write => &mut self.to_write,
            };
            for NodeIndex(node) in lane.nodes.iter() {
                if node >= of_direction.len() {
                    of_direction.resize_with(node + 1, BTreeSet::new);
                }
                let heads = &mut of_direction[node];
                before.map(|place| heads.remove(&(place, id)));
                after.map(|place| heads.insert((place, id)));
            }
        }
        if after.is_none() {
            self.by_nodes.remove(&(lane.direction, lane.nodes.clone()));
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
            let nodes = request.nodes.clone();
            queue.push(Instant::ORIGIN, request, nodes);
        }
        let first = |queue: &Queue, nodes: &[usize]| {
            let nodes = nodes.iter().copied().map(NodeIndex).collect();
            queue.first(&NodeSet::EMPTY, &nodes).map(|waiting| waiting.request.id.0)
        };
        assert_eq!(
            (first(&queue, &[0, 1]), first(&queue, &[1]), first(&queue, &[2])),
            (Some(1), Some(2), None)
        );
        let read = Request { direction: Direction::Read, ..on(5, &[1]) };
        queue.push(Instant::ORIGIN, read, NodeSet::first(2));
        let found = queue.first(&NodeSet::first(2), &NodeSet::EMPTY).map(|waiting| waiting.request.id.0);
        assert_eq!(found, Some(5), "reads and writes are apart");
        queue.exclude(TransferId(2), &[NodeIndex(1)].into_iter().collect());
        assert_eq!(first(&queue, &[1]), Some(3));
        queue.remove(TransferId(1));
        assert_eq!(first(&queue, &[0]), Some(2), "it keeps its place before the fourth");
        (2..=5).for_each(|id| assert!(queue.remove(TransferId(id)).is_some()));
        let heads = queue.to_read.iter().chain(&queue.to_write);
        assert!(
            queue.lanes.is_empty() && queue.by_nodes.is_empty() && heads.into_iter().all(BTreeSet::is_empty)
        );
    }
}
