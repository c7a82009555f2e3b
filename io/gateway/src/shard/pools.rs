//! The pools of a shard, and the two things that their volumes share. One is the reactor that drives the
//! devices. The other is the store of losses that a volume leaves to a later volume of its name.

use std::collections::VecDeque;

use slab::Slab;
use weir_backend::{Attach, Buffer, Finished, Reactor};
use weir_engine::{EngineConfig, Recorder};
use weir_model::{Instant, VolumeId};
use weir_nbd::Command;
use weir_status::PoolStatus;

use super::clients::Clients;
use super::command::NewVolume;
use super::driver::Driver;
use super::memory::Memory;
use super::pieces::{Piece, Unfinished};
use super::pool::Pool;
use super::token::{Named, named};
use crate::budget::Charge;
use crate::connection::Connection;
use crate::loss::Estate;

/// The message of a panic when a pool is missing. Commands name only pools that exist, and a pool stays while
/// it has a volume.
const STAYS: &str = "a pool stays until its last volume has ended";

/// The pools of a shard.
pub(super) struct Pools {
    pools: Slab<Pool>,
    /// Requests whose next piece begins in the next turn.
    unfinished: VecDeque<Unfinished>,
    attach: Attach,
    /// The losses that clients of removed volumes are still to be told of.
    estate: Estate,
}

/// Pools and volumes.
impl Pools {
    /// A shard's pools, none as yet, for a thread with this reactor.
    pub(super) fn new(reactor: Reactor, estate: Estate) -> Self {
        Self { pools: Slab::new(), unfinished: VecDeque::new(), attach: Attach::new(reactor), estate }
    }

    /// Adds a pool; returns its key.
    pub(super) fn add(
        &mut self,
        now: Instant,
        name: String,
        config: EngineConfig,
        ports: Vec<String>,
        recorder: Option<Box<dyn Recorder + Send>>,
    ) -> usize {
        let entry = self.pools.vacant_entry();
        let key = entry.key();
        entry.insert(Pool::new(now, key, name, config, ports, recorder));
        key
    }

    /// The pool, unless it is gone.
    pub(super) fn get(&self, key: usize) -> Option<&Pool> {
        self.pools.get(key)
    }

    /// The pool to change, unless it is gone.
    #[inline]
    pub(super) fn get_mut(&mut self, key: usize) -> Option<&mut Pool> {
        self.pools.get_mut(key)
    }

    /// The pool, which must be there.
    ///
    /// # Panics
    /// If it is gone.
    #[inline]
    pub(super) fn pool(&mut self, key: usize) -> &mut Pool {
        self.pools.get_mut(key).expect(STAYS)
    }

    /// Marks a pool to be removed with its last volume.
    pub(super) fn close(&mut self, key: usize) {
        self.pool(key).close();
        self.remove_if_over(key);
    }

    /// Adds a volume to a pool.
    pub(super) fn add_volume(
        &mut self,
        now: Instant,
        key: usize,
        new: NewVolume,
        memory: &mut Memory,
    ) -> VolumeId {
        let NewVolume { name, opened, config, goal, faults } = new;
        let device = opened.attach(&mut self.attach, faults);
        let losses = self.estate.take(&name);
        self.pool(key).add_volume(now, name, device, (config, goal), losses, memory)
    }

    /// The status of each pool.
    pub(super) fn status(&self, now: Instant) -> Vec<PoolStatus> {
        let stay = self.pools.iter().map(|(_, pool)| pool).filter(|pool| !pool.is_closing());
        stay.map(|pool| pool.status(now)).collect()
    }

    fn remove_if_over(&mut self, key: usize) {
        if self.pools.get(key).is_some_and(Pool::is_over) {
            self.pools.remove(key);
        }
    }
}

/// Requests, from a connection to a device and back.
impl Pools {
    /// Gives the connection's engine a piece of a command.
    #[inline]
    pub(super) fn submit(
        &mut self,
        now: Instant,
        connection: &mut Connection,
        command: Command,
        piece: Piece,
        buffer: Option<Buffer>,
        charge: Charge,
    ) {
        self.pool(connection.pool).submit(now, connection, command, piece, buffer, charge);
    }

