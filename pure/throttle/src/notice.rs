//! What an operator is told, in one line each.

use std::collections::VecDeque;
use std::fmt;

use weir_model::Span;

use crate::limits::{LeftOut, MOST_NOTICES};
use crate::settings::Unknown;

/// Something that an operator may want to know.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Notice {
    /// A LUN stands on a resource that was not there before.
    ResourceAppeared {
        /// Its name.
        resource: String,
        /// Its threshold.
        threshold: Span,
    },
    /// No LUN stands on a resource any more.
    ResourceVanished {
        /// Its name.
        resource: String,
    },
    /// An initiator is to be delayed whenever reads at a resource wait for too long.
    MemberJoined {
        /// The resource.
        resource: String,
        /// The initiator.
        initiator: String,
        /// How many bytes a second it writes there.
        rate: u64,
        /// Whether the operator forced it.
        forced: bool,
    },
    /// An initiator is no longer to be delayed.
    MemberLeft {
        /// The resource.
        resource: String,
        /// The initiator.
        initiator: String,
    },
    /// The delay of a resource has been the longest that is allowed for a second.
    CeilingReached {
        /// The resource.
        resource: String,
        /// How long its reads wait.
        wait: Span,
        /// How long they should wait at most.
        threshold: Span,
        /// The delay.
        ceiling: Span,
    },
    /// The delay of a resource has been below the longest that is allowed for a second.
    CeilingLeft {
        /// The resource.
        resource: String,
    },
    /// No delay can reach the initiators of a target.
    TargetOutOfReach {
        /// The target.
        target: String,
        /// Why.
        why: String,
    },
    /// Delays can reach the initiators of a target again, or the target is gone.
    TargetNoLonger {
        /// The target.
        target: String,
    },
    /// A member has no connection that can be delayed.
    MemberOutOfReach {
        /// The resource.
        resource: String,
        /// The initiator.
        initiator: String,
    },
    /// A setting means nothing on this host as it is.
    Unknown(Unknown),
    /// Other parts of the survey were left out than before.
    LeftOut(LeftOut),
    /// Notices were left out, because nobody fetched them in time.
    NoticesLeftOut(u64),
}

/// One line: what happened, to what, what it means.
impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ResourceAppeared { resource, threshold } => {
                write!(f, "{resource}: found behind a LUN; its reads are to wait {threshold} at most")
            }
            Self::ResourceVanished { resource } => {
                write!(f, "{resource}: behind no LUN any more; nobody is delayed for it")
            }
            Self::MemberJoined { resource, initiator, forced: true, .. } => {
                write!(f, "{resource}: {initiator} is forced, and is delayed while reads wait for too long")
            }
            Self::MemberJoined { resource, initiator, rate, .. } => write!(
                f,
                "{resource}: {initiator} writes {} KiB/s, and is delayed while reads wait for too long",
                rate >> 10
            ),
            Self::MemberLeft { resource, initiator } => {
                write!(f, "{resource}: {initiator} is no longer delayed")
            }
            Self::CeilingReached { resource, wait, threshold, ceiling } => write!(
                f,
                "{resource}: the delay is at its ceiling of {ceiling}, and reads wait {wait}, where {threshold} is \
                 the threshold; a higher ceiling may help"
            ),
            Self::CeilingLeft { resource } => write!(f, "{resource}: the delay is below its ceiling again"),
            Self::TargetOutOfReach { target, why } => {
                write!(f, "{target}: its initiators cannot be delayed: {why}")
            }
            Self::TargetNoLonger { target } => write!(f, "{target}: no longer out of reach, or gone"),
            Self::MemberOutOfReach { resource, initiator } => write!(
                f,
                "{resource}: {initiator} is to be delayed, but none of its connections can be: none is known, or \
                 it may be an exempt initiator's, or no route leads to it, or nothing can be delayed on its interface"
            ),
            Self::Unknown(unknown) => unknown.fmt(f),
            Self::LeftOut(left_out) if left_out.is_none() => {
                f.write_str("all sessions, connections and devices are looked at again")
            }
            Self::LeftOut(LeftOut { sessions, connections, devices }) => write!(
                f,
                "too many to look at: {sessions} sessions, {connections} connections and {devices} devices are \
                 left out, and neither measured nor delayed"
            ),
            Self::NoticesLeftOut(count) => write!(f, "{count} more notices were left out"),
        }
    }
}

/// Notices that nobody has fetched yet.
#[derive(Default, Debug)]
pub(crate) struct Notices {
    waiting: VecDeque<Notice>,
    left_out: u64,
}

impl Notices {
    /// Keeps a notice if there is room.
    pub(crate) fn push(&mut self, notice: Notice) {
        if self.waiting.len() < MOST_NOTICES { self.waiting.push_back(notice) } else { self.left_out += 1 }
    }

    /// The oldest notice. After the last one, how many were left out.
    pub(crate) fn poll(&mut self) -> Option<Notice> {
        self.waiting.pop_front().or_else(|| {
            let left_out = std::mem::take(&mut self.left_out);
            (left_out > 0).then_some(Notice::NoticesLeftOut(left_out))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notices_that_nobody_fetches_are_counted_beyond_their_bound() {
        let mut notices = Notices::default();
        let notice = |resource: usize| Notice::CeilingLeft { resource: resource.to_string() };
        (0..MOST_NOTICES + 3).for_each(|resource| notices.push(notice(resource)));
        let fetched: Vec<_> = std::iter::from_fn(|| notices.poll()).collect();
        assert_eq!(fetched.len(), MOST_NOTICES + 1);
        assert_eq!(fetched[MOST_NOTICES - 1..], [notice(MOST_NOTICES - 1), Notice::NoticesLeftOut(3)]);
    }
}
