//! A run from the first connection to the report.
//!
//! Each connection is a task, so that a reply wakes one connection and not all; the tasks share a thread and, while they
//! take their turn, everything in `Shared`. The supervisor only watches the time: seconds, the end, the bound on the
//! time after it.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;

use rand::Rng;
use tokio::sync::watch;
use tokio::task::{JoinSet, LocalSet};
use weir_clock::{Alarm, Clock};
use weir_model::{Instant, Span};
use weir_nbd::client::ReplyDecoder;

use crate::connect::{Connected, connect, usable_blocks};
use crate::connection::{Connection, Failure, READ_BUFFER, Shared};
use crate::record::Recorder;
use crate::report::{Measured, Report};
use crate::slots::Slots;
use crate::workload::{Stream, Workload, stream};
use crate::{Arrivals, Interval, LoadError, LoadSpec, Pace, Pacer, Share, Until};

/// Loads a server as `spec` says, until its end or until `cancel` is ready; then waits for what is outstanding, at most
/// for `spec.drain_limit`, and disconnects. `on_interval` is called for each second of the measurement as soon as it is
/// over, on the thread that makes the load, so it had better be quick.
///
/// To be run on a current-thread tokio runtime with I/O and time enabled, and nothing else on it.
///
/// # Errors
/// If the spec makes no sense, there is no session, or a connection ends or makes no sense before it should.
pub async fn run(
    spec: &LoadSpec,
    cancel: impl Future<Output = ()>,
    on_interval: impl FnMut(&Interval),
) -> Result<Report, LoadError> {
    spec.check()?;
    let mut cancel = pin!(cancel);
    let connected = tokio::select! {
        connected = connect_all(spec) => connected?,
        () = &mut cancel => return Err(LoadError::Cancelled),
    };
    let export = connected[0].export.clone();
    let blocks = usable_blocks(spec, &export)?;
    let plan = Plan::new(spec, Clock::new());
    let shared = Rc::new(RefCell::new(plan.shared(spec)));
    let (stop, stopped) = watch::channel(());
    let (local, mut tasks) = (LocalSet::new(), JoinSet::new());
    for connection in plan.connections(spec, connected, blocks)? {
        let task = drive(connection, Rc::clone(&shared), stopped.clone(), spec.drain_limit);
        tasks.spawn_local_on(task, &local);
    }
    let supervisor = Supervisor { target: spec.target.to_string(), shared, stop, tasks, on_interval };
    let measured = local.run_until(supervisor.run(cancel)).await?;
    Ok(Report::new(spec, &export, measured))
}

async fn connect_all(spec: &LoadSpec) -> Result<Vec<Connected>, LoadError> {
    let mut connected = Vec::new();
    for _ in 0..spec.connections {
        connected.push(connect(spec).await?);
    }
    Ok(connected)
}

/// The instants of a run.
struct Plan {
    clock: Clock,
    start: Instant,
    measured_from: Instant,
    /// [`Instant::FAR_FUTURE`] if a number of requests ends the run.
    end: Instant,
}

impl Plan {
    fn new(spec: &LoadSpec, clock: Clock) -> Self {
        let start = clock.now();
        let measured_from = start + spec.warm_up;
        let end = match spec.until {
            Until::Elapsed(span) => measured_from + span,
            Until::Requests(_) => Instant::FAR_FUTURE,
        };
        Self { clock, start, measured_from, end }
    }

    fn shared(&self, spec: &LoadSpec) -> Shared {
        let pacers = match spec.pace {
            Pace::Closed => Vec::new(),
            Pace::Open { rate, arrivals } => shares(spec)
                .map(|share| {
                    let rng = stream(spec.seed, share.index, Stream::Arrivals);
                    let mut sequence = Arrivals::new(arrivals, rate, share, self.start, rng);
                    sequence.end_at(self.end);
                    if let Some(requests) = budget(spec.until, share) {
                        sequence.end_after(self.measured_from, requests);
                    }
                    Pacer::new(sequence)
                })
                .collect(),
        };
        Shared {
            clock: self.clock,
            recorder: Recorder::new(self.measured_from),
            end: self.end,
            pacers,
            issued: 0,
            buffer: vec![0; READ_BUFFER].into_boxed_slice(),
        }
    }

