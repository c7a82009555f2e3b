//! `deadline`: as many transfers as a node serves in time, and no more than raise its rate. Not from the
//! paper.
//!
//! **Problem.** SM-R3 fills a node until each share is near the rate that is asked for. A node that does less
//! in sum with many transfers than with some then works below its best. Example: a node gives 10 transfers
//! 246 MB/s in sum, and 19 transfers 208 MB/s. SM-R3 with 10 MB/s each goes on to 19. All keep their rate,
//! but everybody is done later.
//!
//! **Rule.** The policy remembers which rate a node reached in sum with each number of transfers. From that
//! it predicts the rate with one more. The transfer starts if all of these hold:
//!
//! ```text
//! predicted > MARGIN (needed + asked)      all of them keep their rate
//! predicted > RAISES reached               the node will do more
//! share     > UNHURT largest share         the transfers do not hinder one another yet, if there are two
//! ```
//!
//! `needed` is what the transfers of the node still need, in sum. A transfer that was faster than it asked
//! for needs less from then on, so what it reserved is free for others. A transfer with a deadline asks for
//! its rate, or for more if only that takes it there in time.
//!
//! - **Two conditions against crowding.** The second alone creeps: what a node reaches sways by some percent
//!   from second to second, and now and then one transfer more seems to raise it. The third alone would give
//!   a slow node a second transfer as soon as the first needs little. A share falls by 10 % where the rate
//!   stands still with ten transfers, so it is the clearer sign.
//! - **Patience.** Both make a transfer wait although its rate could be had. They end once the transfer has
//!   waited for as long as it would take at its rate, or for five minutes. Without that, one small transfer
//!   could wait for hours behind large ones. A transfer whose deadline asks for more than its rate has none.
//! - **The share** is what a transfer of the node has, by [`crate::share`]. The largest share is one of many
//!   seconds. A sample may have a piece of the clients' too many, and the largest sample would be such a one.
//! - **The prediction** is the rate that the node had with that number of transfers, if it had it in the last
//!   five minutes; but at most the largest share more than now. A number that was never tried is expected to
//!   add that share, up to the node's peak.
//! - **After a change** of its number of transfers, the rate of a node is known with the next sample. Until
//!   then it takes no other, unless it had this number before.
//! - **The node changes** if something else begins to use it, or stops to. Five samples in a row are the
//!   sign: all are higher, or all lower, by more than a quarter than what the same number of transfers had
//!   before. Then all that was remembered is forgotten.
//! - **An idle node** takes any transfer, as under SM-R3, but comes last: nobody is harmed there, and what it
//!   did for one transfer may have been that one's fault.
//! - **A slow client is no slow node**, but looks like one: the policy sees only what arrives. So the first
//!   transfer that has lost its patience is tried on a node whose peak has room, whatever the history says,
//!   and at most one a minute. Without that, a single client that stalls would close its node for all others.
//!
//! - **External load**, what others than the transfers move at a node, is taken off the peak wherever the
//!   policy has nothing but the peak to go by: for an idle node without a history, and for the trial after
//!   the patience. What it has measured contains the load of others already: to take it off once more would
//!   count it twice. An idle node takes a transfer whatever others do, so that nothing waits for ever.
//!
//! **Where it is not the best.** A node on which one transfer alone reaches the whole peak has one at a time.
//! If the transfers last for a few seconds only, the node idles between one and the next.

mod history;

use std::collections::BTreeMap;

use weir_model::{Direction, Instant, Span};

use self::history::{History, REMEMBERED};
use super::{Sample, asked};
use crate::request::bytes_f64;
use crate::{NodeIndex, NodeView, Request};

/// How much more a node must be able to do than is needed. Shares are not equal, so a node that does exactly
/// as much would give some less. 1.2, as *k3* of SM-R3.
const MARGIN: f64 = 1.2;
/// By how much a transfer more must raise the rate of the node.
const RAISES: f64 = 1.03;
/// A share of more than this part of the largest is one of transfers that do not hinder one another.
const UNHURT: f64 = 0.9;
/// How long a transfer of unknown size waits for a node whose rate it raises.
const PATIENCE: Span = Span::from_secs(10);
/// How long a node is left alone after a transfer started there that its history speaks against.
const TRIED_AGAIN: Span = Span::from_secs(60);

/// The policy, with what it remembers of each node.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Deadline {
    histories: BTreeMap<(NodeIndex, Direction), History>,
    /// When a transfer last started against what the history says.
    tried: BTreeMap<(NodeIndex, Direction), Instant>,
}

impl Deadline {
    pub(super) fn sampled(&mut self, now: Instant, node: NodeIndex, direction: Direction, sample: Sample) {
        self.histories.entry((node, direction)).or_default().sampled(now, sample);
    }

    pub(super) fn forget(&mut self, node: NodeIndex) {
        self.histories.retain(|(known, _), _| *known != node);
        self.tried.retain(|(known, _), _| *known != node);
    }

    pub(super) fn place(
        &mut self,
        now: Instant,
        request: &Request,
        waiting_since: Instant,
        nodes: &[NodeView],
    ) -> Option<NodeIndex> {
        let patience = request.takes().unwrap_or(PATIENCE).min(REMEMBERED);
        let is_patient = now.saturating_since(waiting_since) < patience;
        let by_history = super::most_spare(nodes, |node| self.spare(now, node, request, is_patient));
        if is_patient || by_history.is_some() {
            return by_history;
        }
        let tried = super::most_spare(nodes, |node| self.spare_by_peak(now, node, request))?;
        self.tried.insert((tried, request.direction), now);
        Some(tried)
    }

    /// What the node can do above the margin, if it takes the transfer.
    fn spare(&self, now: Instant, node: &NodeView, request: &Request, is_patient: bool) -> Option<f64> {
        let history = self.histories.get(&(node.node, request.direction));
        let wanted = request.wanted(now, node.peak);
        if node.active == 0 {
            let alone = history.and_then(|history| history.reached(now, 1)).unwrap_or_else(|| left(node));
            return Some(alone - wanted);
        }
        let history = history?;
        let reached = history.reached(now, node.active)?;
        let predicted = history.predicted(now, node.active, bytes_f64(node.peak.get()))?;
        let is_unhurt = node.active == 1 || history.share(node.active)? > UNHURT * history.largest_share();
        let raises = predicted > RAISES * reached && is_unhurt;
        // A deadline that asks for more than the rate leaves no time to wait for the best moment.
        let is_urgent = wanted > asked(request);
        if is_patient && !is_urgent && !raises {
            return None;
        }
        super::more(predicted, MARGIN * (bytes_f64(node.needed) + wanted))
    }

    /// What the node could do above the margin by its peak, if nobody has tried that for long.
    fn spare_by_peak(&self, now: Instant, node: &NodeView, request: &Request) -> Option<f64> {
        let tried = self.tried.get(&(node.node, request.direction));
        if tried.is_some_and(|tried| now.saturating_since(*tried) < TRIED_AGAIN) {
            return None;
        }
        let wanted = request.wanted(now, node.peak);
        super::more(left(node), MARGIN * (bytes_f64(node.needed) + wanted))
    }
}

/// What its peak leaves beside the external load, in bytes a second.
fn left(node: &NodeView) -> f64 {
    bytes_f64(node.peak.get().saturating_sub(node.external.unwrap_or(0)))
}
