//! Drives the connections of a run side by side, to their end.
//!
//! Each connection is a task, so that a reply wakes one connection and not all. The tasks share a thread, and
//! each has everything in `Shared` to itself during its turn. The supervisor only watches the time: the
//! seconds, the end of the run, and the limit on the wait after it.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::rc::Rc;

use tokio::sync::watch;
use tokio::task::{JoinSet, LocalSet};
use weir_model::{Instant, Span};

use crate::connection::{Connection, Failure, Shared};
use crate::report::Measured;
use crate::source::Source;
use crate::{Interval, LoadError, Target};

/// Drives `connections` until their sources are exhausted, until `shared.end`, or until `cancel`. Then it
/// waits for outstanding requests, at most for `drain_limit`, and disconnects. Returns the measurements, and
/// the sources with their remaining requests.
///
/// # Errors
/// If a connection ends too early or violates the protocol.
pub(crate) async fn supervise(
    target: &Target,
    shared: Shared,
    connections: Vec<Connection>,
    drain_limit: Span,
    cancel: impl Future<Output = ()> + Unpin,
    on_interval: impl FnMut(&Interval),
) -> Result<(Measured, Vec<Source>), LoadError> {
    let shared = Rc::new(RefCell::new(shared));
    let (stop, stopped) = watch::channel(());
    let (local, mut tasks) = (LocalSet::new(), JoinSet::new());
    for connection in connections {
        let task = drive(connection, Rc::clone(&shared), stopped.clone(), drain_limit);
        tasks.spawn_local_on(task, &local);
    }
    let supervisor = Supervisor { target: target.to_string(), shared, stop, tasks, on_interval };
    local.run_until(supervisor.run(cancel)).await
}

/// A connection that ended too early.
struct Ended {
    failure: Failure,
    outstanding: usize,
    replies: u64,
}

/// Drives one connection to its end. Returns the number of requests that were not answered.
async fn drive(
    mut connection: Connection,
    shared: Rc<RefCell<Shared>>,
    mut stopped: watch::Receiver<()>,
    drain_limit: Span,
) -> Result<u64, Ended> {
    let finished = tokio::select! {
        biased;
        finished = turns(&mut connection, &shared) => Some(finished),
        _ = stopped.changed() => None,
    };
    let finished = match finished {
        Some(finished) => finished,
        None => {
            connection.end(&mut shared.borrow_mut());
            let drained = tokio::time::timeout(drain_limit.into(), turns(&mut connection, &shared)).await;
            drained.unwrap_or(Ok(())) // what is still outstanding is reported as unanswered
        }
    };
    let outstanding = connection.slots.outstanding();
    finished.map_err(|failure| Ended { failure, outstanding, replies: connection.replies })?;
    connection.disconnect().await;
    Ok(outstanding as u64)
}

fn turns(connection: &mut Connection, shared: &RefCell<Shared>) -> impl Future<Output = Result<(), Failure>> {
    poll_fn(|cx| connection.poll_turns(cx, &mut shared.borrow_mut()))
}

/// Watches the time of a run.
struct Supervisor<F> {
    target: String,
    shared: Rc<RefCell<Shared>>,
    stop: watch::Sender<()>,
    tasks: JoinSet<Result<u64, Ended>>,
    on_interval: F,
}

impl<F: FnMut(&Interval)> Supervisor<F> {
    async fn run(
        mut self,
        mut cancel: impl Future<Output = ()> + Unpin,
    ) -> Result<(Measured, Vec<Source>), LoadError> {
        let (mut unanswered, mut stopping, mut shown) = (0, false, 0);
        loop {
            let (second, end) = {
                let shared = self.shared.borrow();
                let now = shared.clock.now();
                (sleep_until(now, shared.recorder.due_at()), sleep_until(now, shared.end))
            };
            tokio::select! {
                biased;
                ended = self.tasks.join_next() => match ended {
                    Some(ended) => unanswered += self.outcome(ended.expect("a task runs to its end"))?,
                    None => break,
                },
                () = &mut cancel, if !stopping => {
                    stopping = true;
                    self.end_now();
                }
                () = end, if !stopping => {
                    stopping = true;
                    self.stop.send_replace(());
                }
                () = second, if !stopping => {
                    let mut shared = self.shared.borrow_mut();
                    let now = shared.clock.now();
                    shared.tick(now);
                }
            }
            shown = self.show(shown);
        }
        Ok(self.finish(unanswered, shown))
    }

    /// Ends the run now, unless it ended before.
    fn end_now(&self) {
        let mut shared = self.shared.borrow_mut();
        shared.end = shared.end.min(shared.clock.now());
        self.stop.send_replace(());
    }

    /// Shows the seconds that are over and were not shown yet. Returns how many are over.
    fn show(&mut self, shown: usize) -> usize {
        let shared = self.shared.borrow();
        let intervals = shared.recorder.intervals();
        intervals[shown..].iter().for_each(&mut self.on_interval);
        intervals.len()
    }

    fn outcome(&self, ended: Result<u64, Ended>) -> Result<u64, LoadError> {
        let target = self.target.clone();
        ended.map_err(|Ended { failure, outstanding, replies }| match failure {
            Failure::Closed => LoadError::Closed { target, outstanding, replies },
            Failure::Broken(source) => LoadError::Broken { target, source, outstanding, replies },
            Failure::Protocol(source) => LoadError::Protocol { target, source },
        })
    }

    fn finish(mut self, unanswered: u64, shown: usize) -> (Measured, Vec<Source>) {
        let Some(mut shared) = Rc::into_inner(self.shared).map(RefCell::into_inner) else {
            unreachable!("every task has ended");
        };
        if shared.end != Instant::FAR_FUTURE {
            let end = shared.end;
            shared.tick(end);
        }
        let offered = shared.offered_before(Instant::FAR_FUTURE);
        let taken: u64 = shared.sources.iter().map(Source::taken).sum();
        let end = (shared.end != Instant::FAR_FUTURE).then_some(shared.end);
        let (total, intervals, elapsed) = shared.recorder.finish(end, offered);
        intervals[shown..].iter().for_each(&mut self.on_interval);
        (Measured { total, intervals, elapsed, unsent: offered - taken, unanswered }, shared.sources)
    }
}

/// Ready at `instant` or up to two milliseconds later, which is precise enough for the supervisor.
async fn sleep_until(now: Instant, instant: Instant) {
    if instant == Instant::FAR_FUTURE {
        std::future::pending().await
    } else {
        tokio::time::sleep(instant.saturating_since(now).into()).await;
    }
}