    fn connections(
        &self,
        spec: &LoadSpec,
        connected: Vec<Connected>,
        blocks: u64,
    ) -> Result<Vec<Connection>, LoadError> {
        let mut payload = vec![0; spec.block_bytes as usize];
        stream(spec.seed, u32::MAX, Stream::Workload).fill_bytes(&mut payload);
        let payload: Rc<[u8]> = payload.into();
        let connection = |(share, connected): (Share, Connected)| {
            let alarm = match spec.pace {
                Pace::Closed => None,
                Pace::Open { .. } => Some(Alarm::new(self.clock).map_err(LoadError::Timer)?),
            };
            Ok(Connection {
                index: share.index as usize,
                socket: connected.socket,
                decoder: ReplyDecoder::new(connected.export.structured_replies),
                rest: connected.rest,
                slots: Slots::new(spec.depth),
                workload: Workload::new(spec, share, blocks),
                payload: Rc::clone(&payload),
                output: Vec::new(),
                taken: 0,
                alarm,
                budget: budget(spec.until, share).map(|requests| (self.measured_from, requests)),
                flush_every: spec.flush_every.map_or(0, std::num::NonZeroU64::get),
                unflushed: 0,
                replies: 0,
            })
        };
        shares(spec).zip(connected).map(connection).collect()
    }
}

fn shares(spec: &LoadSpec) -> impl Iterator<Item = Share> {
    let of = spec.connections;
    (0..of).map(move |index| Share { index, of })
}

/// How many requests a connection has to do.
fn budget(until: Until, share: Share) -> Option<u64> {
    let Until::Requests(requests) = until else { return None };
    let (index, of) = (u64::from(share.index), u64::from(share.of));
    Some(requests / of + u64::from(index < requests % of))
}

/// A connection that ended before it should.
struct Ended {
    failure: Failure,
    outstanding: usize,
    replies: u64,
}

/// Drives one connection to its end; the number of requests that were not answered.
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
    async fn run(mut self, mut cancel: impl Future<Output = ()> + Unpin) -> Result<Measured, LoadError> {
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

    /// The end comes now, unless it was before.
    fn end_now(&self) {
        let mut shared = self.shared.borrow_mut();
        shared.end = shared.end.min(shared.clock.now());
        self.stop.send_replace(());
    }

    /// Shows the seconds that are over and were not shown; how many there are by now.
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

    fn finish(mut self, unanswered: u64, shown: usize) -> Measured {
        let Some(mut shared) = Rc::into_inner(self.shared).map(RefCell::into_inner) else {
            unreachable!("every task has ended");
        };
        if shared.end != Instant::FAR_FUTURE {
            let end = shared.end;
            shared.tick(end);
        }
        let offered = shared.offered_before(Instant::FAR_FUTURE);
        let taken: u64 = shared.pacers.iter().map(Pacer::taken).sum();
        let end = (shared.end != Instant::FAR_FUTURE).then_some(shared.end);
        let (total, intervals, elapsed) = shared.recorder.finish(end, offered);
        intervals[shown..].iter().for_each(&mut self.on_interval);
        Measured { total, intervals, elapsed, unsent: offered - taken - shared.issued, unanswered }
    }
}

/// Ready at `instant` or up to two milliseconds later, which is enough for all that the supervisor does.
async fn sleep_until(now: Instant, instant: Instant) {
    if instant == Instant::FAR_FUTURE {
        std::future::pending().await
    } else {
        tokio::time::sleep(instant.saturating_since(now).into()).await;
    }
}
