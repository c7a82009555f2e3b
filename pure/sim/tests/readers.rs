//! A reader beside twelve writers on one disk, with and without the one-sided PID: the example of the
//! packet-delay paper (§3.6), in a gateway.

use std::num::NonZeroU32;

use weir_engine::{Control, EngineConfig, Event, OneSidedPidConfig, PidConfig, VolumeConfig};
use weir_model::{Bandwidth, Instant, IoKind, Iops, Span, VolumeId};
use weir_sim::{
    ArrayOptions, Arrivals, Locality, MemberOptions, Observer, Phase, Scenario, StationOptions,
    VolumeScenario, Workload, World,
};

const SIZE: u64 = 1 << 30;
const SEEDS: std::ops::RangeInclusive<u64> = 1..=3;
const READER: VolumeId = VolumeId(0);
/// The writers write for so long, pause for 5 s, and so on.
const BURST: Span = Span::from_secs(15);
const CYCLE: Span = Span::from_secs(20);

/// 256 kB/s of random reads, as in the paper: 64 reads of 4 KiB a second.
fn reader() -> VolumeScenario {
    volume("reader", 1.0, Arrivals::Constant(Iops::new(64.0).unwrap()), None)
}

fn volume(name: &str, reads: f64, arrivals: Arrivals, ends: Option<Span>) -> VolumeScenario {
    let workload = Workload {
        arrivals,
        reads,
        sizes: vec![(4096, 1.0)],
        locality: Locality::Uniform,
        flush_every: None,
    };
    let mut phases = vec![Phase { at: Span::ZERO, workload: Some(workload) }];
    phases.extend(ends.map(|at| Phase { at, workload: None }));
    VolumeScenario {
        name: name.to_owned(),
        config: VolumeConfig::default(),
        start: 0,
        size: SIZE,
        phases,
        repeat: ends.map(|_| CYCLE),
        changes: Vec::new(),
    }
}

/// The reader, and three machines with four writing threads each, before a disk of 3 ms a request.
fn scenario(control: Control, seed: u64) -> Scenario {
    let four = Arrivals::Closed { threads: 4, think: Span::ZERO };
    let writers = (1..=3).map(|machine| volume(&format!("writer-{machine}"), 0.0, four, Some(BURST)));
    let servers = NonZeroU32::MIN;
    let disk = StationOptions { servers, service_time: Span::from_millis(3), exponential: false };
    Scenario {
        seed,
        duration: Span::from_secs(40),
        engine: EngineConfig { control, ..EngineConfig::default() },
        array: ArrayOptions::bare(MemberOptions::Station(disk), SIZE),
        volumes: [reader()].into_iter().chain(writers).collect(),
        faults: Vec::new(),
    }
}

fn pid(threshold: Span) -> Control {
    let law = OneSidedPidConfig { ceiling: Span::from_millis(100), ..OneSidedPidConfig::default() };
    let write_limit = Bandwidth::new(256 << 10).unwrap();
    Control::Pid(PidConfig { law, threshold, write_limit })
}

/// What was seen of a run.
#[derive(Default)]
struct Seen {
    /// The wait of each read, by the instant at which it was answered.
    waits: Vec<(Instant, Span)>,
    /// The end of each control period: the smoothed wait, and the delay.
    periods: Vec<(Instant, Span, Span)>,
    /// How many writes were answered.
    writes: u32,
}

impl Observer for Seen {
    fn on_event(&mut self, now: Instant, event: &Event) {
        match *event {
            Event::Finished { volume: READER, queued, device, .. } => self.waits.push((now, queued + device)),
            Event::Finished { kind: IoKind::Write, .. } => self.writes += 1,
            Event::Throttled { delay, wait } => self.periods.push((now, wait, delay)),
            _ => {}
        }
    }
}

impl Seen {
    fn of(control: Control, seed: u64) -> Self {
        let mut seen = Self::default();
        World::new(scenario(control, seed)).run(&mut seen).unwrap_or_else(|violation| panic!("{violation}"));
        seen
    }

    /// The mean wait of the reads within the bursts, but for the first 3 s of each.
    fn mean_wait(&self) -> f64 {
        let settled = self.waits.iter().filter(|(at, _)| is_settled(*at)).map(|(_, wait)| wait.as_secs_f64());
        let (count, sum) = settled.fold((0.0, 0.0), |(count, sum), wait| (count + 1.0, sum + wait));
        sum / count
    }
}

/// How far into its cycle of writing and pausing an instant is.
fn within_cycle(at: Instant) -> Span {
    Span::from_nanos(at.as_nanos() % CYCLE.as_nanos())
}

fn is_settled(at: Instant) -> bool {
    (Span::from_secs(3)..BURST).contains(&within_cycle(at))
}

#[test]
fn a_reader_beside_twelve_writers_keeps_its_wait_and_without_the_law_it_does_not() {
    for seed in SEEDS {
        let without = Seen::of(Control::None, seed);
        assert!(without.mean_wait() > 0.030, "seed {seed}: {} s", without.mean_wait());
        let mut writes = without.writes;
        for threshold in [20, 15, 10].map(Span::from_millis) {
            let with = Seen::of(pid(threshold), seed);
            let mean = with.mean_wait();
            assert!(mean <= threshold.as_secs_f64(), "seed {seed}, {threshold}: {mean} s");
            assert!(mean >= 0.7 * threshold.as_secs_f64(), "no more than needed: seed {seed}, {mean} s");
            assert!(with.writes < writes, "a shorter threshold costs more writes");
            writes = with.writes;
        }
    }
}

#[test]
fn within_a_second_of_a_pause_the_delay_is_zero_and_no_writer_is_delayed_until_it_writes_again() {
    for seed in SEEDS {
        for threshold in [20, 15, 10].map(Span::from_millis) {
            let seen = Seen::of(pid(threshold), seed);
            let pause = BURST + Span::from_secs(1);
            let in_pause = |at: Instant| within_cycle(at) >= pause;
            let late: Vec<_> =
                seen.periods.iter().filter(|(at, _, delay)| in_pause(*at) && !delay.is_zero()).collect();
            assert!(late.is_empty(), "seed {seed}, {threshold}: {late:?}");
        }
    }
}

#[test]
fn the_smoothed_wait_is_within_the_threshold_in_most_periods_of_a_burst() {
    for seed in SEEDS {
        for threshold in [20, 15, 10].map(Span::from_millis) {
            let seen = Seen::of(pid(threshold), seed);
            let settled = seen.periods.iter().filter(|(at, ..)| is_settled(*at));
            let (within, all) = settled.fold((0_u32, 0_u32), |(within, all), (_, wait, _)| {
                (within + u32::from(*wait <= threshold), all + 1)
            });
            let share = f64::from(within) / f64::from(all);
            assert!(share >= 0.9, "seed {seed}, {threshold}: {share}");
        }
    }
}
