//! Listens to the events of a run, and collects the content of its record.

use weir_engine::{Event, WindowReport, WindowTraffic};
use weir_model::{Direction, Instant, Span};
use weir_sim::Observer;

use super::record::{Bound, Decision, DepthSample, Header, Record, VolumeTotal, Window};

/// The time between two samples of the queue depth.
const DEPTH_EVERY: Span = Span::from_millis(200);

/// Listens to a run.
pub(crate) struct Recorder {
    warm_up: Span,
    volumes: Vec<VolumeRecorder>,
    depths: Vec<DepthSample>,
    /// The highest peak since the last sample.
    peak: u32,
}

#[derive(Clone, Default)]
struct VolumeRecorder {
    windows: Vec<Window>,
    /// Until when they are judged, after the start of the run.
    judged: Span,
    bounds: Vec<Bound>,
    decisions: Vec<Decision>,
    running: RunningWindow,
    total: Total,
}

/// The answers in the window that is running. Latencies in microseconds.
#[derive(Clone, Default)]
struct RunningWindow {
    latencies: Vec<u64>,
    reads: u64,
    reads_us: u64,
    writes_us: u64,
    bytes: u64,
}

/// Mean and deviation in one pass (Welford 1962). The textbook's sum of squares loses the deviation if the
/// mean is large beside it.
#[derive(Clone, Copy, Default)]
struct Total {
    completed: u64,
    failed: u64,
    mean: f64,
    squares: f64,
    max_us: u64,
}

impl Recorder {
    pub(crate) fn new(volumes: usize, warm_up: Span) -> Self {
        Self { warm_up, volumes: vec![VolumeRecorder::default(); volumes], depths: Vec::new(), peak: 0 }
    }

    /// The record.
    pub(crate) fn finish(self, header: Header) -> Record {
        let mut record = Record::new(header);
        record.depths = self.depths;
        for (place, volume) in self.volumes.into_iter().enumerate() {
            record.windows[place] = volume.windows;
            record.bounds[place] = volume.bounds;
            record.decisions[place] = volume.decisions;
            record.totals.push(volume.total.finish());
        }
        record
    }

    fn on_depth(&mut self, now: Instant, depth: u32, peak: u32) {
        self.peak = self.peak.max(peak);
        let due = self.depths.last().map_or(0, |last| last.end_us) + DEPTH_EVERY.as_micros();
        let end_us = since_start(now).as_micros();
        if end_us >= due {
            self.depths.push(DepthSample { end_us, depth, peak: std::mem::take(&mut self.peak) });
        }
    }
}

impl Observer for Recorder {
    fn on_event(&mut self, now: Instant, event: &Event) {
        match event {
            Event::Finished { volume, kind, length, ok, total, .. } => {
                let Some(direction) = kind.direction() else { return };
                let volume = &mut self.volumes[volume.0 as usize];
                if *ok {
                    volume.running.on_answer(direction, *length, *total);
                }
                if since_start(now) >= self.warm_up {
                    volume.total.on_answer(*ok, *total);
                }
            }
            Event::WindowEnded { volume, traffic } => {
                let volume = &mut self.volumes[volume.0 as usize];
                volume.windows.push(volume.running.end(now, traffic));
            }
            Event::WindowClosed { volume, window } => self.volumes[volume.0 as usize].judge(window),
            Event::Controlled { depth, peak } => self.on_depth(now, depth.get(), *peak),
            Event::Granted { volume, grant, .. } => {
                let bound = Bound { at_us: since_start(now).as_micros(), requests: grant.concurrency.get() };
                self.volumes[volume.0 as usize].bounds.push(bound);
            }
            Event::Allocated { volume, reasoning } => {
                let decision = Decision { at_us: since_start(now).as_micros(), reasoning: *reasoning };
                self.volumes[volume.0 as usize].decisions.push(decision);
            }
            Event::Aborted { .. }
            | Event::Throttled { .. }
            | Event::Allowed(_)
            | Event::InOrder(_)
            | Event::Covered { .. }
            | Event::TakingTurns { .. }
            | Event::Weighed { .. }
            | Event::OutOfReach(_)
            | Event::Stands(_) => {}
        }
    }
}

impl VolumeRecorder {
    /// A window was judged. The windows of a volume are judged in their order. If several were judged as one,
    /// the last has the verdict.
    fn judge(&mut self, report: &WindowReport) {
        self.judged += report.offered.over;
        let end_us = self.judged.as_micros();
        let place = self.windows.partition_point(|window| window.end_us < end_us);
        let window = self.windows.get_mut(place).expect("a window that is judged has ended");
        window.target_us = report.target.map(Span::as_micros);
        window.verdict = Some(report.verdict);
    }
}

impl RunningWindow {
    fn on_answer(&mut self, direction: Direction, length: u32, latency: Span) {
        let us = latency.as_micros();
        self.latencies.push(us);
        self.bytes += u64::from(length);
        match direction {
            Direction::Read => {
                self.reads += 1;
                self.reads_us += us;
            }
            Direction::Write => self.writes_us += us,
        }
    }

    fn end(&mut self, now: Instant, traffic: &WindowTraffic) -> Window {
        self.latencies.sort_unstable();
        let completed = self.latencies.len() as u64;
        let quantile = |share: u64| {
            let place = (completed * share).div_ceil(100).saturating_sub(1);
            usize::try_from(place).ok().and_then(|place| self.latencies.get(place).copied())
        };
        let window = Window {
            end_us: since_start(now).as_micros(),
            offered: traffic.offered.total(),
            completed,
            reads: self.reads,
            bytes: self.bytes,
            read_us: self.reads_us.checked_div(self.reads),
            write_us: self.writes_us.checked_div(completed - self.reads),
            mean_us: traffic.mean_latency.map(Span::as_micros),
            p50_us: quantile(50),
            p95_us: quantile(95),
            p99_us: quantile(99),
            target_us: None,
            verdict: None,
        };
        self.latencies.clear();
        (self.reads, self.reads_us, self.writes_us, self.bytes) = (0, 0, 0, 0);
        window
    }
}

impl Total {
    #[allow(clippy::cast_precision_loss)] // far below 2^53
    fn on_answer(&mut self, ok: bool, latency: Span) {
        let us = latency.as_secs_f64() * 1e6;
        self.completed += 1;
        self.failed += u64::from(!ok);
        let from_mean = us - self.mean;
        self.mean += from_mean / self.completed as f64;
        self.squares += from_mean * (us - self.mean);
        self.max_us = self.max_us.max(latency.as_micros());
    }

    #[allow(clippy::cast_precision_loss)] // far below 2^53
    fn finish(self) -> VolumeTotal {
        let variance = self.squares / self.completed.max(1) as f64;
        VolumeTotal {
            completed: self.completed,
            failed: self.failed,
            mean_us: self.mean,
            deviation_us: variance.sqrt(),
            max_us: self.max_us,
        }
    }
}

fn since_start(now: Instant) -> Span {
    now.since(Instant::ORIGIN)
}

#[cfg(test)]
mod tests;
