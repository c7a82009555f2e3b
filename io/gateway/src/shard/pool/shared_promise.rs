//! A pool under the law of promises whose device other gateways serve, too: what it tells them of its
//! promises, and what it hears of theirs.

use tokio::sync::watch;
use weir_engine::Standing;
use weir_model::Instant;

use super::Pool;

impl Pool {
    /// From now on, sends to `standings` what the other gateways have to know.
    pub(in crate::shard) fn say_standings(&mut self, standings: watch::Sender<Standing>) {
        self.standings = Some(standings);
    }

    /// The promises of all other gateways stand so.
    pub(in crate::shard) fn hear_others(&mut self, now: Instant, others: Standing) {
        self.engine.handle_standing(now, others);
        self.dirty = true;
    }

    pub(super) fn say_standing(&self, standing: Standing) {
        if let Some(standings) = &self.standings {
            standings.send_replace(standing);
        }
    }
}
