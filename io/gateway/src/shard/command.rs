//! What the gateway's handle asks of a shard. Commands are rare; requests never come this way.

use tokio::sync::mpsc::Sender;
use tokio::sync::oneshot;
use weir_backend::{FaultRule, Opened};
use weir_engine::{Engine, EngineConfig, Recorder, VolumeConfig};
use weir_model::VolumeId;
use weir_nbd::Session;
use weir_sched::{Chain, SlotChains};

use super::{Intervals, Pool, Quota, Shard, Unflushed, Volume};
use crate::connection::ConnectionId;
use crate::front::Permit;
use crate::port::{Observations, PortTerms};
use crate::sharing::{Explanation, VolumeSharing};
use crate::spec::Limits;
use crate::stats::VolumeStats;
use crate::status::{PoolStatus, VolumeStatus};
use crate::stream::Socket;

/// A connection whose negotiation is done.
pub(crate) struct NewConnection {
    pub(crate) socket: Socket,
    pub(crate) peer: String,
    pub(crate) session: Session,
    /// Bytes that the client sent after the negotiation.
    pub(crate) rest: Vec<u8>,
    pub(crate) pool: usize,
    pub(crate) volume: VolumeId,
    /// The number of the listener that it came through.
    pub(crate) listener: usize,
    pub(crate) permit: Permit,
}

/// A volume whose backend is open.
pub(crate) struct NewVolume {
    pub(crate) name: String,
    pub(crate) opened: Opened,
    pub(crate) config: VolumeConfig,
    pub(crate) faults: Vec<FaultRule>,
}

/// One request to a shard, with the way back for its answer.
pub(crate) enum Command {
    Connect(NewConnection),
    AddPool {
        name: String,
        config: EngineConfig,
        ports: Vec<String>,
        recorder: Option<Box<dyn Recorder + Send>>,
        answer: oneshot::Sender<usize>,
    },
    SetPool {
        pool: usize,
        config: EngineConfig,
    },
    ClosePool {
        pool: usize,
    },
    AddVolume {
        pool: usize,
        volume: Box<NewVolume>,
        answer: oneshot::Sender<VolumeId>,
    },
    SetVolume {
        pool: usize,
        volume: VolumeId,
        config: VolumeConfig,
        faults: Vec<FaultRule>,
    },
    /// `done` is sent when the volume is flushed and closed.
    RemoveVolume {
        pool: usize,
        volume: VolumeId,
        done: oneshot::Sender<()>,
    },
    SetLimits {
        limits: Limits,
        budget: u64,
    },
    Status {
        answer: oneshot::Sender<Vec<PoolStatus>>,
    },
    Explain {
        pool: usize,
        volume: VolumeId,
        answer: oneshot::Sender<Option<Explanation>>,
    },
    /// What is seen of a pool that is a port goes there from now on.
    Observe {
        pool: usize,
        observations: Sender<Observations>,
    },
    /// `done` is sent when they are in force, and dropped if there is no such port.
    ApplyTerms {
        pool: usize,
        terms: PortTerms,
        done: oneshot::Sender<()>,
    },
    /// The time for finishing what is queued is up.
    AbortQueued,
    /// The thread ends, and with it every connection.
    Stop,
}

impl Shard {
    /// Carries out a command. Returns the connection that it made, which needs a task.
    pub(super) fn handle_command(&mut self, command: Command) -> Option<ConnectionId> {
        match command {
            Command::Connect(new) => return self.connect(new),
            Command::AddPool { name, config, ports, recorder, answer } => {
                let _ = answer.send(self.add_pool(name, config, ports, recorder));
            }
            Command::SetPool { pool, config } => {
                let now = self.clock.now();
                let pool = &mut self.pools[pool];
                pool.engine.set_config(now, config);
                pool.control = config.control;
                pool.forget_allocations();
                pool.in_flight_peak = None;
                pool.dirty = true;
                for volume in pool.volumes.iter().flatten().filter(|volume| volume.retiring.is_none()) {
                    self.memory.set_volume(volume.owner, &pool.control, &volume.config);
                }
            }
            Command::ClosePool { pool } => self.close_pool(pool),
            Command::AddVolume { pool, volume, answer } => {
                let _ = answer.send(self.add_volume(pool, *volume));
            }
            Command::SetVolume { pool, volume, config, faults } => {
                self.set_volume(pool, volume, config, faults)
            }
            Command::RemoveVolume { pool, volume, done } => self.retire(pool, volume, done),
            Command::SetLimits { limits, budget } => {
                self.limits = limits;
                self.memory.set_limits(&limits, budget);
            }
            Command::Status { answer } => {
                let _ = answer.send(self.status());
            }
            Command::Explain { pool, volume, answer } => {
                let _ = answer.send(self.explain(pool, volume));
            }
            Command::Observe { pool, observations } => self.observe(pool, observations),
            Command::ApplyTerms { pool, terms, done } => self.apply_terms(pool, &terms, done),
            Command::AbortQueued => self.abort_all_queued(),
            Command::Stop => {} // the loop that receives commands sees to it
        }
        self.wake_driver();
        None
    }

