//! What is to be removed from nodes, and when an interrupted transfer is given up.

use weir_model::Instant;
use weir_transfer::NodeIndex;

use super::Desk;
use crate::catalogue::{CatalogueError, Holder, Leftover, ObjectRow, State, UnixMs, What};
use crate::proto::{Kind, Refusal};

/// How many removals go on at a time on each node.
const MOST_AT_A_TIME: usize = 4;

/// How many leftovers of each node are looked at, the oldest first: some may have to wait for a transfer.
const MOST_LOOKED_AT: usize = 100;

/// How many interrupted transfers are kept.
const MOST_INTERRUPTED: u32 = 20_000;

/// For how long another run of a client may continue a transfer, in milliseconds: a day.
const RESUMABLE: u64 = 24 * 3_600 * 1_000;

/// For how long the same run may, if only that run can, as with a pipe: ten minutes.
const RUN_BOUND: u64 = 600 * 1_000;

/// Something that is to be removed from a node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Errand {
    pub(crate) id: u64,
    pub(crate) node: NodeIndex,
    pub(crate) what: What,
}

impl Desk {
    /// What is to be removed now. The driver says of each how it went.
    ///
    /// # Errors
    /// If the catalogue refuses.
    pub(crate) fn errands(&mut self, unix: UnixMs) -> Result<Vec<Errand>, CatalogueError> {
        self.interrupt_abandoned(unix)?;
        for (kept, is_run_bound, why) in [
            (RESUMABLE, false, "nobody continued it within a day"),
            (RUN_BOUND, true, "its client did not come back within ten minutes"),
        ] {
            for id in self.catalogue.interrupted_before(unix.saturating_sub(kept), is_run_bound)? {
                self.catalogue.end_transfer(unix, id, State::Failed, why)?;
                self.count(State::Failed);
            }
        }
        for id in self.catalogue.interrupted_beyond(MOST_INTERRUPTED)? {
            let why = "too many transfers were interrupted after it";
            self.catalogue.end_transfer(unix, id, State::Failed, why)?;
        }
        let mut errands = Vec::new();
        let up = (0..self.nodes.len()).filter(|node| self.nodes[*node].down.is_none()).map(NodeIndex);
        for node in up.collect::<Vec<_>>() {
            // A node that refuses removals so holds up no other node's.
            let busy = self.under_way.values().filter(|other| **other == node).count();
            let free = MOST_AT_A_TIME.saturating_sub(busy);
            let name = self.config.nodes[node.0].name.clone();
            let waiting =
                if free == 0 { Vec::new() } else { self.catalogue.leftovers(&name, MOST_LOOKED_AT)? };
            let mut waiting: Vec<_> =
                waiting.into_iter().filter(|leftover| !self.under_way.contains_key(&leftover.id)).collect();
            // Those that failed come last, or a few that always fail would hold up all others.
            waiting.sort_by_key(|leftover| (self.failed_removals.get(&leftover.id).copied(), leftover.id));
            let mut free = free;
            for leftover in waiting {
                if free == 0 {
                    break;
                }
                if let Some(what) = self.removable(&name, &leftover)? {
                    self.under_way.insert(leftover.id, node);
                    errands.push(Errand { id: leftover.id, node, what });
                    free -= 1;
                }
            }
        }
        Ok(errands)
    }

    /// Interrupts those transfers in the catalogue that it could not forget before. If it still cannot, the
    /// next errands try again.
    fn interrupt_abandoned(&mut self, unix: UnixMs) -> Result<(), CatalogueError> {
        while let Some(id) = self.abandoned.first().copied() {
            if let Some(row) = self.catalogue.transfer(id)?
                && self.seems_live(&row)
                && self.catalogue.interrupt(unix, id).is_err()
            {
                return Ok(()); // said when the transfer was given up
            }
            self.abandoned.remove(&id);
        }
        Ok(())
    }

