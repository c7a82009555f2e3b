//! A shard: one thread with its runtime, its reactor, its pools and the connections to their volumes.
//!
//! Everything of a pool lives on one thread, so that nothing on the path of a request is shared, locked or
//! sent over a channel. One task for each connection reads and parses; one task, the driver, does the rest in
//! turns: wait for one event, hand it to the engines, drain everything that they have to say, repeat. What a
//! turn makes possible is done once for all of it: one submission to the reactor, one `writev` for each
//! connection.
//!
//! | file | what it does |
//! |---|---|
//! | `receive` | bytes from a socket to requests in an engine |
//! | `pieces` | long requests without data, a piece at a time |
//! | `turn` | the driver's turn: completions, dispatch, submission, replies |
//! | `lifecycle` | connections come and go; volumes retire |
//! | `loss` | changes that may be lost, and who is told |
//! | `memory` | buffers for data, and the budget that says who may hold how much |
//! | `command` | what the gateway's handle asks of a shard |
//! | `ports` | where listeners are ports: several volumes of the engine that are one |
//! | `explain` | what a law that shares out concurrency decided, and why |
//! | `thread` | starts the thread and its tasks |
//! | `unflushed` | whether a volume that ends has anything to flush |

use std::task::Waker;

use slab::Slab;
use weir_backend::{Attach, BlockDevice, Device, Finished, Reactor, Token};
use weir_clock::{Alarm, Clock};
use weir_engine::{Control, Engine, VolumeConfig, WindowReport};
use weir_model::{Instant, IoId, Span, VolumeId};
use weir_nbd::Command as NbdCommand;
use weir_sched::{Chain, SlotChains};

use crate::budget::{Charge, OwnerId};
use crate::connection::{Connection, ConnectionId};
use crate::loss::{Estate, Flush, Losses};
use crate::output::Reply;
use crate::spec::Limits;
use crate::stats::VolumeStats;

mod command;
mod explain;
mod lifecycle;
mod loss;
mod memory;
mod pieces;
mod port;
mod ports;
mod receive;
mod thread;
mod turn;
mod unflushed;

use explain::Intervals;
use memory::Memory;
use pieces::Unfinished;
use turn::Quota;
use unflushed::Unflushed;

pub(crate) use command::{Command, NewConnection, NewVolume};
pub use thread::ShardError;
pub(crate) use thread::ShardHandle;

/// Bytes read from a socket at a time. One buffer for all connections of the shard, so that an idle one holds
/// none; large enough that a burst of small requests is one system call.
const SCRATCH: usize = 256 * 1024;

/// How often connections are looked over for clients that take no replies or do not close.
const SWEEP_PERIOD: Span = Span::from_secs(1);

/// How long a connection that is over waits for the client to close its side.
const LINGER: Span = Span::from_secs(2);

/// The state of one shard; its tasks take turns in borrowing it and never hold it while they wait.
pub(crate) struct Shard {
    clock: Clock,
    alarm: Alarm,
    reactor: Reactor,
    attach: Attach,
    /// Before all that holds charges, which are owed to it.
    memory: Memory,
    limits: Limits,
    pools: Slab<Pool>,
    connections: Slab<Connection>,
    next_serial: u64,
    scratch: Vec<u8>,
    /// Connections that wait for their clients.
    watched: Vec<ConnectionId>,
    next_sweep: Instant,
    driver: Option<Waker>,
    driver_woken: bool,
    /// Connections whose output is flushed at the end of the turn.
    touched: Vec<usize>,
    finished: Vec<Finished>,
    /// Replies that one connection has written to their end; empty but for that moment.
    ended: Vec<Reply>,
    /// What volumes that were removed still had to tell.
    estate: Estate,
    /// Requests whose next piece begins in the next turn.
    unfinished: Vec<Unfinished>,
    /// Nothing is begun any more: the time that a shutdown may take is over.
    gives_up: bool,
}

/// A pool, its volumes and the requests in it.
struct Pool {
    name: String,
    control: Control,
    engine: Engine,
    /// Who is told what was seen, if it is a port of an array.
    observer: Option<tokio::sync::mpsc::Sender<crate::port::Observations>>,
    /// The names of its ports, one for each listener; none if all listeners are one port.
    ports: Vec<String>,
    /// By `VolumeId`; a volume of the engine that is one more port of another is part of that one.
    volumes: Vec<Option<Volume>>,
    /// By `VolumeId` of the engine: the volume that it is, or is one more port of.
    first_ports: Vec<VolumeId>,
    /// The volumes whose device waits for some instant: most pools have none.
    timed: Vec<VolumeId>,
    /// The volumes on their way out that have not begun their last flush.
    leaving: Vec<VolumeId>,
    /// By the slot of the `IoId`: the requests that the device has not finished, in the list of their
    /// connection.
    pending: SlotChains<Pending>,
    /// Those whose connection has gone.
    orphans: Chain,
    /// The highest number at the device in the last control period.
    in_flight_peak: Option<u32>,
    /// To be removed with its last volume.
    closing: bool,
    /// Something was submitted, completed or due since the last dispatch, or the quota did not do for all.
    dirty: bool,
    /// What the devices may still get in this turn.
    quota: Quota,
}

