//! Recorded loads, replayed in simulated time; and the outcome of a replay, in real or in simulated time.
//!
//! People compare a replay in real time with one in simulated time. So both get the very same requests, made
//! here: their times divided by a speed, and their offsets [`fold`]ed into the volume. Both give an
//! [`Outcome`]. The differences that remain are the ones to compare: threads, sockets and a clock on the one
//! side, only the engine and the array on the other.
//!
//! A trace is read twice. The first reading ([`Recording::survey`]) finds its length and its errors. So an
//! error in the last line does not come after an hour of replaying, and the remaining time is known.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hdrhistogram::Histogram;
use weir_engine::Event;
use weir_model::{Direction, Instant, Span, Verdict};
use weir_sim::{Observer, Scenario, Trace, TraceRequest, Utilisation, Violation, World};

use crate::trace::{self, Account, Format, Remarks, TraceError, TraceReader};

/// The longest request that is made of a recorded one. NBD servers accept requests up to this length unless
/// they say otherwise (NBD protocol, "Block sizes").
const MAX_LENGTH: u32 = 32 << 20;

/// How long to wait at the end for outstanding requests.
pub const DRAIN: Span = Span::from_secs(10);

/// Significant decimal digits of a latency.
const DIGITS: u8 = 3;

/// A trace and how it is replayed.
#[derive(Clone, PartialEq, Debug)]
pub struct Recording {
    /// The file.
    pub path: PathBuf,
    /// The format; `None`: the first lines decide.
    pub format: Option<Format>,
    /// Whether broken lines are counted and passed over.
    pub skip_broken: bool,
    /// The number by which times are divided; above zero.
    pub speed: f64,
    /// How much replay time to replay; `None`: to the end of the trace.
    pub duration: Option<Span>,
}

/// The findings of the first reading of a recording.
#[derive(Clone, PartialEq, Debug)]
pub struct Survey {
    /// The format of the trace.
    pub format: Format,
    /// How many requests are replayed.
    pub requests: u64,
    /// How long the replay takes: until just after the last request, or the duration that was given.
    pub duration: Span,
    /// The irregularities that the reader tolerated in the part of the trace that is replayed.
    pub remarks: Remarks,
}

/// The outcome of a replay for one volume.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Requests whose time came.
    pub offered: u64,
    /// Requests answered with an error.
    pub errors: u64,
    /// Requests without an answer when the wait at the end was over, including requests that were never sent.
    pub unanswered: u64,
    /// Requests that were sent late, because the replaying machine could not keep up; none in simulated time.
    pub late: u64,
    /// The longest such delay.
    pub late_max: Span,
    /// From the start to the end, or to the last answer if that came later.
    pub elapsed: Span,
    /// The latencies of reads in nanoseconds, each from the request's time in the replay on.
    pub read_ns: Histogram<u64>,
    /// The latencies of writes in the same way.
    pub write_ns: Histogram<u64>,
    /// The sum of the times that requests were held back before they were sent to the array. Known in
    /// simulated time only.
    pub queued_time: Span,
    /// The sum of the times that requests were at the array. Known in simulated time only.
    pub device_time: Span,
    /// How busy the array was, with all of its volumes, until the last answer. Known in simulated time only.
    pub utilisation: Utilisation,
    /// The verdicts on the volume's SLO windows.
    pub windows: Windows,
}

/// The verdicts on the SLO windows of a volume. Windows in which there was nothing to judge are not counted.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Windows {
    /// Windows whose mean latency was at most the promised one.
    pub met: u64,
    /// Windows whose mean latency was above the promised one.
    pub missed: u64,
    /// Windows in which the clients offered more than the SLO covers.
    pub out_of_contract: u64,
}

impl Recording {
    /// Reads the part of the trace that is to be replayed. Now and then it tells `on_progress` how many bytes
    /// of the file it has read.
    ///
    /// # Errors
    /// If the file is no trace, or a line of it is broken.
    pub fn survey(&self, mut on_progress: impl FnMut(u64)) -> Result<Survey, TraceError> {
        let (reader, account) = self.open()?;
        let format = reader.format();
        let (mut requests, mut last) = (0_u64, None);
        for request in reader {
            let at = self.at(&request?);
            if self.is_over(at) {
                break;
            }
            requests += 1;
            last = Some(at);
            if requests.is_multiple_of(1024) {
                on_progress(account.bytes_read());
            }
        }
        let after_last = last.map_or(Span::ZERO, |at: Span| at + Span::from_nanos(1));
        let duration = self.duration.unwrap_or(after_last);
        Ok(Survey { format, requests, duration, remarks: account.remarks() })
    }

