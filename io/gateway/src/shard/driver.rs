//! The work that a shard's tasks, and the turn before, have left for the driver's next turn; and the way to
//! wake the driver.
//!
//! A reply is not written where it is made: a turn makes many replies for one connection, and writes them
//! together. So a connection that has something to write is put on a list, once. Connections that wait for
//! their clients are on another list, so that the driver does not look at idle connections.

use std::collections::VecDeque;
use std::task::{Context, Waker};

use weir_model::{Instant, Span};

use super::clients::Clients;
use crate::connection::{Connection, ConnectionId};

/// How often the driver looks for clients that take no replies or do not close their side.
const SWEEP_PERIOD: Span = Span::from_secs(1);

/// The work that is left for the driver of a shard.
pub(super) struct Driver {
    /// The waker of the driver's task; `None` before its first turn.
    waker: Option<Waker>,
    is_woken: bool,
    /// Connections that have something to write.
    touched: VecDeque<usize>,
    /// Connections that wait for their clients.
    watched: Vec<ConnectionId>,
    next_sweep: Instant,
}

impl Driver {
    /// A driver without work.
    pub(super) const fn new() -> Self {
        Self {
            waker: None,
            is_woken: false,
            touched: VecDeque::new(),
            watched: Vec::new(),
            next_sweep: Instant::FAR_FUTURE,
        }
    }

    /// Begins a turn. Work that comes from now on wakes the driver again.
    pub(super) fn begin_turn(&mut self, cx: &Context<'_>) {
        if self.waker.as_ref().is_none_or(|known| !known.will_wake(cx.waker())) {
            self.waker = Some(cx.waker().clone());
        }
        self.is_woken = false;
    }

    /// Makes the driver take a turn after the tasks that are ready now.
    #[inline]
    pub(super) fn wake(&mut self) {
        if let Some(waker) = self.waker.as_ref().filter(|_| !self.is_woken) {
            waker.wake_by_ref();
            self.is_woken = true;
        }
    }

    /// Notes that the connection has something to write, or has ended with nothing to write.
    #[inline]
    pub(super) fn touch(&mut self, connection: &mut Connection) {
        if !connection.touched {
            connection.touched = true;
            self.touched.push_back(connection.id.key);
        }
    }

    /// Sorts the touched connections by `waiting`, the least first.
    pub(super) fn sort_touched(&mut self, waiting: impl Fn(usize) -> usize) {
        self.touched.make_contiguous().sort_by_key(|key| waiting(*key));
    }

    /// The next touched connection. The last `later` of them are left for another call.
    pub(super) fn next_touched(&mut self, later: usize) -> Option<usize> {
        if self.touched.len() > later { self.touched.pop_front() } else { None }
    }

    /// Notes that the connection waits for its client. From now on, the driver looks at the client's pace.
    pub(super) fn watch(&mut self, now: Instant, connection: &mut Connection) {
        if connection.watched {
            return;
        }
        connection.watched = true;
        if self.watched.is_empty() {
            self.next_sweep = now + SWEEP_PERIOD;
            self.wake(); // which sets its alarm
        }
        self.watched.push(connection.id);
    }

    /// When [`Driver::sweep`] is to be called next.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        (!self.watched.is_empty()).then_some(self.next_sweep)
    }

    /// Returns the connections to be closed, each with the reason, if it is time to look. Their clients take
    /// none of their replies, do not finish a write, or do not close a connection that is over. The driver
    /// does not look at connections that wait for nothing.
    pub(super) fn sweep(&mut self, now: Instant, clients: &mut Clients) -> Vec<(usize, &'static str)> {
        let mut overdue = Vec::new();
        if now < self.next_sweep {
            return overdue;
        }
        self.next_sweep = now + SWEEP_PERIOD;
        let timeout = clients.reply_timeout();
        self.watched.retain(|id| {
            let Some(connection) = clients.get(*id) else { return false };
            connection.watched = connection.waits_for_client();
            if !connection.watched {
                return false;
            }
            let reason = connection.overdue(now, timeout);
            overdue.extend(reason.map(|reason| (id.key, reason)));
            reason.is_none()
        });
        overdue
    }
}
