//! The driver's turn: it hands one event after another to the engines, and drains everything that they have
//! to say.

use std::cell::RefCell;
use std::rc::Rc;
use std::task::{Context, Poll};

use tokio::task::yield_now;
use weir_model::Instant;

use super::Shard;

/// How often a turn looks for completions: once for the requests that woke it, and once for the requests that
/// the kernel finished during the submission. A busy device has always finished more; if the turn looked
/// until none is left, the sockets would wait for all of that.
const PASSES: usize = 2;

/// Renews the quotas of the pools when one is used up, after the runtime has looked at the sockets. Never
/// returns.
///
/// The driver cannot do this at the beginning of a turn. The runtime runs some 60 tasks before it looks at a
/// socket. The driver and the connections wake each other, so dozens of turns may be among those tasks.
pub(super) async fn renew_quotas(shard: Rc<RefCell<Shard>>) {
    let used_up = Rc::clone(&shard.borrow().quota_used_up);
    loop {
        used_up.notified().await;
        // Goes on when the runtime has looked at the sockets, and not before, as it would by a wake-up.
        yield_now().await;
        let mut shard = shard.borrow_mut();
        if shard.pools.renew_quotas() {
            shard.driver.wake();
        }
    }
}

impl Shard {
    /// Does everything that can be done now. Never ready, because the driver ends with its thread.
    pub(super) fn poll_turn(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.driver.begin_turn(cx);
        while self.alarm.poll_fired(cx).is_ready() {}
        // What tasks let in since the last turn leaves less for buffers that nobody uses.
        self.memory.trim();
        self.begin_next_pieces(self.clock.now());
        self.handle_timeouts(self.clock.now());
        for _ in 0..PASSES {
            self.reactor.poll_finished(cx, &mut self.finished);
            let now = self.clock.now();
            self.handle_finished(now);
            self.dispatch(now);
            // What devices finished at once; sockets are not read meanwhile, so this comes to an end.
            while !self.finished.is_empty() {
                self.handle_finished(now);
                self.dispatch(now);
            }
            // A submission takes some microseconds for each request. Short outputs do not wait for that. The
            // longest does, as the device would be idle while it is written.
            self.send_replies(1);
            if !self.reactor.submit() {
                self.driver.wake(); // the kernel is short of memory: try again after the others
            }
        }
        self.send_replies(0);
        self.settle(self.clock.now());
        if self.pools.have_used_up_a_quota() {
            // Not kept for later: if the task is about to renew the quotas, that is soon enough.
            self.quota_used_up.notify_waiters();
        }
        let next = self.pools.poll_timeout().into_iter().chain(self.driver.poll_timeout()).min();
        self.alarm.set(next);
        Poll::Pending
    }

    /// Tells the time to the engines and devices that asked for it, and looks over the clients.
    fn handle_timeouts(&mut self, now: Instant) {
        self.pools.handle_timeouts(now, &mut self.finished);
        self.handle_finished(now);
        for (key, reason) in self.driver.sweep(now, &mut self.clients) {
            self.clients.cut_off(now, key, reason, &mut self.pools, &mut self.memory, &mut self.driver);
        }
    }

    /// Sends every request to its device that the engines let go, until the quotas are used up.
    fn dispatch(&mut self, now: Instant) {
        self.pools.dispatch(now, &mut self.memory, &mut self.finished);
    }

    /// Tells the engines which requests the devices have finished, and gives the connections their replies.
    fn handle_finished(&mut self, now: Instant) {
        let Self { finished, clients, pools, memory, driver, .. } = self;
        for done in finished.drain(..) {
            pools.handle_finished(now, done, clients, memory, driver);
        }
    }

    /// Writes the replies of this turn to their sockets, shortest output first, so that no client waits for
    /// the bytes of a greedy one. The `later` longest outputs are left for another call.
    fn send_replies(&mut self, later: usize) {
        let Self { clock, clients, pools, memory, driver, .. } = self;
        driver.sort_touched(|key| clients.waiting(key));
        while let Some(key) = driver.next_touched(later) {
            clients.flush(*clock, key, pools, memory, driver);
        }
    }

    /// Pulls the engines' events, and sees to volumes that retire and connections that wait for memory.
    fn settle(&mut self, now: Instant) {
        if self.pools.settle(now, &mut self.finished) {
            self.driver.wake(); // for a turn that submits the last flushes
        }
        self.clients.let_in_waiting(now, &mut self.pools, &mut self.memory, &mut self.driver);
    }
}
