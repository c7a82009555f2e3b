//! The requests that one connection is to send, and when: made up in a closed or an open loop, or recorded.
//! Pure.

use weir_model::Instant;

use crate::Pacer;
use crate::feed::Feed;
use crate::workload::{Next, Workload};

/// Where the requests of a connection come from.
pub(crate) enum Source {
    /// Each reply brings the next request.
    Closed {
        workload: Workload,
        /// How many requests may be sent from an instant on.
        budget: Option<(Instant, u64)>,
        taken: u64,
    },
    /// Requests arrive at a rate, whatever the server does.
    Open { workload: Workload, pacer: Pacer },
    /// Requests arrive at their recorded times.
    Recorded(Feed),
}

impl Source {
    /// The next request, if it may be sent now; the run ends at `end`. Call this only when the request can be
    /// sent.
    #[inline]
    pub(crate) fn take(&mut self, now: Instant, end: Instant) -> Option<Next> {
        match self {
            Self::Closed { workload, budget, taken } => {
                if now >= end {
                    return None;
                }
                if let Some((from, left)) = budget
                    && now >= *from
                {
                    *left = left.checked_sub(1)?;
                }
                *taken += 1;
                Some(Next { since: now, late: None, operation: workload.next_operation() })
            }
            Self::Open { workload, pacer } => {
                let due = pacer.take(now)?;
                Some(Next { since: due.intended, late: due.late, operation: workload.next_operation() })
            }
            Self::Recorded(feed) => feed.take(now),
        }
    }

    /// When the next request is due; `None` in a closed loop, and if there are no more requests.
    pub(crate) fn due_at(&self) -> Option<Instant> {
        match self {
            Self::Closed { .. } => None,
            Self::Open { pacer, .. } => pacer.due_at(),
            Self::Recorded(feed) => feed.due_at(),
        }
    }

    /// Whether nothing more is to be sent.
    pub(crate) fn is_exhausted(&self, now: Instant, end: Instant) -> bool {
        match self {
            Self::Closed { budget, .. } => {
                now >= end || budget.is_some_and(|(from, left)| now >= from && left == 0)
            }
            Self::Open { .. } | Self::Recorded(_) => self.due_at().is_none(),
        }
    }

    /// Whether the source ended early, because the export cannot take the next request.
    pub(crate) const fn is_broken(&self) -> bool {
        match self {
            Self::Closed { .. } | Self::Open { .. } => false,
            Self::Recorded(feed) => feed.refused().is_some(),
        }
    }

    /// How many requests arrived before `instant`, sent or not; in a closed loop, how many were sent. From
    /// call to call `instant` must not go back, and it must not be before a request that was sent.
    pub(crate) fn offered_before(&mut self, instant: Instant) -> u64 {
        match self {
            Self::Closed { taken, .. } => *taken,
            Self::Open { pacer, .. } => pacer.offered_before(instant),
            Self::Recorded(feed) => feed.offered_before(instant),
        }
    }

    /// How many requests were taken.
    pub(crate) const fn taken(&self) -> u64 {
        match self {
            Self::Closed { taken, .. } => *taken,
            Self::Open { pacer, .. } => pacer.taken(),
            Self::Recorded(feed) => feed.taken(),
        }
    }

    /// Ends the arrivals before `end`.
    pub(crate) fn end_at(&mut self, end: Instant) {
        match self {
            Self::Closed { .. } => {}
            Self::Open { pacer, .. } => pacer.end_at(end),
            Self::Recorded(feed) => feed.end_at(end),
        }
    }
}