    /// Sends every request to its device that the engines let go, until the quotas are used up.
    pub(super) fn dispatch(&mut self, now: Instant, memory: &mut Memory, finished: &mut Vec<Finished>) {
        for (_, pool) in &mut self.pools {
            pool.dispatch(now, memory, finished);
        }
    }

    /// Tells an engine that a device has finished a request, and gives the connection its reply.
    #[inline]
    pub(super) fn handle_finished(
        &mut self,
        now: Instant,
        done: Finished,
        clients: &mut Clients,
        memory: &mut Memory,
        driver: &mut Driver,
    ) {
        match named(done.token) {
            Named::Request { pool: key, slot } => {
                let pool = self.pools.get_mut(key).expect(STAYS);
                if let Some((pending, next)) = pool.complete(now, slot, done, clients, memory, driver) {
                    // The next turn begins it, and starts it if the quota lets it.
                    self.unfinished.push_back(Unfinished { pool: key, pending, next });
                    driver.wake();
                }
            }
            Named::LastFlush { pool: key, volume } => {
                let pool = self.pools.get_mut(key).expect(STAYS);
                pool.end_volume(now, volume, done.result, clients, memory, &self.estate);
                self.remove_if_over(key);
            }
        }
    }

    /// Hands over the replies that engines held until now.
    pub(super) fn release(
        &mut self,
        now: Instant,
        clients: &mut Clients,
        memory: &mut Memory,
        driver: &mut Driver,
    ) {
        for (_, pool) in &mut self.pools {
            pool.release(now, clients, memory, driver);
        }
    }

    /// Holds no reply any more: the time that a shutdown may take is over.
    pub(super) fn hold_no_more(&mut self) {
        self.pools.iter_mut().for_each(|(_, pool)| pool.hold_no_more());
    }

    /// Hands over the replies to a connection that its engine holds.
    pub(super) fn release_of(
        &mut self,
        now: Instant,
        connection: &mut Connection,
        memory: &mut Memory,
        driver: &mut Driver,
    ) {
        let Some(pool) = self.pools.get_mut(connection.pool) else { return };
        for held in pool.take_held(connection) {
            pool.answer(now, Some(connection), held, memory, driver);
        }
    }

    /// The next request of which a piece has finished and another is to begin. To the engine, the finished
    /// piece has ended, and the next one is a request of its own.
    pub(super) fn next_unfinished(&mut self, now: Instant) -> Option<Unfinished> {
        let unfinished = self.unfinished.pop_front()?;
        self.pool(unfinished.pool).end_request(now, unfinished.pending.id);
        Some(unfinished)
    }
}

/// A turn.
impl Pools {
    /// Begins a turn: tells the time to the engines and devices that asked for it.
    pub(super) fn handle_timeouts(&mut self, now: Instant, finished: &mut Vec<Finished>) {
        for (_, pool) in &mut self.pools {
            pool.handle_timeout(now, finished);
        }
    }

    /// The next instant at which time alone makes something happen.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.pools.iter().filter_map(|(_, pool)| pool.poll_timeout()).min()
    }

    /// Pulls the engines' events, and begins the last flushes of volumes that have nothing left to answer.
    /// True if a flush has begun.
    pub(super) fn settle(&mut self, now: Instant, finished: &mut Vec<Finished>) -> bool {
        let mut has_flushed = false;
        for (_, pool) in &mut self.pools {
            pool.handle_events(now);
            has_flushed |= pool.flush_leaving(now, finished);
        }
        has_flushed
    }

    /// Whether some pool sends nothing more until the quotas are renewed.
    pub(super) fn have_used_up_a_quota(&self) -> bool {
        self.pools.iter().any(|(_, pool)| pool.has_used_up_its_quota())
    }

    /// Renews the quotas after the thread has looked at its sockets. Returns whether requests may have waited
    /// for this.
    pub(super) fn renew_quotas(&mut self) -> bool {
        self.pools.iter_mut().fold(false, |have, (_, pool)| pool.renew_quota() || have)
    }
}