    /// What of a leftover is to be removed from its node now.
    fn removable(&mut self, node: &str, leftover: &Leftover) -> Result<Option<What>, CatalogueError> {
        let holder = match &leftover.what {
            What::Partial(_) => return Ok(Some(leftover.what.clone())),
            What::Object(name) | What::Either(name, _) => self.catalogue.holder(node, name, 0)?,
        };
        match (holder, &leftover.what) {
            // What has become a replica meanwhile, such as by an import, is nobody's leftover.
            (Holder::Replica, What::Either(_, notes)) => Ok(Some(What::Partial(notes.clone()))),
            (Holder::Replica, _) => self.removed(leftover.id).map(|()| None),
            // What is there may be this transfer's. Its end says.
            (Holder::Transfer(_), _) => Ok(None),
            (Holder::Leftover | Holder::Nobody, what) => Ok(Some(what.clone())),
        }
    }

    /// A removal is done, or is to be tried again.
    ///
    /// # Errors
    /// If the catalogue refuses.
    pub(crate) fn errand_done(&mut self, id: u64, is_removed: bool) -> Result<(), CatalogueError> {
        self.under_way.remove(&id);
        if is_removed {
            return self.removed(id);
        }
        *self.failed_removals.entry(id).or_insert(0) += 1;
        Ok(())
    }

    /// A leftover is gone. The next sample looks at the transfers that wait for that.
    fn removed(&mut self, leftover: u64) -> Result<(), CatalogueError> {
        self.freed.extend(self.catalogue.removed(leftover)?);
        self.failed_removals.remove(&leftover);
        Ok(())
    }

    /// Removes an object. Its transfers that would make replicas end. Whether there was one.
    ///
    /// # Errors
    /// If the catalogue refuses.
    pub(crate) fn remove(&mut self, now: Instant, unix: UnixMs, name: &str) -> Result<bool, CatalogueError> {
        let Some(object) = self.catalogue.object(name)? else { return Ok(false) };
        for kind in [Kind::Put, Kind::Replicate, Kind::Import] {
            for row in self.catalogue.open_transfers(name, kind.into())? {
                let why = "its object was removed";
                self.end(now, unix, row.id, State::Cancelled, Refusal::Cancelled, why)?;
            }
        }
        let replicas = self.catalogue.replicas(object.id)?;
        self.catalogue.remove_object(&object)?;
        self.count_again(replicas.iter().map(|replica| replica.node.as_str()))?;
        Ok(true)
    }

    /// Removes a bad replica. Whether there was one that may go: one that is bad, of an object that has a
    /// good one besides.
    ///
    /// # Errors
    /// If the catalogue refuses.
    pub(crate) fn drop_replica(&mut self, name: &str, node: &str) -> Result<bool, CatalogueError> {
        let Some(object) = self.catalogue.object(name)? else { return Ok(false) };
        let replicas = self.catalogue.replicas(object.id)?;
        let is_bad = replicas.iter().any(|replica| replica.node == node && !replica.is_good);
        let has_good = replicas.iter().any(|replica| replica.is_good);
        if is_bad && has_good {
            self.catalogue.drop_replica(&object, node)?;
            self.count_again([node].into_iter())?;
        }
        Ok(is_bad && has_good)
    }

    /// The nodes that an object of that name is yet to be removed from.
    ///
    /// # Errors
    /// If the catalogue refuses.
    pub(crate) fn pending(&self, name: &str) -> Result<Vec<String>, CatalogueError> {
        self.catalogue.left_on(name)
    }

    /// The object of that name.
    ///
    /// # Errors
    /// If the catalogue refuses.
    pub(crate) fn object(&self, name: &str) -> Result<Option<ObjectRow>, CatalogueError> {
        self.catalogue.object(name)
    }

    fn count_again<'a>(&mut self, nodes: impl Iterator<Item = &'a str>) -> Result<(), CatalogueError> {
        for name in nodes {
            if let Some(node) = self.node(name) {
                let (objects, stored) = self.catalogue.stored_on(name)?;
                (self.nodes[node.0].objects, self.nodes[node.0].stored) = (objects, stored);
            }
        }
        Ok(())
    }
}