    /// The requests for a volume of `size` bytes: at their times in the replay, folded into the volume. If
    /// the trace cannot be read to its end, the requests end there, and the account says why
    /// ([`Remarks::failure`]).
    ///
    /// # Errors
    /// If the file is no trace.
    pub fn requests(&self, size: u64) -> Result<(Trace, Account), TraceError> {
        let (reader, account) = self.open()?;
        let this = self.clone();
        let requests = reader
            .map_while(Result::ok)
            .map(move |request| fold(TraceRequest { at: this.at(&request), ..request }, size));
        let this = self.clone();
        Ok((Box::new(requests.take_while(move |request| !this.is_over(request.at))), account))
    }

    fn open(&self) -> Result<(TraceReader, Account), TraceError> {
        let reader = trace::open(&self.path, self.format)?.skip_broken(self.skip_broken);
        let account = reader.account();
        Ok((reader, account))
    }

    fn at(&self, request: &TraceRequest) -> Span {
        Span::from_secs_f64(request.at.as_secs_f64() / self.speed)
    }

    fn is_over(&self, at: Span) -> bool {
        self.duration.is_some_and(|duration| at >= duration)
    }
}

/// Moves a request of the recorded device onto a volume of `size` bytes. The new offset is the old one modulo
/// the size: neighbours stay neighbours, and alignment stays as it is. The part of a request beyond the
/// volume's end is cut off.
///
/// # Panics
/// If `size` is zero.
pub fn fold(request: TraceRequest, size: u64) -> TraceRequest {
    let offset = request.offset % size;
    let room = u32::try_from(size - offset).unwrap_or(u32::MAX);
    TraceRequest { offset, length: request.length.min(room).min(MAX_LENGTH), ..request }
}

/// Runs a pool, in which the volumes in the given places replay traces that are over after `duration`.
/// Returns an outcome for each volume of the scenario. The scenario's own duration does not matter.
///
/// # Errors
/// If the run breaks a rule that holds for every run.
///
/// # Panics
/// If the scenario makes no sense, or has no volume in one of the places.
pub fn simulate(
    mut scenario: Scenario,
    traces: Vec<(usize, Trace)>,
    duration: Span,
) -> Result<Vec<Outcome>, Box<Violation>> {
    let whole = duration + DRAIN;
    scenario.duration = whole;
    let offered: Vec<Arc<AtomicU64>> = scenario.volumes.iter().map(|_| Arc::default()).collect();
    let mut tallies = Tallies { volumes: vec![Tally::new(); scenario.volumes.len()] };
    let mut world = World::new(scenario);
    for (volume, trace) in traces {
        let offered = Arc::clone(&offered[volume]);
        let count = move |_: &TraceRequest| {
            offered.fetch_add(1, Ordering::Relaxed);
        };
        world.replay(volume, Box::new(trace.inspect(count)));
    }
    let utilisation = world.run(&mut tallies).map_err(Box::new)?.utilisation;
    let elapsed = tallies.volumes.iter().map(|tally| tally.elapsed(duration)).max().unwrap_or(duration);
    let utilisation = utilisation.within(whole, elapsed);
    let outcome = |(tally, offered): (Tally, Arc<AtomicU64>)| {
        tally.outcome(offered.load(Ordering::Relaxed), duration, utilisation)
    };
    Ok(tallies.volumes.into_iter().zip(offered).map(outcome).collect())
}

impl Outcome {
    /// Requests answered without an error.
    pub fn completed(&self) -> u64 {
        self.read_ns.len() + self.write_ns.len()
    }

    /// Requests answered without an error, a second.
    pub fn rate_iops(&self) -> f64 {
        per_second(self.completed(), self.elapsed)
    }