    fn add_pool(
        &mut self,
        name: String,
        config: EngineConfig,
        ports: Vec<String>,
        recorder: Option<Box<dyn Recorder + Send>>,
    ) -> usize {
        let now = self.clock.now();
        let engine = match recorder {
            Some(recorder) => Engine::with_recorder(now, config, recorder),
            None => Engine::new(now, config),
        };
        self.pools.insert(Pool {
            name,
            control: config.control,
            engine,
            ports,
            observer: None,
            volumes: Vec::new(),
            first_ports: Vec::new(),
            timed: Vec::new(),
            leaving: Vec::new(),
            pending: SlotChains::new(),
            orphans: Chain::EMPTY,
            in_flight_peak: None,
            dirty: false,
            quota: Quota::of_a_turn(),
            closing: false,
        })
    }

    fn close_pool(&mut self, pool: usize) {
        self.pools[pool].closing = true;
        if self.pools[pool].volumes.iter().all(Option::is_none) {
            self.pools.remove(pool);
        }
    }

    fn add_volume(&mut self, pool: usize, new: NewVolume) -> VolumeId {
        let device = new.opened.attach(&mut self.attach, new.faults);
        let owner = self.memory.add_volume(&self.pools[pool].control, &new.config);
        let now = self.clock.now();
        let pool = &mut self.pools[pool];
        let id = pool.engine.add_volume(now, new.config.clone());
        let index = id.0 as usize;
        if pool.volumes.len() <= index {
            pool.volumes.resize_with(index + 1, || None);
        }
        let ports = pool.add_ports(now, id);
        let losses = self.estate.take(&new.name);
        let mut volume = Volume {
            name: new.name,
            device,
            ports,
            stats: VolumeStats::new(),
            closed: Vec::new(),
            config: new.config,
            owner,
            intervals: Intervals::default(),
            timed: false,
            unflushed: Unflushed::default(),
            retiring: None,
            error_logged: None,
            losses,
            loss_logged: None,
        };
        if volume.keeps_time() {
            pool.timed.push(id);
        }
        pool.volumes[index] = Some(volume);
        id
    }

    fn set_volume(&mut self, pool: usize, volume: VolumeId, config: VolumeConfig, faults: Vec<FaultRule>) {
        let now = self.clock.now();
        let pool = &mut self.pools[pool];
        pool.engine.set_volume(now, volume, config.clone());
        pool.dirty = true;
        let id = volume;
        self.memory.set_volume(pool.volume(id).owner, &pool.control, &config);
        let volume = pool.volume(id);
        volume.config = config;
        volume.device.set_faults(now, faults, &mut self.finished);
        if !volume.timed && volume.keeps_time() {
            pool.timed.push(id);
        }
    }

    fn status(&self) -> Vec<PoolStatus> {
        let stays = |pool: &Pool| !pool.closing;
        self.pools.iter().map(|(_, pool)| pool).filter(|pool| stays(pool)).map(pool_status).collect()
    }
}

fn pool_status(pool: &Pool) -> PoolStatus {
    let seen = pool.engine.snapshot();
    let mut volumes: Vec<_> = pool
        .volume_ids()
        .into_iter()
        .filter_map(|id| {
            // One that is on its way out may have a successor of the same name already.
            let volume = pool.volumes[id.0 as usize].as_ref().filter(|volume| volume.retiring.is_none())?;
            Some(volume_status(volume, pool.engine.target(id), pool.sharing_of(id)))
        })
        .collect();
    volumes.sort_by(|a, b| a.name.cmp(&b.name));
    PoolStatus {
        name: pool.name.clone(),
        control: pool.control_name().to_owned(),
        depth_target: seen.depth_target.map(weir_model::QueueDepth::get),
        in_flight: seen.in_flight,
        in_flight_peak: pool.in_flight_peak,
        queued: seen.queued,
        sharing: pool.sharing(),
        volumes,
    }
}

fn volume_status(
    volume: &Volume,
    target: Option<weir_model::Span>,
    sharing: Option<VolumeSharing>,
) -> VolumeStatus {
    VolumeStatus {
        name: volume.name.clone(),
        size_bytes: weir_backend::BlockDevice::properties(&volume.device).size,
        has_slo: volume.config.slo.is_some(),
        slo_target_us: target.map(weir_model::Span::as_micros),
        requests: volume.stats.requests(),
        latency: volume.stats.latency(),
        windows: volume.stats.windows(),
        last_window: volume.stats.last_window(),
        sharing,
    }
}
