//! A transfer, as its client asks for it.

use weir_model::{Bandwidth, Direction, Instant, Span};

use crate::NodeSet;

/// The number of a transfer, given by the coordinator.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TransferId(pub u64);

/// The number of an object. Its replicas are written by a transfer each.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ObjectId(pub u64);

/// How important a transfer is: a higher class waits for less long. 0 is the lowest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Class(pub u8);

/// A transfer that is asked for.
#[derive(Clone, PartialEq, Debug)]
pub struct Request {
    /// Its number.
    pub id: TransferId,
    /// Whether bytes go from a node or to one. A node's reads and writes are measured and promised apart.
    pub direction: Direction,
    /// How many bytes; `None` if the client does not know it, as with a pipe.
    pub bytes: Option<u64>,
    /// The rate that it is to have on average from its start to its end.
    pub rate: Bandwidth,
    /// Its class.
    pub class: Class,
    /// When it is to be done at the latest. Only [`Deadline`](crate::Deadline) looks at it.
    pub deadline: Option<Instant>,
    /// The nodes that may serve it: for a read, those that hold a replica.
    pub nodes: NodeSet,
    /// The object of which a replica is written. Transfers of one object go to different failure domains, as
    /// long as one of them waits or goes on. Later, the caller leaves out the nodes of the replicas that are
    /// there.
    pub object: Option<ObjectId>,
}

impl Request {
    /// How long it takes at the rate that it asks for; `None` if its size is not known.
    pub fn takes(&self) -> Option<Span> {
        self.bytes.map(|bytes| Span::from_secs_f64(bytes_f64(bytes) / bytes_f64(self.rate.get())))
    }

    /// The rate that it is to have if it starts now at a node of that peak, in bytes a second: what it asks
    /// for, or more if only more takes it to its end by its deadline. If not even the peak does, the rate is
    /// all that is left to promise.
    pub(crate) fn wanted(&self, now: Instant, peak: Bandwidth) -> f64 {
        let asked = bytes_f64(self.rate.get());
        let left = self.deadline.map(|deadline| deadline.saturating_since(now).as_secs_f64());
        let in_time = left.zip(self.bytes).map(|(left, bytes)| bytes_f64(bytes) / left);
        in_time.filter(|in_time| *in_time < bytes_f64(peak.get())).map_or(asked, |in_time| in_time.max(asked))
    }
}

#[allow(clippy::cast_precision_loss)] // above 2^53 bytes, a rounding of a byte
pub(crate) const fn bytes_f64(bytes: u64) -> f64 {
    bytes as f64
}

#[cfg(test)]
pub(crate) mod testing {
    //! Requests for tests.

    use super::*;

    /// A write of 1000 MB at `rate` bytes a second to any of the first `nodes` nodes.
    pub(crate) fn write(id: u64, rate: u64, nodes: usize) -> Request {
        Request {
            id: TransferId(id),
            direction: Direction::Write,
            bytes: Some(1_000_000_000),
            rate: Bandwidth::new(rate).expect("above zero"),
            class: Class::default(),
            deadline: None,
            nodes: NodeSet::first(nodes),
            object: None,
        }
    }
}
