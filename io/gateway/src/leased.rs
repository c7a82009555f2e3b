//! A leased pool: its observations go to the controller, and the controller's grants come back.
//!
//! Volumes go by their names here, because the names are the same at all gateways. The numbers of volumes
//! differ between engines.

use tokio::sync::mpsc::{Receiver, UnboundedSender, channel};
use tokio::sync::oneshot;

use crate::shard::{Command, LeaseTerms, Observations};

/// The link to a leased pool.
#[derive(Debug)]
pub struct LeasedPool {
    shard: UnboundedSender<Command>,
    pool: usize,
    observations: Receiver<Observations>,
}

impl LeasedPool {
    pub(crate) fn new(shard: UnboundedSender<Command>, pool: usize) -> Self {
        // One that nobody has taken yet is not worth a second: the next one says more.
        let (sender, observations) = channel(1);
        let _ = shard.send(Command::Observe { pool, observations: sender });
        Self { shard, pool, observations }
    }

    /// The observations of the control interval that ends next; `None`: the pool is gone.
    pub async fn next_observation(&mut self) -> Option<Observations> {
        self.observations.recv().await
    }

    /// Puts terms in force. True: they are in force now. False: the pool is gone.
    pub async fn apply(&self, terms: LeaseTerms) -> bool {
        let (done, applied) = oneshot::channel();
        let _ = self.shard.send(Command::ApplyTerms { pool: self.pool, terms, done });
        applied.await.is_ok()
    }
}
