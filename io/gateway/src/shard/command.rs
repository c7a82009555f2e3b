//! Commands of the gateway's handle to a shard. Commands are rare; requests never come this way.

use std::collections::BTreeMap;

use tokio::sync::mpsc::Sender;
use tokio::sync::{oneshot, watch};
use weir_backend::{FaultRule, Opened};
use weir_control::{Grant, PortObservation};
use weir_engine::{EngineConfig, Recorder, Standing, VolumeConfig};
use weir_model::{Instant, SloGoal, Span, VolumeId};
use weir_nbd::Session;
use weir_status::{Explanation, PoolStatus, Why};

use super::Shard;
use crate::connection::ConnectionId;
use crate::front::Permit;
use crate::spec::Limits;
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
    /// The number of the listener that the connection came through.
    pub(crate) listener: usize,
    pub(crate) permit: Permit,
}

/// A volume whose backend is open.
pub(crate) struct NewVolume {
    pub(crate) name: String,
    pub(crate) opened: Opened,
    pub(crate) config: VolumeConfig,
    pub(crate) goal: SloGoal,
    pub(crate) faults: Vec<FaultRule>,
}

/// The observations of each volume in a control interval.
pub type Observations = Vec<(String, PortObservation)>;

/// The bounds of the volumes of a leased pool.
#[derive(Clone, PartialEq, Debug)]
pub struct LeaseTerms {
    /// The instant until which `volumes` hold.
    pub until: Instant,
    /// The bounds of each volume until then.
    pub volumes: BTreeMap<String, Grant>,
    /// The bounds of each volume from then on. A volume that is not named may have one request at a time.
    pub after: BTreeMap<String, Grant>,
}

/// One command to a shard, with the way back for its answer.
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
        goal: SloGoal,
        faults: Vec<FaultRule>,
    },
    /// The shard sends `done` when the volume is flushed and closed.
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
    Why {
        pool: usize,
        volume: VolumeId,
        last: Span,
        answer: oneshot::Sender<Option<Why>>,
    },
    /// From now on, the shard sends the observations of a leased pool to `observations`.
    Observe {
        pool: usize,
        observations: Sender<Observations>,
    },
    /// The shard sends `done` when the terms are in force, and drops it if there is no such leased pool.
    ApplyTerms {
        pool: usize,
        terms: LeaseTerms,
        done: oneshot::Sender<()>,
    },
    /// From now on, the shard sends `standings` how the promises of a pool stand, whenever its law has news
    /// for other gateways.
    SayStandings {
        pool: usize,
        standings: watch::Sender<Standing>,
    },
    /// How the promises of all other gateways stand.
    HearOthers {
        pool: usize,
        others: Standing,
    },
    /// The time for finishing queued requests is up.
    AbortQueued,
    /// The thread ends, and with it every connection.
    Stop,
}

impl Shard {
    /// Carries out a command. Returns the connection that it made, if any, which needs a task.
    pub(super) fn handle_command(&mut self, command: Command) -> Option<ConnectionId> {
        let now = self.clock.now();
        let Self { pools, memory, finished, .. } = self;
        let mut connected = None;
        match command {
            Command::Connect(new) => connected = self.clients.connect(new, pools, memory),
            Command::AddPool { name, config, ports, recorder, answer } => {
                let _ = answer.send(pools.add(now, name, config, ports, recorder));
            }
            Command::SetPool { pool, config } => pools.pool(pool).set_config(now, config, memory),
            Command::ClosePool { pool } => pools.close(pool),
            Command::AddVolume { pool, volume, answer } => {
                let _ = answer.send(pools.add_volume(now, pool, *volume, memory));
            }
            Command::SetVolume { pool, volume, config, goal, faults } => {
                pools.pool(pool).set_volume(now, volume, (config, goal), faults, memory, finished);
            }
            Command::RemoveVolume { pool, volume, done } => self.retire(now, pool, volume, done),
            Command::SetLimits { limits, budget } => {
                self.clients.set_limits(&limits);
                memory.set_limits(&limits, budget);
            }
            Command::Status { answer } => {
                let _ = answer.send(pools.status(now));
            }
            Command::Explain { pool, volume, answer } => {
                let _ = answer.send(pools.get(pool).and_then(|pool| pool.explain(now, volume)));
            }
            Command::Why { pool, volume, last, answer } => {
                let _ = answer.send(pools.get(pool).and_then(|pool| pool.why(now, volume, last)));
            }
            Command::Observe { pool, observations } => {
                if let Some(pool) = pools.get_mut(pool) {
                    pool.observe(observations);
                }
            }
            Command::ApplyTerms { pool, terms, done } => {
                if let Some(pool) = pools.get_mut(pool) {
                    pool.apply_terms(now, &terms, done);
                }
            }
            Command::SayStandings { pool, standings } => {
                if let Some(pool) = pools.get_mut(pool) {
                    pool.say_standings(standings);
                }
            }
            Command::HearOthers { pool, others } => {
                if let Some(pool) = pools.get_mut(pool) {
                    pool.hear_others(now, others);
                }
            }
            Command::AbortQueued => self.abort_all_queued(),
            Command::Stop => {} // the loop that receives commands sees to it
        }
        self.driver.wake();
        connected
    }

    /// Begins the removal of a volume: requests accepted so far are finished and answered, later requests are
    /// refused.
    fn retire(&mut self, now: Instant, pool: usize, volume: VolumeId, done: oneshot::Sender<()>) {
        let Self { clients, pools, memory, driver, .. } = self;
        let Some(owner) = pools.get_mut(pool).and_then(|pool| pool.retire(volume, done)) else { return };
        memory.retire_volume(owner);
        for key in memory.connections_of(owner) {
            clients.retire(now, key, pools, memory, driver);
        }
    }

    /// Gives up every request that is still queued.
    fn abort_all_queued(&mut self) {
        self.gives_up = true;
        self.pools.hold_no_more();
        let Self { clock, clients, pools, memory, driver, .. } = self;
        for key in clients.keys() {
            clients.give_up(*clock, key, pools, memory, driver);
        }
    }
}
