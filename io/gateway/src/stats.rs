//! A volume's counters and histograms, all computed from the engine's events.

use hdrhistogram::Histogram;
use weir_engine::{WindowReport, WindowTraffic};
use weir_model::{Direction, Instant, IoKind, SloGoal, Span, Verdict};
use weir_status::{
    BUCKET_BOUNDS_US, JudgedWindow, LatencyBuckets, RequestCounters, SloAttainment, StageLatencies,
    WindowCounters, WindowHistory, WindowStatus,
};

/// The longest latency that the window's histogram tells apart from longer ones, in microseconds.
const HIGHEST_US: u64 = 60_000_000;

/// Significant digits in the window's histogram: its p99 is exact to 1 %.
const WINDOW_DIGITS: u8 = 2;

/// How many buckets are exported. Each request is counted in three of them. The counts are kept as they are
/// exported, because finding a cell of a finer histogram costs several times as much.
const BUCKETS: usize = BUCKET_BOUNDS_US.len() + 1;

/// The counts of one volume.
#[derive(Debug)]
pub(crate) struct VolumeStats {
    kinds: [KindCounters; IoKind::ALL.len()],
    latency: [Stages; 2],
    windows: WindowCounters,
    history: WindowHistory,
    /// Total latency of the reads and writes that were answered in the window that is running.
    window: Histogram<u64>,
    window_bytes: u64,
    last_window: Option<WindowStatus>,
    last_judged: Option<JudgedWindow>,
}

#[derive(Clone, Copy, Default, Debug)]
struct KindCounters {
    count: u64,
    bytes: u64,
    errors: u64,
}

#[derive(Debug)]
struct Stages {
    queued: Latencies,
    device: Latencies,
    total: Latencies,
}

#[derive(Debug)]
struct Latencies {
    /// By bucket: how many latencies are below its bound, and not below the bound before.
    counts: [u64; BUCKETS],
    sum: Span,
}

/// One answered request, as the engine's event reports it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answered {
    pub(crate) kind: IoKind,
    pub(crate) length: u32,
    pub(crate) ok: bool,
    pub(crate) queued: Span,
    pub(crate) device: Span,
    pub(crate) total: Span,
}

impl VolumeStats {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            kinds: [KindCounters::default(); IoKind::ALL.len()],
            latency: [Stages::new(), Stages::new()],
            windows: WindowCounters::default(),
            history: WindowHistory::new(now),
            window: Histogram::new_with_bounds(1, HIGHEST_US, WINDOW_DIGITS)
                .expect("constant bounds are valid"),
            window_bytes: 0,
            last_window: None,
            last_judged: None,
        }
    }

    pub(crate) fn record(&mut self, answered: &Answered) {
        let counters = &mut self.kinds[answered.kind.index()];
        counters.count += 1;
        if !answered.ok {
            counters.errors += 1;
            return;
        }
        counters.bytes += u64::from(answered.length);
        let Some(direction) = answered.kind.direction() else { return };
        let stages = &mut self.latency[direction_index(direction)];
        stages.queued.record(answered.queued);
        stages.device.record(answered.device);
        stages.total.record(answered.total);
        self.window.saturating_record(answered.total.as_micros());
        self.window_bytes += u64::from(answered.length);
    }

    /// A window has ended, where windows have this `length`.
    #[allow(clippy::cast_precision_loss)]
    pub(crate) fn end_window(&mut self, now: Instant, traffic: &WindowTraffic, length: Span) {
        self.history.note_length(now, traffic.offered.over, length);
        let seconds = traffic.offered.over.as_secs_f64().max(f64::MIN_POSITIVE);
        self.last_window = Some(WindowStatus {
            offered_iops: traffic.offered.rate(),
            iops: traffic.answered as f64 / seconds,
            bytes_per_s: self.window_bytes as f64 / seconds,
            mean_us: traffic.mean_latency.map(microseconds),
            p99_us: (!self.window.is_empty()).then(|| self.window.value_at_quantile(0.99)),
        });
        self.window.reset();
        self.window_bytes = 0;
    }

    /// A window was judged.
    pub(crate) fn close_window(&mut self, now: Instant, report: &WindowReport) {
        let WindowReport { mean_latency, target, verdict, .. } = *report;
        match verdict {
            Verdict::Met => self.windows.met += 1,
            Verdict::Missed => self.windows.missed += 1,
            Verdict::OutOfContract => self.windows.out_of_contract += 1,
            Verdict::Idle => self.windows.idle += 1,
            Verdict::NoSlo => {}
        }
        if matches!(verdict, Verdict::Met | Verdict::Missed) {
            self.history.record(now, verdict == Verdict::Met);
        }
        let (mean_us, target_us) = (mean_latency.map(microseconds), target.map(Span::as_micros));
        self.last_judged = Some(JudgedWindow { mean_us, target_us, verdict });
    }

    pub(crate) fn requests(&self) -> Vec<RequestCounters> {
        let of = |kind: IoKind| {
            let KindCounters { count, bytes, errors } = self.kinds[kind.index()];
            RequestCounters { kind, count, bytes, errors }
        };
        IoKind::ALL.map(of).into()
    }

    pub(crate) fn latency(&self) -> [StageLatencies; 2] {
        self.latency.each_ref().map(|stages| StageLatencies {
            queued: stages.queued.buckets(),
            device: stages.device.buckets(),
            total: stages.total.buckets(),
        })
    }

    pub(crate) fn windows(&self) -> WindowCounters {
        self.windows
    }

    pub(crate) fn attainment(&self, now: Instant, goal: SloGoal) -> SloAttainment {
        self.history.attainment(now, self.windows, goal)
    }

    pub(crate) fn last_window(&self) -> Option<WindowStatus> {
        self.last_window.clone()
    }

    pub(crate) fn last_judged(&self) -> Option<JudgedWindow> {
        self.last_judged.clone()
    }
}

