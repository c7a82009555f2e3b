//! Waits for what passes by itself, for ten minutes at most.
//!
//! Two things are worth a wait although no node is left now: that an earlier object of the name is removed,
//! and that the one node comes up on which the data of a pipe can go on. Both come soon or not at all, so a
//! transfer that would wait for ever for them ends instead.

use weir_model::{Instant, Span};
use weir_transfer::TransferId;

use super::{Desk, Live};
use crate::catalogue::UnixMs;
use crate::proto::Kind;

/// For how long such a wait lasts at most.
const PATIENCE: Span = Span::from_secs(600);

/// What a transfer waits for that passes by itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Awaited {
    since: Instant,
    /// For people.
    pub(super) why: String,
}

impl Awaited {
    fn is_over(&self, now: Instant) -> bool {
        now.saturating_since(self.since) >= PATIENCE
    }
}

impl Live {
    /// Whether the transfer can go on only on the node on which it has begun: it reads a pipe.
    pub(super) fn is_bound(&self) -> bool {
        self.kind == Kind::Put && self.new.source.is_empty()
    }

    /// What the transfer waits for from now on, if that passes by itself. If it has waited for too long, why
    /// it ends.
    pub(super) fn set_awaited(&mut self, now: Instant, why: Option<String>) -> Option<String> {
        let since = self.awaits.as_ref().map_or(now, |awaited| awaited.since);
        self.awaits = why.map(|why| Awaited { since, why });
        let late = self.awaits.as_ref().filter(|awaited| awaited.is_over(now));
        late.map(|awaited| format!("waited for ten minutes in vain: {}", awaited.why))
    }
}

impl Desk {
    /// Looks again at the transfers that have waited long enough, and at those whose name has become free.
    pub(super) fn look_again(&mut self, now: Instant, unix: UnixMs) {
        let is_late = |live: &Live| live.awaits.as_ref().is_some_and(|awaited| awaited.is_over(now));
        let late = self.live.iter().filter(|(_, live)| is_late(live)).map(|(id, _)| *id);
        self.submit_again(now, unix, late.collect());
        for (node, name) in std::mem::take(&mut self.freed) {
            let Some(node) = self.node(&node) else { continue };
            let could = |id: &u64| {
                self.scheduler.waits_for(TransferId(*id)).is_some_and(|nodes| nodes.contains(node))
            };
            let may =
                |live: &Live| live.node.is_none() && live.new.name == name && live.allowed.contains(node);
            let again = self.live.iter().filter(|(id, live)| may(live) && !could(id)).map(|(id, _)| *id);
            self.submit_again(now, unix, again.collect());
        }
    }
}
