//! A shard: one thread with its runtime, its reactor, its pools and the connections to their volumes.
//!
//! Everything of a pool lives on one thread, so that nothing on the path of a request is shared, locked or
//! sent over a channel. Each connection has a task that reads and parses. Another task, the driver, does the
//! rest in turns. In a turn it waits for one event, hands the event to the engines, and drains everything
//! that they have to say. The driver works in batches: a turn has one submission to the reactor, and one
//! `writev` for each connection.
//!
//! A shard is made of parts. Each part keeps its fields to itself; a method that needs two parts takes the
//! other as an argument. The files of this folder that are no part use all parts.
//!
//! | file | what it does |
//! |---|---|
//! | `clients` | part: connections, their requests and their replies |
//! | `pools`, `pool` | part: engines, volumes, devices, and the requests that they have |
//! | `memory` | part: buffers for data, and the budget of each volume |
//! | `driver` | part: the work for the next turn, and the way to wake the driver |
//! | `turn` | the driver's turn: completions, dispatch, submission, replies; renews the quotas |
//! | `pieces` | long requests without data, a piece at a time |
//! | `command` | the commands of the gateway's handle to a shard |
//! | `token` | the names of requests at the reactor and the devices |
//! | `thread` | starts the thread and its tasks |

use std::rc::Rc;
use std::task::{Context, Poll};

use tokio::sync::Notify;
use weir_backend::{Finished, Reactor};
use weir_clock::{Alarm, Clock};

use crate::connection::ConnectionId;
use crate::loss::Estate;
use crate::spec::Limits;

mod clients;
mod command;
mod driver;
mod memory;
mod pieces;
mod pool;
mod pools;
mod thread;
mod token;
mod turn;

use clients::Clients;
use driver::Driver;
use memory::Memory;
use pools::Pools;

pub(crate) use command::{Command, NewConnection, NewVolume};
pub use command::{LeaseTerms, Observations};
pub use thread::ShardError;
pub(crate) use thread::ShardHandle;

/// The state of one shard. Its tasks take turns in borrowing it and never hold it while they wait.
pub(crate) struct Shard {
    clock: Clock,
    alarm: Alarm,
    reactor: Reactor,
    /// The memory. It stands before the parts that hold its charges.
    memory: Memory,
    clients: Clients,
    pools: Pools,
    driver: Driver,
    /// The requests that the devices have finished. It is empty but for a part of a turn.
    finished: Vec<Finished>,
    /// Whether the time of a shutdown is over: no request is begun any more.
    gives_up: bool,
    /// Wakes the task that renews the quotas.
    quota_used_up: Rc<Notify>,
}

impl Shard {
    fn new(
        clock: Clock,
        alarm: Alarm,
        reactor: Reactor,
        limits: &Limits,
        budget: u64,
        estate: Estate,
    ) -> Self {
        Self {
            clock,
            alarm,
            reactor: reactor.clone(),
            memory: Memory::new(limits, budget),
            clients: Clients::new(limits),
            pools: Pools::new(reactor, estate),
            driver: Driver::new(),
            finished: Vec::new(),
            gives_up: false,
            quota_used_up: Rc::default(),
        }
    }

    /// Drives one connection as far as it goes without waiting; ready when the connection is gone.
    fn poll_connection(&mut self, cx: &mut Context<'_>, id: ConnectionId) -> Poll<()> {
        let Self { clock, clients, pools, memory, driver, .. } = self;
        clients.poll_connection(cx, id, *clock, pools, memory, driver)
    }
}
