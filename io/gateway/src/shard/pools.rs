//! The pools of a shard, and what their volumes share: what devices are attached to, and what volumes of the
//! same name leave to each other.

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

/// A pool that is named is there: commands name only pools that exist, and a pool stays while it has a
/// volume.
const STAYS: &str = "a pool stays until its last volume has ended";

/// The pools of a shard.
pub(super) struct Pools {
    pools: Slab<Pool>,
    /// Requests whose next piece begins in the next turn.
    unfinished: VecDeque<Unfinished>,
    attach: Attach,
    /// What volumes that were removed still had to tell.
    estate: Estate,
}

/// Pools and volumes.
impl Pools {
    /// No pools, for a thread with this reactor.
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

    /// The same, to change it.
    #[inline]
    pub(super) fn get_mut(&mut self, key: usize) -> Option<&mut Pool> {
        self.pools.get_mut(key)
    }

    /// The pool, which is there.
    ///
    /// # Panics
    /// If it is gone.
    #[inline]
    pub(super) fn pool(&mut self, key: usize) -> &mut Pool {
        self.pools.get_mut(key).expect(STAYS)
    }

    /// Removes a pool, with its last volume.
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
        let NewVolume { name, opened, config, faults } = new;
        let device = opened.attach(&mut self.attach, faults);
        let losses = self.estate.take(&name);
        self.pool(key).add_volume(now, name, device, config, losses, memory)
    }

    /// How the pools are.
    pub(super) fn status(&self) -> Vec<PoolStatus> {
        let stay = self.pools.iter().map(|(_, pool)| pool).filter(|pool| !pool.is_closing());
        stay.map(Pool::status).collect()
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

    /// Sends to the devices whatever the engines let go, as far as the quotas go.
    pub(super) fn dispatch(&mut self, now: Instant, memory: &mut Memory, finished: &mut Vec<Finished>) {
        for (_, pool) in &mut self.pools {
            pool.dispatch(now, memory, finished);
        }
    }

    /// Gives what a device has finished to its engine, and the reply to its connection.
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
            pool.release(now, clients, memory, driver, &mut self.unfinished);
        }
        if !self.unfinished.is_empty() {
            driver.wake();
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
            if let Some((pending, next)) = pool.answer(now, Some(connection), held, memory, driver) {
                self.unfinished.push_back(Unfinished { pool: connection.pool, pending, next });
                driver.wake();
            }
        }
    }

    /// A request of which a piece has finished. To the engine that piece has ended, and the next is another
    /// request.
    pub(super) fn next_unfinished(&mut self, now: Instant) -> Option<Unfinished> {
        let unfinished = self.unfinished.pop_front()?;
        self.pool(unfinished.pool).end_request(now, unfinished.pending.id);
        Some(unfinished)
    }
}

/// A turn.
impl Pools {
    /// A turn begins: tells engines and devices what time it is, where they asked for it.
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

    /// Whether some pool starts nothing any more until the quotas are renewed.
    pub(super) fn have_used_up_a_quota(&self) -> bool {
        self.pools.iter().any(|(_, pool)| pool.has_used_up_its_quota())
    }

    /// The thread has looked at its sockets. Returns whether there may be requests that waited for this.
    pub(super) fn renew_quotas(&mut self) -> bool {
        self.pools.iter_mut().fold(false, |have, (_, pool)| pool.renew_quota() || have)
    }
}
