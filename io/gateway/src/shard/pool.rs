//! A pool on its shard: an engine, the volumes that the engine decides about, and their requests.
//!
//! | file | what it does |
//! |---|---|
//! | `requests` | a request from its connection to the engine, and from its device to the reply |
//! | `held` | replies that the engine holds |
//! | `dispatch` | requests go to the devices as the engine lets them |
//! | `volumes` | volumes come, change, retire and end |
//! | `unflushed` | whether a volume that ends has anything to flush |
//! | `loss` | changes that may be lost, and how the clients are told |
//! | `ports` | listeners as ports: several volumes of the engine that are one for clients |
//! | `events` | the engine's events for requests and windows; the status of the pool |
//! | `why` | where the time of requests went, and on whose behalf they waited |
//! | `explain` | the decisions of a law that shares out concurrency, and their reasons |
//! | `shared_promise` | what this gateway and the others of an array tell each other of their promises |
//! | `leased` | the observations of a leased pool for its controller, and the controller's terms |

use std::num::NonZeroU64;

use tokio::sync::watch;
use weir_backend::{BlockDevice, Device, Finished};
use weir_engine::{
    Control, Engine, EngineConfig, Recorder, Shortfall, Standing, VolumeConfig, WindowTraffic,
};
use weir_model::{Instant, IoId, SloGoal, Span, VolumeId};
use weir_nbd::Command as NbdCommand;
use weir_sched::{Chain, SlotChains};

use super::command::Observations;
use super::memory::Memory;
use crate::budget::{Charge, OwnerId};
use crate::connection::ConnectionId;
use crate::loss::{Flush, Losses};
use crate::stats::VolumeStats;

mod dispatch;
mod events;
mod explain;
mod held;
mod leased;
mod loss;
mod out_of_reach;
mod ports;
mod requests;
mod shared_promise;
mod unflushed;
mod volumes;
mod why;

use dispatch::Quota;
use explain::Intervals;
use loss::UPSTREAM_LOST;
use unflushed::Unflushed;

/// An error of one volume's device is logged no more often than this; the metrics count all errors.
const ERROR_LOG_PERIOD: Span = Span::from_secs(1);

/// A pool, its volumes and the requests in it.
pub(super) struct Pool {
    /// The pool's number on the shard.
    key: usize,
    name: String,
    control: Control,
    /// How long an SLO window is.
    window: Span,
    engine: Engine,
    /// Gets the observations, if the pool is leased.
    observer: Option<tokio::sync::mpsc::Sender<Observations>>,
    /// Gets what the other gateways have to know, under the law of promises.
    standings: Option<watch::Sender<Standing>>,
    /// The names of the pool's ports, one for each listener; empty if all listeners are one port.
    ports: Vec<String>,
    /// By `VolumeId`. A volume of the engine that is one more port of another volume has no entry of its own.
    volumes: Vec<Option<Volume>>,
    /// By `VolumeId` of the engine: the volume of which it is a port, which may be itself.
    first_ports: Vec<VolumeId>,
    /// The volumes whose device waits for some instant. Most pools have none.
    timed: Vec<VolumeId>,
    /// The volumes that are being removed and have not begun their last flush.
    leaving: Vec<VolumeId>,
    /// By the slot of the `IoId`: the requests that the device has not finished, each in the list of its
    /// connection.
    pending: SlotChains<Pending>,
    /// By the slot of the `IoId`: the requests that the device has finished and whose reply is held, in
    /// another list of their connection.
    held: SlotChains<Completed>,
    /// The requests whose connection has gone.
    orphans: Chain,
    /// The highest number at the device in the last control period.
    in_flight_peak: Option<u32>,
    /// Under the law of promises: the volume that is closest to missing its promise, and how close it is.
    /// Without a number, that volume is behind another gateway.
    worst_off: Option<(Option<VolumeId>, f64)>,
    /// Under the law of promises: nothing is heard of the other gateways of the array.
    others_are_lost: bool,
    /// Under the law of promises: the promise that is missed though nobody is left to be held back.
    out_of_reach: Option<Shortfall<VolumeId>>,
    /// Whether the pool is to be removed with its last volume.
    closing: bool,
    /// Replies are held no more: the server ends.
    hands_over_at_once: bool,
    /// Whether something was submitted, completed or due since the last dispatch, or the quota ended the last
    /// dispatch.
    dirty: bool,
    /// The requests that the devices may still get before the thread looks at its sockets.
    quota: Quota,
}

/// A volume that is served, or is being removed.
struct Volume {
    name: String,
    device: Device,
    /// The engine's volumes for this volume, one for each port of the pool. The first has the volume's
    /// number.
    ports: Vec<VolumeId>,
    stats: VolumeStats,
    /// The windows of its ports that have ended. Empty but for the moment in which they end.
    ended: Vec<WindowTraffic>,
    /// The volume's promise and limits.
    config: VolumeConfig,
    /// The share of windows in which the promise is to be kept.
    goal: SloGoal,
    /// The number that the budget has for the volume.
    owner: OwnerId,
    /// The last control intervals of a law that shares out concurrency.
    intervals: Intervals,
    /// Whether the volume is in the pool's list of volumes whose device waits for some instant.
    timed: bool,
    /// Tells whether the last flush has anything to do.
    unflushed: Unflushed,
    /// Set once the volume is being removed.
    retiring: Option<Retiring>,
    /// When an error of the device was last logged; the counters have all errors.
    error_logged: Option<Instant>,
    /// The changes that may be lost, and the clients that were told.
    losses: Losses,
    loss_logged: Option<Instant>,
}

