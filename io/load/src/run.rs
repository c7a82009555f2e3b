//! A made-up load, from the first connection to the report.

use std::future::Future;
use std::pin::pin;
use std::rc::Rc;

use rand::Rng;
use weir_clock::{Alarm, Clock};
use weir_model::Instant;

use crate::connect::{Connected, connect, usable_blocks};
use crate::connection::{Connection, READ_BUFFER, Shared};
use crate::record::Recorder;
use crate::report::Report;
use crate::source::Source;
use crate::supervise::supervise;
use crate::workload::{Stream, Workload, stream};
use crate::{Arrivals, Interval, LoadError, LoadSpec, Pace, Pacer, Share, Until};

/// Loads a server as `spec` says, until its end or until `cancel` is ready. Then it waits for outstanding
/// requests, at most for `spec.drain_limit`, and disconnects.
///
/// `on_interval` is called for each second of the measurement as soon as it is over. It runs on the thread
/// that makes the load, so it must be quick. Run this on a current-thread tokio runtime with I/O and time
/// enabled, and nothing else on it.
///
/// # Errors
/// If the spec makes no sense, there is no session, or a connection ends too early or violates the protocol.
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
    let shared = plan.shared(spec, blocks);
    let connections = plan.connections(spec, connected)?;
    let (measured, _) =
        supervise(&spec.target, shared, connections, spec.drain_limit, cancel, on_interval).await?;
    Ok(Report::new(spec, &export, measured))
}

async fn connect_all(spec: &LoadSpec) -> Result<Vec<Connected>, LoadError> {
    let mut connected = Vec::new();
    for _ in 0..spec.connections {
        connected.push(connect(&spec.target, spec.structured_replies).await?);
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

    fn shared(&self, spec: &LoadSpec, blocks: u64) -> Shared {
        Shared {
            clock: self.clock,
            recorder: Recorder::new(self.measured_from),
            end: self.end,
            sources: shares(spec).map(|share| self.source(spec, share, blocks)).collect(),
            buffer: vec![0; READ_BUFFER].into_boxed_slice(),
        }
    }

    fn source(&self, spec: &LoadSpec, share: Share, blocks: u64) -> Source {
        let workload = Workload::new(spec, share, blocks);
        let budget = budget(spec.until, share);
        match spec.pace {
            Pace::Closed => {
                let budget = budget.map(|requests| (self.measured_from, requests));
                Source::Closed { workload, budget, taken: 0 }
            }
            Pace::Open { rate, arrivals } => {
                let rng = stream(spec.seed, share.index, Stream::Arrivals);
                let mut sequence = Arrivals::new(arrivals, rate, share, self.start, rng);
                sequence.end_at(self.end);
                if let Some(requests) = budget {
                    sequence.end_after(self.measured_from, requests);
                }
                Source::Open { workload, pacer: Pacer::new(sequence) }
            }
        }
    }

    fn connections(&self, spec: &LoadSpec, connected: Vec<Connected>) -> Result<Vec<Connection>, LoadError> {
        let mut payload = vec![0; spec.block_bytes as usize];
        stream(spec.seed, u32::MAX, Stream::Workload).fill_bytes(&mut payload);
        let payload: Rc<[u8]> = payload.into();
        let connection = |(index, connected)| {
            let alarm = match spec.pace {
                Pace::Closed => None,
                Pace::Open { .. } => Some(Alarm::new(self.clock).map_err(LoadError::Timer)?),
            };
            let flush_every = spec.flush_every.map_or(0, std::num::NonZeroU64::get);
            Ok(Connection {
                alarm,
                flush_every,
                ..Connection::new(index, connected, spec.depth, Rc::clone(&payload))
            })
        };
        connected.into_iter().enumerate().map(connection).collect()
    }
}

fn shares(spec: &LoadSpec) -> impl Iterator<Item = Share> {
    let of = spec.connections;
    (0..of).map(move |index| Share { index, of })
}

/// How many requests a connection has to send; `None` if time ends the run.
fn budget(until: Until, share: Share) -> Option<u64> {
    let Until::Requests(requests) = until else { return None };
    let (index, of) = (u64::from(share.index), u64::from(share.of));
    Some(requests / of + u64::from(index < requests % of))
}
