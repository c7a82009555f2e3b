//! What people are told: objects, transfers, nodes.

use weir_model::{Bandwidth, Direction, Instant};
use weir_transfer::NodeIndex;

use super::sensed::Sensor;
use super::{Desk, Live, passed_ms};
use crate::catalogue::{CatalogueError, ObjectRow, State, TransferRow};
use crate::proto::{self, NodeInfo, NodeList, Object, ObjectList, Replica, TransferInfo, TransferList};

/// The most objects or transfers in an answer.
const MOST_IN_A_LIST: u32 = 500;

impl Desk {
    /// The next objects by name.
    ///
    /// # Errors
    /// If the catalogue refuses.
    pub(crate) fn list_objects(&self, prefix: &str, after: &str) -> Result<ObjectList, CatalogueError> {
        let mut rows = self.catalogue.objects(prefix, after, MOST_IN_A_LIST + 1)?;
        let more = rows.len() > MOST_IN_A_LIST as usize;
        rows.truncate(MOST_IN_A_LIST as usize);
        let objects = rows.into_iter().map(|row| self.told_object(row)).collect::<Result<_, _>>()?;
        Ok(ObjectList { objects, more })
    }

    /// An object with its replicas.
    ///
    /// # Errors
    /// If the catalogue refuses.
    pub(crate) fn told_object(&self, row: ObjectRow) -> Result<Object, CatalogueError> {
        let replicas = self.catalogue.replicas(row.id)?.into_iter().map(|replica| Replica {
            node: replica.node,
            is_good: replica.is_good,
            stored_ms: replica.stored,
            verified_ms: replica.verified,
        });
        Ok(Object {
            name: row.name,
            bytes: row.bytes,
            checksum: row.checksum.to_vec(),
            replicas_wanted: row.wanted,
            replicas: replicas.collect(),
            stored_ms: row.stored,
        })
    }

    /// The next transfers, falling by number.
    ///
    /// # Errors
    /// If the catalogue refuses.
    pub(crate) fn list_transfers(
        &self,
        now: Instant,
        all: bool,
        before: u64,
    ) -> Result<TransferList, CatalogueError> {
        let before = if before == 0 { u64::MAX } else { before };
        let mut rows = self.catalogue.transfers(all, before, MOST_IN_A_LIST + 1)?;
        let more = rows.len() > MOST_IN_A_LIST as usize;
        rows.truncate(MOST_IN_A_LIST as usize);
        let transfers = rows.into_iter().map(|row| self.told_transfer(now, row)).collect();
        Ok(TransferList { transfers, more })
    }

    /// A transfer by its number.
    ///
    /// # Errors
    /// If the catalogue refuses.
    pub(crate) fn find_transfer(
        &self,
        now: Instant,
        id: u64,
    ) -> Result<Option<TransferInfo>, CatalogueError> {
        Ok(self.catalogue.transfer(id)?.map(|row| self.told_transfer(now, row)))
    }

    /// Whether the catalogue has a transfer for one that waits or runs, and it does neither: the catalogue
    /// could not remember its end.
    pub(super) fn seems_live(&self, row: &TransferRow) -> bool {
        matches!(row.state, State::Waiting | State::Active) && !self.live.contains_key(&row.id)
    }

    fn told_transfer(&self, now: Instant, row: TransferRow) -> TransferInfo {
        let live = self.live.get(&row.id);
        let mut progress = live.map_or(row.progress, |live| live.progress);
        if let Some(live) = live.filter(|live| live.node.is_some()) {
            progress.moving += passed_ms(now, live.since);
        }
        let state = if self.seems_live(&row) { State::Interrupted } else { row.state };
        let waits = |live: &&Live| live.node.is_none();
        let why = live.filter(waits).map_or(row.why, |_| self.why_it_waits(row.id));
        TransferInfo {
            transfer: row.id,
            kind: row.new.kind,
            name: row.new.name,
            state: state as i32,
            why,
            node: row.node,
            bytes: row.new.bytes,
            moved: progress.moved,
            rate: row.new.rate,
            class: row.new.class,
            deadline_ms: row.new.deadline,
            asked_ms: row.asked,
            started_ms: row.started,
            first_byte_ms: progress.first_byte,
            ended_ms: row.ended,
            moving_ms: progress.moving,
        }
    }

    /// All nodes.
    pub(crate) fn list_nodes(&self) -> NodeList {
        let nodes = (0..self.nodes.len()).map(|node| self.told_node(NodeIndex(node))).collect();
        NodeList { nodes, policy: self.config.policy.name().to_string() }
    }

    /// A node.
    pub(crate) fn told_node(&self, node: NodeIndex) -> NodeInfo {
        let (config, known) = (&self.config.nodes[node.0], &self.nodes[node.0]);
        let (read, write) = known.measured.map_or((None, None), |(read, write)| (Some(read), Some(write)));
        let told = |direction, given: Option<Bandwidth>, measured: Option<Bandwidth>| {
            let (view, rate) = self.scheduler.load(node, direction);
            proto::Direction {
                peak: given.or(measured).map_or(0, Bandwidth::get),
                peak_measured: given.is_none() && measured.is_some(),
                rate,
                average: view.average,
                reserved: view.reserved,
                active: view.active,
                external: view.external,
            }
        };
        NodeInfo {
            name: config.name.clone(),
            url: config.url.clone(),
            is_up: known.down.is_none(),
            why: known.down.clone().unwrap_or_default(),
            reads: Some(told(Direction::Read, config.peak_read, read)),
            writes: Some(told(Direction::Write, config.peak_write, write)),
            class: self.config.classes[config.class].clone(),
            cost: config.cost,
            domain: config.domain.clone(),
            capacity: config.capacity,
            stored_bytes: known.stored,
            objects: known.objects,
            sensor: known.sensor.as_ref().map(Sensor::told),
        }
    }
}