/// The removal of a volume: it finishes the requests that it accepted, flushes, and is gone.
#[derive(Default)]
struct Retiring {
    done: Vec<tokio::sync::oneshot::Sender<()>>,
}

/// The gateway's entry for a request that the engine has.
pub(super) struct Pending {
    pub(super) id: IoId,
    pub(super) connection: ConnectionId,
    volume: VolumeId,
    pub(super) command: NbdCommand,
    /// Set for a flush. In a box, because the table of these entries is on the path of each read and write.
    flush: Option<Box<Flush>>,
    /// Bytes of the command behind the piece that the engine has.
    left: u32,
    /// The data of a write, until the write is dispatched.
    pub(super) buffer: Option<weir_backend::Buffer>,
    pub(super) charge: Charge,
}

/// A request that its device has finished, and what is to be told to its client.
pub(super) struct Completed {
    pub(super) pending: Pending,
    done: Finished,
    /// Up to which loss of the volume the reply tells, if it does.
    tells: Option<NonZeroU64>,
}

impl Pool {
    /// A pool without volumes.
    pub(super) fn new(
        now: Instant,
        key: usize,
        name: String,
        config: EngineConfig,
        ports: Vec<String>,
        recorder: Option<Box<dyn Recorder + Send>>,
    ) -> Self {
        let (control, window) = (config.control, config.slo_window);
        let engine = match recorder {
            Some(recorder) => Engine::with_recorder(now, config, recorder),
            None => Engine::new(now, config),
        };
        Self {
            key,
            name,
            control,
            window,
            engine,
            ports,
            observer: None,
            volumes: Vec::new(),
            first_ports: Vec::new(),
            timed: Vec::new(),
            leaving: Vec::new(),
            pending: SlotChains::new(),
            held: SlotChains::new(),
            orphans: Chain::EMPTY,
            in_flight_peak: None,
            worst_off: None,
            others_are_lost: false,
            standings: None,
            out_of_reach: None,
            dirty: false,
            quota: Quota::FULL,
            closing: false,
            hands_over_at_once: false,
        }
    }

    /// Replaces the law, or the numbers of the law.
    pub(super) fn set_config(&mut self, now: Instant, config: EngineConfig, memory: &mut Memory) {
        self.control = config.control;
        self.window = config.slo_window;
        self.engine.set_config(now, config);
        self.forget_allocations();
        self.in_flight_peak = None;
        self.worst_off = None;
        self.others_are_lost = false;
        self.out_of_reach = None;
        self.dirty = true;
        for volume in self.volumes.iter().flatten().filter(|volume| volume.retiring.is_none()) {
            memory.set_volume(volume.owner, &self.control, &volume.config);
        }
    }

    /// Marks the pool to be removed with its last volume.
    pub(super) fn close(&mut self) {
        self.closing = true;
    }

    /// Whether the pool is to be removed with its last volume.
    pub(super) const fn is_closing(&self) -> bool {
        self.closing
    }

    /// Whether the pool is to be removed now.
    pub(super) fn is_over(&self) -> bool {
        self.closing && self.volumes.iter().all(Option::is_none)
    }

    /// Begins a turn: tells the time to the engine and the devices that asked for it.
    pub(super) fn handle_timeout(&mut self, now: Instant, finished: &mut Vec<Finished>) {
        if self.engine.poll_timeout().is_some_and(|due| due <= now) {
            self.engine.handle_timeout(now);
            self.dirty = true;
        }
        let volumes = &mut self.volumes;
        self.timed.retain(|id| {
            volumes[id.0 as usize].as_mut().is_some_and(|volume| {
                volume.device.poll_finished(now, finished);
                if volume.device.take_loss() {
                    volume.note_loss(now, UPSTREAM_LOST);
                }
                volume.keeps_time()
            })
        });
    }

    /// The next instant at which time alone makes something happen.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let timed = self.timed.iter().filter_map(|id| self.volumes[id.0 as usize].as_ref());
        timed.filter_map(|volume| volume.device.poll_timeout()).chain(self.engine.poll_timeout()).min()
    }

    /// Puts a volume on the list `timed`, if its device waits for some instant.
    fn keep_time(&mut self, id: VolumeId) {
        let volume = self.volume(id);
        if !volume.timed && volume.keeps_time() {
            self.timed.push(id);
        }
    }

    fn volume(&mut self, id: VolumeId) -> &mut Volume {
        self.volumes[id.0 as usize].as_mut().expect("requests are only made of volumes that exist")
    }
}

impl Volume {
    /// Whether the device waits for some instant; notes the answer.
    fn keeps_time(&mut self) -> bool {
        self.timed = self.device.poll_timeout().is_some();
        self.timed
    }
}
