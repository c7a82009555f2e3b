//! Policies: which node a transfer goes to.
//!
//! A policy sees the nodes that may serve the transfer, and names one of them or none. If it names none, the
//! transfer waits. The paper's rules compare two sides for each node. Of the nodes that pass, the one with
//! the largest left side less right side is taken: the paper says *the most appropriate* and no more.

mod deadline;
mod round_robin;
mod sm_r1;
mod sm_r2;
mod sm_r3;
mod static_qos;

use std::fmt;
use std::str::FromStr;

use thiserror::Error;
use weir_model::{Direction, Instant};

use crate::request::bytes_f64;
use crate::{NodeIndex, NodeView, Request};

pub use deadline::Deadline;
pub use round_robin::RoundRobin;
pub use sm_r1::SmR1;
pub use sm_r2::{SmR2, SmR2Form};
pub use sm_r3::SmR3;
pub use static_qos::StaticQos;

/// The names of the policies, as a configuration has them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum PolicyName {
    /// Round robin.
    Rr,
    /// StaticQoS.
    Static,
    /// SM-R1.
    SmR1,
    /// SM-R2.
    SmR2,
    /// SM-R3.
    SmR3,
    /// Beyond the paper.
    Deadline,
}

/// A text that is no policy's name.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("found \"{0}\"; accepted: rr, static, sm-r1, sm-r2, sm-r3, deadline")]
pub struct UnknownPolicy(pub String);

/// A policy with its coefficients and its state.
#[derive(Clone, PartialEq, Debug)]
pub enum Policy {
    /// Round robin.
    RoundRobin(RoundRobin),
    /// StaticQoS.
    StaticQos(StaticQos),
    /// SM-R1.
    SmR1(SmR1),
    /// SM-R2.
    SmR2(SmR2),
    /// SM-R3.
    SmR3(SmR3),
    /// Beyond the paper.
    Deadline(Deadline),
}

/// What a node did since the last sample, in bytes a second.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Sample {
    /// How many transfers it had.
    pub(crate) count: Count,
    /// What they had in sum.
    pub(crate) rate: f64,
    /// What a transfer had that is not slow: see [`crate::share`].
    pub(crate) share: f64,
}

/// How many transfers a node had in a sample.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Count {
    /// So many at both ends.
    Same(u32),
    /// So many at most: one came or went, or has moved all its bytes.
    UpTo(u32),
    /// The number says nothing, because some were held back.
    Held,
}

impl PolicyName {
    /// All names.
    pub const ALL: [Self; 6] = [Self::Rr, Self::Static, Self::SmR1, Self::SmR2, Self::SmR3, Self::Deadline];

    /// The policy of that name, with the paper's coefficients; *k4* is ours, as the paper names none.
    pub fn policy(self) -> Policy {
        match self {
            Self::Rr => Policy::RoundRobin(RoundRobin::default()),
            Self::Static => Policy::StaticQos(StaticQos::default()),
            Self::SmR1 => Policy::SmR1(SmR1::default()),
            Self::SmR2 => Policy::SmR2(SmR2::default()),
            Self::SmR3 => Policy::SmR3(SmR3::default()),
            Self::Deadline => Policy::Deadline(Deadline::default()),
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Rr => "rr",
            Self::Static => "static",
            Self::SmR1 => "sm-r1",
            Self::SmR2 => "sm-r2",
            Self::SmR3 => "sm-r3",
            Self::Deadline => "deadline",
        }
    }
}

impl fmt::Display for PolicyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for PolicyName {
    type Err = UnknownPolicy;

    fn from_str(text: &str) -> Result<Self, UnknownPolicy> {
        let found = Self::ALL.into_iter().find(|name| name.name() == text);
        found.ok_or_else(|| UnknownPolicy(text.to_owned()))
    }
}

impl Policy {
    /// Its name.
    pub const fn name(&self) -> PolicyName {
        match self {
            Self::RoundRobin(_) => PolicyName::Rr,
            Self::StaticQos(_) => PolicyName::Static,
            Self::SmR1(_) => PolicyName::SmR1,
            Self::SmR2(_) => PolicyName::SmR2,
            Self::SmR3(_) => PolicyName::SmR3,
            Self::Deadline(_) => PolicyName::Deadline,
        }
    }

    /// The node for a transfer that has waited since `waiting_since`, or none.
    pub(crate) fn place(
        &mut self,
        now: Instant,
        request: &Request,
        waiting_since: Instant,
        nodes: &[NodeView],
    ) -> Option<NodeIndex> {
        match self {
            Self::RoundRobin(policy) => policy.place(nodes),
            Self::StaticQos(policy) => most_spare(nodes, |node| policy.spare(node, request)),
            Self::SmR1(policy) => most_spare(nodes, |node| policy.spare(node, request)),
            Self::SmR2(policy) => most_spare(nodes, |node| policy.spare(node, request)),
            Self::SmR3(policy) => most_spare(nodes, |node| policy.spare(node, request)),
            Self::Deadline(policy) => policy.place(now, request, waiting_since, nodes),
        }
    }

    /// Whether a node that has no transfer, and had none for long, would take a transfer. If not, it never
    /// will.
    pub(crate) fn would_take(&self, request: &Request, idle: &NodeView) -> bool {
        let spare = match self {
            Self::RoundRobin(_) => return true,
            Self::StaticQos(policy) => policy.spare(idle, request),
            Self::SmR1(policy) => policy.spare(idle, request),
            Self::SmR2(policy) => policy.spare(idle, request),
            Self::SmR3(policy) => policy.spare(idle, request),
            Self::Deadline(_) => more(bytes_f64(idle.peak.get()), asked(request)),
        };
        spare.is_some()
    }

    /// A sample of a node.
    pub(crate) fn sampled(&mut self, now: Instant, node: NodeIndex, direction: Direction, sample: Sample) {
        if let Self::Deadline(policy) = self {
            policy.sampled(now, node, direction, sample);
        }
    }

    /// What was measured of a node says nothing any more.
    pub(crate) fn forget(&mut self, node: NodeIndex) {
        if let Self::Deadline(policy) = self {
            policy.forget(node);
        }
    }

    /// Whether transfers are paced, and whether a later one may start before one that waits for other nodes.
    /// The paper's policies do neither.
    pub(crate) const fn is_beyond_the_paper(&self) -> bool {
        matches!(self, Self::Deadline(_))
    }
}

/// The node with the most to spare, and the first of several.
fn most_spare(nodes: &[NodeView], spare: impl Fn(&NodeView) -> Option<f64>) -> Option<NodeIndex> {
    let mut best: Option<(f64, NodeIndex)> = None;
    for node in nodes {
        if let Some(spare) = spare(node)
            && best.is_none_or(|(most, _)| spare > most)
        {
            best = Some((spare, node.node));
        }
    }
    best.map(|(_, node)| node)
}

/// What the left side of a rule has more than the right, if it has.
fn more(left: f64, right: f64) -> Option<f64> {
    (left > right).then_some(left - right)
}

/// The rate that a transfer asks for: *rb*, in bytes a second.
const fn asked(request: &Request) -> f64 {
    bytes_f64(request.rate.get())
}

#[cfg(test)]
mod tests;