    /// Requests whose time came, a second.
    pub fn offered_iops(&self) -> f64 {
        per_second(self.offered, self.elapsed)
    }

    /// Latencies of reads and writes together, in nanoseconds.
    ///
    /// # Panics
    /// Never: a histogram that grows by itself can take in any other.
    pub fn both_ns(&self) -> Histogram<u64> {
        let mut both = self.read_ns.clone();
        both.add(&self.write_ns).expect("a histogram that grows by itself takes any other");
        both
    }
}

impl Windows {
    /// The share of the windows with a promise in which the volume's promise was kept, 0 to 1; `None` if
    /// there were none.
    #[allow(clippy::cast_precision_loss)] // exact up to 2^53 windows
    pub fn attainment(&self) -> Option<f64> {
        let judged = self.met + self.missed;
        (judged > 0).then(|| self.met as f64 / judged as f64)
    }
}

#[allow(clippy::cast_precision_loss)] // exact up to 2^53 requests
fn per_second(count: u64, elapsed: Span) -> f64 {
    if elapsed.is_zero() { 0.0 } else { count as f64 / elapsed.as_secs_f64() }
}

/// The counts of a run.
struct Tallies {
    volumes: Vec<Tally>,
}

#[derive(Clone)]
struct Tally {
    latency_ns: [Histogram<u64>; 2],
    errors: u64,
    last_answer: Instant,
    queued_time: Span,
    device_time: Span,
    windows: Windows,
}

impl Tally {
    fn new() -> Self {
        let histogram = || Histogram::new(DIGITS).expect("three digits are allowed");
        Self {
            latency_ns: [histogram(), histogram()],
            errors: 0,
            last_answer: Instant::ORIGIN,
            queued_time: Span::ZERO,
            device_time: Span::ZERO,
            windows: Windows::default(),
        }
    }

    /// From the start to the end, or to the last answer if that came later.
    fn elapsed(&self, duration: Span) -> Span {
        duration.max(self.last_answer.since(Instant::ORIGIN))
    }

    fn outcome(self, offered: u64, duration: Span, utilisation: Utilisation) -> Outcome {
        let elapsed = self.elapsed(duration);
        let [read_ns, write_ns] = self.latency_ns;
        let answered = read_ns.len() + write_ns.len() + self.errors;
        Outcome {
            offered,
            errors: self.errors,
            unanswered: offered - answered,
            late: 0,
            late_max: Span::ZERO,
            elapsed,
            read_ns,
            write_ns,
            queued_time: self.queued_time,
            device_time: self.device_time,
            utilisation,
            windows: self.windows,
        }
    }
}

impl Observer for Tallies {
    fn on_event(&mut self, now: Instant, event: &Event) {
        match *event {
            Event::Finished { volume, kind, ok, queued, device, total, .. } => {
                let tally = &mut self.volumes[volume.0 as usize];
                tally.last_answer = now;
                tally.queued_time += queued;
                tally.device_time += device;
                let Some(direction) = kind.direction() else { return };
                if ok {
                    let of_kind = &mut tally.latency_ns[usize::from(direction == Direction::Write)];
                    of_kind
                        .record(total.as_nanos())
                        .expect("a histogram that grows by itself takes any value");
                } else {
                    tally.errors += 1;
                }
            }
            Event::WindowClosed { volume, window } => {
                let windows = &mut self.volumes[volume.0 as usize].windows;
                match window.verdict {
                    Verdict::Met => windows.met += 1,
                    Verdict::Missed => windows.missed += 1,
                    Verdict::OutOfContract => windows.out_of_contract += 1,
                    Verdict::Idle | Verdict::NoSlo => {}
                }
            }
            Event::Aborted { .. }
            | Event::Allowed(_)
            | Event::InOrder(_)
            | Event::Covered { .. }
            | Event::OutOfReach(_)
            | Event::TakingTurns { .. }
            | Event::Weighed { .. }
            | Event::WindowEnded { .. }
            | Event::Stands(_)
            | Event::Controlled { .. }
            | Event::Granted { .. }
            | Event::Allocated { .. }
            | Event::Throttled { .. } => {}
        }
    }
}

#[cfg(test)]
mod tests;
