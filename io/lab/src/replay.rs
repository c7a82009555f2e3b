//! Recorded loads, replayed in simulated time; and what a replay shows, in whatever time it ran.
//!
//! A replay in real time and one in simulated time are to be held against each other. So both get the very
//! same requests, made here: at their times divided by a speed, and [`fold`]ed into the volume; and both come
//! to an [`Outcome`]. What remains different is what is to be compared: threads, sockets and a clock on the
//! one side, and nothing but the engine and the array on the other.
//!
//! A trace is read twice. The first time ([`Recording::survey`]) finds out how long it is and what is wrong
//! with it, so that the error in its last line does not come after an hour of replaying, and time left is
//! known.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hdrhistogram::Histogram;
use weir_engine::Event;
use weir_model::{Direction, Instant, Span, Verdict};
use weir_sim::{Observer, Scenario, Trace, TraceRequest, Utilisation, Violation, World};

use crate::trace::{self, Account, Format, Remarks, TraceError, TraceReader};

/// The longest request that is made of a recorded one: what NBD servers take unless they say otherwise (NBD
/// protocol, "Block sizes").
const MAX_LENGTH: u32 = 32 << 20;

/// How long to wait at the end for what is outstanding.
pub const DRAIN: Span = Span::from_secs(10);

/// Significant decimal digits of a latency.
const DIGITS: u8 = 3;

/// A trace and how it is replayed.
#[derive(Clone, PartialEq, Debug)]
pub struct Recording {
    /// The file.
    pub path: PathBuf,
    /// How it is written; `None`: to be found out.
    pub format: Option<Format>,
    /// Whether broken lines are counted and passed over.
    pub skip_broken: bool,
    /// By what times are divided; above zero.
    pub speed: f64,
    /// Replay time at which it ends; `None`: with the trace.
    pub duration: Option<Span>,
}

/// What a recording holds.
#[derive(Clone, PartialEq, Debug)]
pub struct Survey {
    /// How the trace is written.
    pub format: Format,
    /// How many requests are replayed.
    pub requests: u64,
    /// How long the replay takes: until just after the last request, or the duration that was given.
    pub duration: Span,
    /// What was put up with in the part of the trace that is replayed.
    pub remarks: Remarks,
}

/// What a replay showed for one volume.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Requests whose time came.
    pub offered: u64,
    /// Requests answered with an error.
    pub errors: u64,
    /// Requests that were not answered, or not even sent, when waiting for them was over.
    pub unanswered: u64,
    /// Requests that were sent late, because who replays them could not keep up; none in simulated time.
    pub late: u64,
    /// By how much at most.
    pub late_max: Span,
    /// From the start to the end, or to the last answer if that came later.
    pub elapsed: Span,
    /// How long reads took, from their time on, in nanoseconds.
    pub read_ns: Histogram<u64>,
    /// The same of the writes.
    pub write_ns: Histogram<u64>,
    /// How long requests were held back before they were sent to the array, all together; known in simulated
    /// time only.
    pub queued_time: Span,
    /// How long they were at the array, all together; known in simulated time only.
    pub device_time: Span,
    /// How busy the array was, with all of its volumes, until the last of them had its last answer; known in
    /// simulated time only.
    pub utilisation: Utilisation,
    /// How the SLO windows of the volume were judged.
    pub windows: Windows,
}

/// How the SLO windows of a volume were judged. Windows in which there was nothing to judge are not counted.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Windows {
    /// The mean latency was at most what was promised.
    pub met: u64,
    /// It was above.
    pub missed: u64,
    /// More was offered than the SLO covers.
    pub out_of_contract: u64,
}

impl Recording {
    /// Reads all of it that is to be replayed. `on_progress` is told how many bytes of the file were read,
    /// now and then.
    ///
    /// # Errors
    /// If it is no trace, or a line of it is broken.
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

    /// The requests as a volume of `size` bytes gets them: at their times in the replay, folded into the
    /// volume. If the trace cannot be read to its end, they end before it, and the account says why
    /// ([`Remarks::failure`]).
    ///
    /// # Errors
    /// If it is no trace.
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

/// A request of a recorded device, on a volume of `size` bytes: the offset modulo the size, which keeps
/// neighbours neighbours and alignment as it is; and what reaches over the end is cut off there.
///
/// # Panics
/// If `size` is zero.
pub fn fold(request: TraceRequest, size: u64) -> TraceRequest {
    let offset = request.offset % size;
    let room = u32::try_from(size - offset).unwrap_or(u32::MAX);
    TraceRequest { offset, length: request.length.min(room).min(MAX_LENGTH), ..request }
}

/// Runs a pool whose volumes in the places given are loaded by traces that are over after `duration`. An
/// outcome for each volume of the scenario, whose own duration does not matter.
///
/// # Errors
/// If something happens that must not happen in any run.
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

    /// The same a second.
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
    /// Never: a histogram that grows by itself takes any other.
    pub fn both_ns(&self) -> Histogram<u64> {
        let mut both = self.read_ns.clone();
        both.add(&self.write_ns).expect("a histogram that grows by itself takes any other");
        both
    }
}

impl Windows {
    /// The share of the windows with a promise in which it was kept, 0 to 1; `None` if there were none.
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

/// What is collected in a run.
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
            | Event::Controlled { .. }
            | Event::Granted { .. }
            | Event::Allocated { .. } => {}
        }
    }
}

#[cfg(test)]
mod tests;