impl Stages {
    fn new() -> Self {
        Self { queued: Latencies::new(), device: Latencies::new(), total: Latencies::new() }
    }
}

impl Latencies {
    fn new() -> Self {
        Self { counts: [0; BUCKETS], sum: Span::ZERO }
    }

    fn record(&mut self, latency: Span) {
        self.counts[bucket(latency.as_micros())] += 1;
        self.sum += latency;
    }

    fn buckets(&self) -> LatencyBuckets {
        LatencyBuckets { counts: self.counts.into(), sum_s: self.sum.as_secs_f64() }
    }
}

/// How many of [`BUCKET_BOUNDS_US`] are not above `us`. From the first on, the bounds are all powers of two,
/// so the logarithm gives the number.
fn bucket(us: u64) -> usize {
    const FIRST: u32 = BUCKET_BOUNDS_US[0].ilog2();
    let above_first = us.checked_ilog2().and_then(|power| power.checked_sub(FIRST));
    above_first.map_or(0, |powers| (powers as usize + 1).min(BUCKETS - 1))
}

#[allow(clippy::cast_precision_loss)]
fn microseconds(span: Span) -> f64 {
    span.as_nanos() as f64 / 1e3
}

fn direction_index(direction: Direction) -> usize {
    match direction {
        Direction::Read => 0,
        Direction::Write => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(total_us: u64, ok: bool) -> Answered {
        let total = Span::from_micros(total_us);
        Answered { kind: IoKind::Read, length: 4096, ok, queued: Span::ZERO, device: total, total }
    }

    #[test]
    fn a_latency_lands_in_the_bucket_whose_bound_is_the_next_power_of_two_above_it() {
        let mut stats = VolumeStats::new(Instant::ORIGIN);
        for (us, bucket) in [(0, 0), (7, 0), (8, 1), (15, 1), (16, 2), (1023, 7), (1024, 8), (70_000_000, 22)]
        {
            let before = stats.latency()[0].total.counts.clone();
            stats.record(&answered(us, true));
            let after = stats.latency()[0].total.counts.clone();
            let changed: Vec<_> = (0..after.len()).filter(|&i| after[i] != before[i]).collect();
            assert_eq!(changed, [bucket], "{us} us");
        }
    }

    #[test]
    fn the_bucket_of_a_latency_follows_from_the_bounds() {
        let edges = BUCKET_BOUNDS_US.iter().flat_map(|&bound| [bound - 1, bound, bound + 1]);
        for us in edges.chain([0, 1, u64::MAX]) {
            assert_eq!(bucket(us), BUCKET_BOUNDS_US.partition_point(|&bound| bound <= us), "{us} us");
        }
    }

    #[test]
    fn an_error_is_counted_and_not_timed() {
        let mut stats = VolumeStats::new(Instant::ORIGIN);
        stats.record(&answered(100, false));
        let reads = &stats.requests()[IoKind::Read.index()];
        assert_eq!((reads.count, reads.errors, reads.bytes), (1, 1, 0));
        assert!(stats.latency()[0].total.counts.iter().all(|&count| count == 0));
    }
}
