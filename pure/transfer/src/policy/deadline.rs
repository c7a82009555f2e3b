//! `deadline`: as many transfers as a node serves in time, and no more than raise its rate. Not from the paper.
//!
//! **Problem.** SM-R3 fills a node until each share is near the rate that is asked for. A node that does less
//! in sum with many transfers than with some then works below its best. Example: a node gives 10 transfers
//! 246 MB/s in sum, and 19 transfers 208 MB/s. SM-R3 with 10 MB/s each goes on to 19. All keep their rate, but
//! everybody is done later.
//!
//! **Rule.** The policy remembers which rate a node reached in sum with each number of transfers, and predicts
//! the rate with one more. The transfer starts if both hold:
//!
//! ```text
//! predicted > MARGIN (needed + asked)      all of them keep their rate
//! predicted > RAISES reached               the node does more than before
//! ```
//!
//! `needed` is what the transfers of the node still need, in sum. A transfer that was faster than it asked for
//! needs less from then on, so what it reserved is free for others. A transfer with a deadline asks for its
//! rate, or for more if only that takes it there in time.
//!
//! - **Patience.** The second condition makes a transfer wait although its rate could be had. It ends once the
//!   transfer has waited for as long as it would take at its rate. Without that, one small transfer could wait
//!   for hours behind large ones.
//! - **The prediction.** If the node had that number of transfers within [`REMEMBERED`], it is the rate that
//!   they reached then, but at most one share more than now. Otherwise the node gains as much as by the
//!   transfer before; a number that was never tried is tried.
//! - **After a change.** The rate of a node is known [`SETTLED`] samples after its number of transfers changed.
//!   Until then it takes no other, unless it had both numbers before.
//! - **The node changes.** If the same number of transfers reaches a rate that is off by more than a quarter,
//!   something else uses the node, or has stopped to. All that was remembered is forgotten.
//! - **An idle node** takes a transfer if it reached the rate alone, or was not tried lately and has the peak.

mod history;

use std::collections::BTreeMap;

use weir_model::{Instant, Span};

use self::history::History;
use crate::request::bytes_f64;
use crate::{Direction, NodeIndex, NodeView, Request};

#[cfg(doc)]
use self::history::{REMEMBERED, SETTLED};

/// How much more a node must be able to do than is needed. Shares are not equal, so a node that does exactly
/// as much would give some less.
const MARGIN: f64 = 1.1;
/// By how much a transfer more must raise the rate of the node. Two samples of a rate differ by some percent.
const RAISES: f64 = 1.02;
/// How long a transfer of unknown size waits for a node whose rate it raises.
const PATIENCE: Span = Span::from_secs(10);

/// The policy, with what it remembers of each node.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Deadline {
    histories: BTreeMap<(NodeIndex, Direction), History>,
}

impl Deadline {
    pub(super) fn sampled(
        &mut self,
        now: Instant,
        node: NodeIndex,
        direction: Direction,
        active: Option<u32>,
        rate: u64,
    ) {
        self.histories.entry((node, direction)).or_default().sampled(now, active, bytes_f64(rate));
    }

    /// What the node can do above the margin, if it takes the transfer.
    pub(super) fn spare(
        &self,
        now: Instant,
        node: &NodeView,
        request: &Request,
        waiting_since: Instant,
    ) -> Option<f64> {
        let history = self.histories.get(&(node.node, request.direction));
        let peak = bytes_f64(node.peak.get());
        let wanted = request.wanted(now);
        if node.active == 0 {
            let alone = history.and_then(|history| history.reached(now, 1));
            return super::more(alone.unwrap_or(peak), wanted);
        }
        let reached = history?.reached(now, node.active)?;
        let predicted = history?.predicted(now, node.active, peak)?;
        let patience = request.takes().unwrap_or(PATIENCE);
        let is_patient = now.saturating_since(waiting_since) < patience;
        if is_patient && predicted <= RAISES * reached {
            return None;
        }
        super::more(predicted, MARGIN * (bytes_f64(node.needed) + wanted))
    }
}
