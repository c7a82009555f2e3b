//! A recorded load, from the connection to the measurements.
//!
//! The load goes over one connection, as the recorded client's did: over several, requests could overtake
//! each other on their way to the server. It is an open loop: a request is sent at its time, even if the
//! requests before it are not answered. Its latency counts from that time. (Another method waits for the
//! answers that the recorded client waited for. But a block trace does not say which answers these were.)

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::pin;
use std::rc::Rc;

use hdrhistogram::Histogram;
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;
use weir_clock::{Alarm, Clock};
use weir_model::Span;

use crate::connect::{connect, payload_limits};
use crate::connection::{Connection, READ_BUFFER, Shared};
use crate::feed::{Feed, ReplayRequest, Room};
use crate::record::Recorder;
use crate::report::{Measured, error_name};
use crate::slots::Class;
use crate::source::Source;
use crate::spec::check_depth;
use crate::supervise::supervise;
use crate::{Interval, LoadError, Target};

/// Bytes of random data that fill the writes, repeated.
const PAYLOAD: usize = 64 << 10;

/// The export that a recording goes to, and the limits of the replay.
#[derive(Clone, PartialEq, Debug)]
pub struct ReplaySpec {
    /// The export to load.
    pub target: Target,
    /// The most outstanding requests. Further requests wait, and their latency counts meanwhile.
    pub depth: u32,
    /// How long the replay takes. Requests at or after this time are not sent.
    pub duration: Span,
    /// How long to wait for outstanding requests after that.
    pub drain_limit: Span,
}

/// The measurements of a replay.
#[derive(Clone, Debug)]
pub struct Replayed {
    /// The size of the export in bytes.
    pub export_bytes: u64,
    /// Requests whose time came.
    pub offered: u64,
    /// Requests that were sent more than a millisecond after their time.
    pub late: u64,
    /// The longest such delay.
    pub late_max: Span,
    /// Requests whose time had come, and which were not sent before the replay ended.
    pub unsent: u64,
    /// Requests that were sent, and not answered before the replay ended.
    pub unanswered: u64,
    /// Requests answered with an error, by the name of the error.
    pub errors: BTreeMap<String, u64>,
    /// From the start to the end, or to the last reply if that came later.
    pub elapsed: Span,
    /// The latencies in nanoseconds of the reads that were answered without an error, from their times on.
    pub read_ns: Histogram<u64>,
    /// The same for writes.
    pub write_ns: Histogram<u64>,
}

/// Sends `requests`, which are in order of time, to a server at their times, until `spec.duration` is over or
/// `cancel` is ready. Then it waits for outstanding requests, at most for `spec.drain_limit`, and
/// disconnects.
///
/// `on_interval` is called for each second as soon as it is over. It runs on the thread that makes the load,
/// so it must be quick. Run this on a current-thread tokio runtime with I/O and time enabled, and nothing
/// else on it.
///
/// # Errors
/// If the spec makes no sense, there is no session, the connection ends too early or violates the protocol,
/// or the export cannot take a request.
pub async fn replay(
    spec: &ReplaySpec,
    requests: impl Iterator<Item = ReplayRequest> + 'static,
    cancel: impl Future<Output = ()>,
    on_interval: impl FnMut(&Interval),
) -> Result<Replayed, LoadError> {
    check_depth(spec.depth)?;
    let mut cancel = pin!(cancel);
    let connected = tokio::select! {
        connected = connect(&spec.target, false) => connected?,
        () = &mut cancel => return Err(LoadError::Cancelled),
    };
    let size = connected.export.size;
    let (least, most) = payload_limits(&connected.export);
    let room = Room { size, least, most };
    let clock = Clock::new();
    let alarm = Some(Alarm::new(clock).map_err(LoadError::Timer)?);
    let connection = Connection { alarm, ..Connection::new(0, connected, spec.depth, payload()) };
    let start = clock.now();
    let end = start + spec.duration;
    let shared = Shared {
        clock,
        recorder: Recorder::new(start),
        end,
        sources: vec![Source::Recorded(Feed::new(requests, room, start, end))],
        buffer: vec![0; READ_BUFFER].into_boxed_slice(),
    };
    let connections = vec![connection];
    let (measured, sources) =
        supervise(&spec.target, shared, connections, spec.drain_limit, cancel, on_interval).await?;
    match refused(&spec.target, &sources, room) {
        Some(error) => Err(error),
        None => Ok(Replayed::new(size, &measured)),
    }
}

fn payload() -> Rc<[u8]> {
    let mut payload = vec![0; PAYLOAD];
    Pcg64::seed_from_u64(1).fill_bytes(&mut payload); // random, so that nothing can make less of it
    payload.into()
}

fn refused(target: &Target, sources: &[Source], room: Room) -> Option<LoadError> {
    let feed = sources.iter().find_map(|source| match source {
        Source::Recorded(feed) => Some(feed),
        Source::Closed { .. } | Source::Open { .. } => None,
    })?;
    let (number, request) = feed.refused()?;
    let Room { size, least, most } = room;
    Some(LoadError::Request {
        target: target.to_string(),
        number,
        offset: request.offset,
        length: request.length,
        accepted: format!("multiples of {least} within its {size} bytes, at most {most} at a time"),
    })
}

impl Replayed {
    fn new(export_bytes: u64, measured: &Measured) -> Self {
        let total = &measured.total;
        Self {
            export_bytes,
            offered: total.offered,
            late: total.late,
            late_max: total.latest,
            unsent: measured.unsent,
            unanswered: measured.unanswered,
            errors: total.errors.iter().map(|(error, count)| (error_name(*error), *count)).collect(),
            elapsed: measured.elapsed,
            read_ns: total.latencies(Class::Read).clone(),
            write_ns: total.latencies(Class::Write).clone(),
        }
    }
}