/// A volume that is served, or on its way out.
struct Volume {
    name: String,
    device: Device,
    /// The engine's volumes that it is, one for each port of the pool; the first has its number.
    ports: Vec<VolumeId>,
    stats: VolumeStats,
    /// The windows of its ports that have ended; empty but for the moment in which they do.
    closed: Vec<WindowReport>,
    /// What it was promised, and its limits.
    config: VolumeConfig,
    /// What it is to the budget.
    owner: OwnerId,
    /// The last control intervals of a law that shares out concurrency.
    intervals: Intervals,
    /// In the pool's list of volumes whose device waits for some instant.
    timed: bool,
    /// Whether its last flush has anything to do.
    unflushed: Unflushed,
    /// Set once the volume is to be removed.
    retiring: Option<Retiring>,
    /// When an error of the device was last logged; the counters have them all.
    error_logged: Option<Instant>,
    /// Changes that may be lost, and who was told.
    losses: Losses,
    loss_logged: Option<Instant>,
}

/// A volume on its way out: it finishes what it accepted, flushes, and is gone.
#[derive(Default)]
struct Retiring {
    done: Vec<tokio::sync::oneshot::Sender<()>>,
}

/// What the gateway knows of a request that the engine has.
struct Pending {
    id: IoId,
    connection: ConnectionId,
    volume: VolumeId,
    command: NbdCommand,
    /// If it is a flush; apart, as the table of such entries is on the path of each read and write.
    flush: Option<Box<Flush>>,
    /// Bytes of the command behind the piece that the engine has.
    left: u32,
    /// The data of a write until it is dispatched.
    buffer: Option<weir_backend::Buffer>,
    charge: Charge,
}

/// A request's name at the reactor and the devices: its pool and its slot.
fn request_token(pool: usize, slot: u32) -> Token {
    Token((pool as u64) << 32 | u64::from(slot))
}

/// The name of a volume's last flush. The top bit tells it from requests.
fn last_flush_token(pool: usize, volume: VolumeId) -> Token {
    Token(LAST_FLUSH | (pool as u64) << 32 | u64::from(volume.0))
}

const LAST_FLUSH: u64 = 1 << 63;

/// What a token names.
enum Named {
    Request { pool: usize, slot: u32 },
    LastFlush { pool: usize, volume: VolumeId },
}

#[allow(clippy::cast_possible_truncation)] // takes apart what the two functions above put together
fn named(token: Token) -> Named {
    let (pool, low) = ((token.0 >> 32) as usize & 0x7fff_ffff, token.0 as u32);
    if token.0 & LAST_FLUSH == 0 {
        Named::Request { pool, slot: low }
    } else {
        Named::LastFlush { pool, volume: VolumeId(low) }
    }
}

impl Shard {
    fn new(
        clock: Clock,
        alarm: Alarm,
        reactor: Reactor,
        limits: Limits,
        budget: u64,
        estate: Estate,
    ) -> Self {
        Self {
            clock,
            alarm,
            attach: Attach::new(reactor.clone()),
            reactor,
            memory: Memory::new(&limits, budget),
            limits,
            pools: Slab::new(),
            connections: Slab::new(),
            next_serial: 0,
            scratch: vec![0; SCRATCH],
            watched: Vec::new(),
            next_sweep: Instant::FAR_FUTURE,
            driver: None,
            driver_woken: false,
            touched: Vec::new(),
            finished: Vec::new(),
            ended: Vec::new(),
            estate,
            unfinished: Vec::new(),
            gives_up: false,
        }
    }

    /// Makes the driver take a turn after the tasks that are ready now.
    fn wake_driver(&mut self) {
        if let Some(waker) = self.driver.as_ref().filter(|_| !self.driver_woken) {
            waker.wake_by_ref();
            self.driver_woken = true;
        }
    }

    /// The connection, unless it is gone.
    fn connection(&mut self, id: ConnectionId) -> Option<&mut Connection> {
        self.connections.get_mut(id.key).filter(|connection| connection.id == id)
    }

    /// Notes that the connection has something to write.
    fn touch(&mut self, key: usize) {
        self.connections[key].touch(&mut self.touched);
    }
}

impl Volume {
    /// Whether the device waits for some instant; notes the answer.
    fn keeps_time(&mut self) -> bool {
        self.timed = self.device.poll_timeout().is_some();
        self.timed
    }
}

impl Pool {
    fn volume(&mut self, id: VolumeId) -> &mut Volume {
        self.volumes[id.0 as usize].as_mut().expect("requests are only made of volumes that exist")
    }

    /// The ids of the volumes that exist.
    fn volume_ids(&self) -> Vec<VolumeId> {
        let exists = |(_, volume): &(u32, &Option<Volume>)| volume.is_some();
        (0..).zip(&self.volumes).filter(exists).map(|(id, _)| VolumeId(id)).collect()
    }
}
