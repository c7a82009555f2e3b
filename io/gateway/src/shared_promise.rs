//! A pool under the law of promises that shares its device with other gateways: what each gateway's law has
//! to know of the others.

use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::watch::{Receiver, channel};
use weir_engine::Standing;

use crate::shard::Command;

/// The link to such a pool.
#[derive(Debug)]
pub struct SharedPool {
    shard: UnboundedSender<Command>,
    pool: usize,
    standings: Receiver<Standing>,
}

impl SharedPool {
    pub(crate) fn new(shard: UnboundedSender<Command>, pool: usize) -> Self {
        let (sender, standings) = channel(Standing::default());
        let _ = shard.send(Command::SayStandings { pool, standings: sender });
        Self { shard, pool, standings }
    }

    /// How the promises of this pool stand, as soon as the other gateways have to know it; `None`: the pool
    /// is gone. Of several standings that nobody has taken yet, the last one counts.
    pub async fn next_standing(&mut self) -> Option<Standing> {
        self.standings.changed().await.ok()?;
        Some(*self.standings.borrow_and_update())
    }

    /// Tells the pool how the promises of all other gateways stand.
    pub fn hear(&self, others: Standing) {
        let _ = self.shard.send(Command::HearOthers { pool: self.pool, others });
    }
}
