//! Volumes come, change, retire and end. A volume that is removed finishes the requests that it accepted, and
//! is flushed.

use tokio::sync::oneshot;
use weir_backend::{BlockDevice, BlockError, Device, DeviceRequest, FaultRule, Finished, Token};
use weir_engine::VolumeConfig;
use weir_model::{Instant, IoKind, SloGoal, VolumeId};

use super::{Intervals, Pool, Unflushed, Volume};
use crate::budget::OwnerId;
use crate::loss::{Estate, Losses, Witness};
use crate::shard::clients::Clients;
use crate::shard::memory::Memory;
use crate::shard::token::last_flush_token;
use crate::stats::VolumeStats;

/// Logged when a volume ends with a loss of which not all its clients were told.
const OWED: &str = "the volume ended before each client was told of a loss; the first flush after it is added again by a reload fails, \
     but a restart forgets the loss: check what is on the volume";

/// The facts about its volume that a connection needs.
pub(in crate::shard) struct Found {
    pub(in crate::shard) owner: OwnerId,
    /// The number that the engine has for the volume at the connection's listener.
    pub(in crate::shard) port: VolumeId,
    pub(in crate::shard) witness: Witness,
}

impl Pool {
    /// Adds a volume with this device, and with the losses of the volume that had its name before.
    pub(in crate::shard) fn add_volume(
        &mut self,
        now: Instant,
        name: String,
        device: Device,
        (config, goal): (VolumeConfig, SloGoal),
        losses: Losses,
        memory: &mut Memory,
    ) -> VolumeId {
        let owner = memory.add_volume(&self.control, &config);
        let id = self.engine.add_volume(now, config.clone());
        let index = id.0 as usize;
        if self.volumes.len() <= index {
            self.volumes.resize_with(index + 1, || None);
        }
        let ports = self.add_ports(now, id);
        self.volumes[index] = Some(Volume {
            name,
            device,
            ports,
            stats: VolumeStats::new(now),
            ended: Vec::new(),
            config,
            goal,
            owner,
            intervals: Intervals::default(),
            timed: false,
            unflushed: Unflushed::default(),
            retiring: None,
            error_logged: None,
            losses,
            loss_logged: None,
        });
        self.keep_time(id);
        id
    }

    /// Changes a volume's promise and limits, and its device's faults.
    pub(in crate::shard) fn set_volume(
        &mut self,
        now: Instant,
        id: VolumeId,
        (config, goal): (VolumeConfig, SloGoal),
        faults: Vec<FaultRule>,
        memory: &mut Memory,
        finished: &mut Vec<Finished>,
    ) {
        self.engine.set_volume(now, id, config.clone());
        self.dirty = true;
        memory.set_volume(self.volume(id).owner, &self.control, &config);
        let volume = self.volume(id);
        (volume.config, volume.goal) = (config, goal);
        volume.device.set_faults(now, faults, finished);
        self.keep_time(id);
    }

    /// The volume for a new connection; `None` if it is gone or being removed. A reload since the negotiation
    /// may have given the number to another volume, so the name has to agree, too.
    pub(in crate::shard) fn find(&self, id: VolumeId, name: &str, listener: usize) -> Option<Found> {
        let volume = self.volumes.get(id.0 as usize)?.as_ref()?;
        if volume.retiring.is_some() || volume.name != name {
            return None;
        }
        let port = volume.ports.get(listener).copied().unwrap_or(id);
        Some(Found { owner: volume.owner, port, witness: volume.losses.join() })
    }

    /// Begins the removal of a volume: it is flushed once it has answered every request that it accepted.
    /// Returns the volume's owner, for the caller to retire its connections; `None` if the volume is gone.
    pub(in crate::shard) fn retire(&mut self, id: VolumeId, done: oneshot::Sender<()>) -> Option<OwnerId> {
        let volume = self.volumes.get_mut(id.0 as usize)?.as_mut()?;
        if volume.retiring.is_none() {
            self.leaving.push(id);
        }
        volume.retiring.get_or_insert_default().done.push(done);
        Some(volume.owner)
    }

    /// Begins the last flush of the volumes that retire and have answered every request that they accepted.
    /// True if there are such volumes.
    pub(in crate::shard) fn flush_leaving(&mut self, now: Instant, finished: &mut Vec<Finished>) -> bool {
        let mut has_begun = false;
        let mut at = 0;
        while let Some(id) = self.leaving.get(at).copied() {
            if !self.is_idle_at(id) {
                at += 1;
                continue;
            }
            self.leaving.remove(at);
            has_begun = true;
            let token = last_flush_token(self.key, id);
            let volume = self.volume(id);
            if volume.unflushed.is_clean() {
                finished.push(Finished { token, buffer: None, extents: Vec::new(), result: Ok(()) });
            } else {
                volume.device.start(now, last_flush(token), finished);
            }
            self.keep_time(id);
        }
        has_begun
    }

    /// Ends a volume whose last flush has finished.
    pub(in crate::shard) fn end_volume(
        &mut self,
        now: Instant,
        id: VolumeId,
        result: Result<(), BlockError>,
        clients: &mut Clients,
        memory: &mut Memory,
        estate: &Estate,
    ) {
        let mut ended = self.volumes[id.0 as usize].take().expect("a volume ends once");
        if let Err(error) = result {
            ended.losses.happen();
            // No peer: once, when a volume ends.
            tracing::error!(volume = ended.name, %error, "the last flush failed: unflushed writes may be lost");
        }
        clients.take_witnesses(self.key, id).for_each(|witness| ended.losses.leave(witness));
        if estate.leave(&ended.name, ended.losses) {
            // No peer: once, when a volume ends.
            tracing::error!(volume = ended.name, "{OWED}");
        }
        self.remove_ports(now, &ended.ports);
        memory.remove_volume(ended.owner);
        // The device goes before the removal is reported, so that its file is free for the next server.
        drop(ended.device);
        // No peer: once, when a volume ends.
        tracing::info!(volume = ended.name, "no longer served");
        for done in ended.retiring.into_iter().flat_map(|retiring| retiring.done) {
            let _ = done.send(()); // the gateway may have stopped waiting
        }
    }
}

fn last_flush(token: Token) -> DeviceRequest {
    DeviceRequest {
        token,
        kind: IoKind::Flush,
        offset: 0,
        length: 0,
        fua: false,
        no_hole: false,
        fast_zero: false,
        buffer: None,
    }
}
