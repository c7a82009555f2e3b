//! A shard: one thread with its runtime, its reactor, its pools and the connections to their volumes.
//!
//! Everything of a pool lives on one thread, so that nothing on the path of a request is shared, locked or
//! sent over a channel. One task for each connection reads and parses. One task, the driver, does the rest in
//! turns: it waits for one event, hands it to the engines, drains everything that they have to say, and
//! repeats. The driver does once for all what a turn makes possible: one submission to the reactor, one
//! `writev` for each connection.
//!
//! A shard is made of parts. Each part keeps its fields to itself; a method that needs two parts takes the
//! other as an argument. The files of this folder that are no
//! part use all of them.
//!
//! | file | what it does |
//! |---|---|
//! | `clients` | part: connections, what they send and what they get |
//! | `pools`, `pool` | part: engines, volumes, devices, and the requests that they have |
//! | `memory` | part: buffers for data, and the budget of each volume |
//! | `driver` | part: what is to do in the next turn, and the way to wake the driver |
//! | `turn` | the driver's turn: completions, dispatch, submission, replies; renews the quotas |
//! | `pieces` | long requests without data, a piece at a time |
//! | `command` | what the gateway's handle asks of a shard |
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

/// The state of one shard; its tasks take turns in borrowing it and never hold it while they wait.
pub(crate) struct Shard {
    clock: Clock,
    alarm: Alarm,
    reactor: Reactor,
    /// Before the parts that hold charges, which are owed to it.
    memory: Memory,
    clients: Clients,
    pools: Pools,
    driver: Driver,
    /// What the devices have finished; empty but for a part of a turn.
    finished: Vec<Finished>,
    /// Nothing is begun any more: the time that a shutdown may take is over.
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

    /// Drives one connection as far as it goes without waiting; ready when it is gone.
    fn poll_connection(&mut self, cx: &mut Context<'_>, id: ConnectionId) -> Poll<()> {
        let Self { clock, clients, pools, memory, driver, .. } = self;
        clients.poll_connection(cx, id, *clock, pools, memory, driver)
    }
}
