//! Initiators that work and pause at set times, while fixed delays or an agent slow some of them down.
//!
//! One thread does all of it: it wakes up for each sample and for each event. The clients are processes that
//! are started before, and paused until their time has come, so that a start costs no time of the run.

use std::collections::BTreeMap;
use std::path::Path;
use std::thread;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use weir_clock::Clock;
use weir_lab::delay::{Burst, DelayChange, FixedDelay, Measured, Pattern, SAMPLE, Sample, ThrottleSpec};
use weir_model::{Instant, Span};

use super::{Party, kind};
use crate::bed::{Framework, Host};
use crate::clients::{Reader, Session, Stream};
use crate::fixed::FixedDelays;
use crate::gauges::{self, Volume, Volumes};
use crate::guarded::{Guarded, Watch};
use crate::slow_motion::SlowMotion;
use crate::stop::Stop;

/// How long clients may take to log in and to begin.
const PATIENCE: Span = Span::from_secs(90);
/// How many requests of a client's size make its begin. Others may read some blocks of a volume, too.
const BEGUN: u64 = 32;
/// How long volumes that have done nothing are at rest.
const REST: Duration = Duration::from_millis(500);
/// How often the thread wakes up: as often as the agent takes its turns.
const TURN: Span = Span::from_millis(100);
/// How often the kernel is told that fixed delays still hold.
const RENEW: Span = Span::from_secs(1);
/// The longest fixed delay, before slow motion.
const CEILING: Span = Span::from_millis(40);

/// What a run needs.
pub(super) struct Stage<'b> {
    pub(super) clock: &'b Clock,
    pub(super) stop: &'b Stop,
    pub(super) framework: Framework,
    pub(super) weir: &'b Path,
    pub(super) pace: SlowMotion,
}

/// The client of an initiator.
enum Load {
    /// It can be paused.
    Stream(Stream),
    /// It works all the time.
    Reader { _reads: Reader },
}

/// What happens at an instant of the run.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// The burst of this number, of all bursts, ends.
    Ends(usize),
    /// The delay of an initiator is set.
    Delay(usize, Span),
    /// The burst of this number begins.
    Begins(usize),
}

impl Stage<'_> {
    /// Sets the run up, and samples it.
    pub(super) fn measure(
        &self,
        parties: &[Party<'_>],
        throttle: &ThrottleSpec,
        duration: Span,
    ) -> anyhow::Result<Measured> {
        let hosts: Vec<Host> = parties.iter().map(|party| party.host.clone()).collect();
        let volumes = Volumes::find(&hosts)?;
        let loads = self.start(parties, duration, &volumes)?;
        let mut control = Control::begin(self, &hosts, parties, throttle)?;
        let mut plan = Plan::new(parties, throttle, duration);
        let before = gauges::tcp(&hosts)?;
        let mut run = Run {
            start: self.clock.now(),
            loads,
            measured: Measured { initiators: names(parties), ..Measured::default() },
        };
        let (mut last, mut sampled) = (volumes.read()?, Span::ZERO);
        let mut next = TURN;
        while next <= duration {
            self.stop.check()?;
            while let Some((at, events)) = plan.events.first_key_value().filter(|(at, _)| **at < next) {
                self.sleep_until(run.start + *at);
                run.act(self.clock.now(), events, &plan.bursts, &mut control)?;
                plan.events.pop_first();
            }
            self.sleep_until(run.start + next);
            let now = self.clock.now();
            control.turn(now)?;
            if next >= sampled + self.pace.slow(SAMPLE) {
                let counted = volumes.read()?;
                run.sample(now, &last, &counted);
                (last, sampled) = (counted, next);
            }
            // What was missed is not made up for: a sample says when it ended.
            next = (next + TURN).max(now.saturating_since(run.start));
        }
        run.measured.worked.iter_mut().filter(|worked| worked.to_us == 0).for_each(|worked| {
            worked.to_us = run.measured.samples.last().map_or(0, |sample| sample.at_us);
        });
        run.measured.tcp = gauges::tcp_since(before, &hosts)?;
        drop(run.loads);
        control.end(run.start, &mut run.measured)?;
        Ok(run.measured)
    }

    /// Starts all clients, waits until each has begun, and pauses those that can be.
    fn start(&self, parties: &[Party<'_>], duration: Span, volumes: &Volumes) -> anyhow::Result<Vec<Load>> {
        let before = self.at_rest(volumes)?;
        let mut loads = Vec::new();
        for Party { spec, host } in parties {
            let (bytes, depth) = (u64::from(spec.request.0.0), spec.threads.get());
            let all_the_time = spec.bursts(duration) == [(Span::ZERO, duration)];
            loads.push(match (spec.pace, spec.pattern) {
                (None, Pattern::Sequential) => {
                    Load::Stream(Stream::start(host, self.framework, kind(spec), depth, bytes)?)
                }
                (pace, Pattern::Random) if all_the_time && kind(spec) == crate::clients::Kind::Read => {
                    let session = Session::start(host, self.framework)?;
                    let pace = pace.map(|pace| pace.0);
                    Load::Reader { _reads: session.read_at_random(pace, depth, bytes)? }
                }
                _ => bail!("{}: there is no client for such a load", host.name),
            });
        }
        let by = self.clock.now() + PATIENCE;
        let mut begun = vec![false; loads.len()];
        while begun.contains(&false) {
            self.stop.check()?;
            ensure!(self.clock.now() < by, "some of the clients do not begin");
            thread::sleep(Duration::from_millis(20));
            let now = volumes.read()?;
            for (place, load) in loads.iter_mut().enumerate() {
                let done = (now[place] - before[place]).requests(parties[place].spec);
                if !begun[place] && done >= BEGUN {
                    begun[place] = true;
                    if let Load::Stream(stream) = load {
                        stream.pause()?;
                    }
                }
            }
        }
        Ok(loads)
    }

    /// Waits until the volumes do nothing, and returns their counters. The last requests of the clients of an
    /// earlier run would look like the first ones of this run's.
    fn at_rest(&self, volumes: &Volumes) -> anyhow::Result<Vec<Volume>> {
        let by = self.clock.now() + PATIENCE;
        loop {
            let before = volumes.read()?;
            thread::sleep(REST);
            if volumes.read()? == before {
                return Ok(before);
            }
            self.stop.check()?;
            ensure!(self.clock.now() < by, "clients of an earlier run go on");
        }
    }

    fn sleep_until(&self, instant: Instant) {
        thread::sleep(Duration::from_nanos(instant.saturating_since(self.clock.now()).as_nanos()));
    }
}

/// What is to happen, in order of time.
struct Plan {
    /// When each initiator works.
    bursts: Vec<(usize, Span, Span)>,
    /// By the time after the start. What happens at one instant is told as of one instant.
    events: BTreeMap<Span, Vec<Event>>,
}

impl Plan {
    fn new(parties: &[Party<'_>], throttle: &ThrottleSpec, duration: Span) -> Self {
        let bursts = parties.iter().enumerate();
        let bursts = bursts.flat_map(|(place, party)| {
            party.spec.bursts(duration).into_iter().map(move |(from, to)| (place, from, to))
        });
        let bursts: Vec<_> = bursts.collect();
        let changes: &[FixedDelay] = match throttle {
            ThrottleSpec::Fixed(changes) => changes,
            _ => &[],
        };
        let names = names(parties);
        let delays = changes.iter().flat_map(|change| {
            let places =
                change.initiators.iter().filter_map(|name| names.iter().position(|known| known == name));
            places.map(|place| (change.at.0, Event::Delay(place, change.delay.0)))
        });
        let begins = bursts.iter().enumerate().map(|(burst, (_, from, _))| (*from, Event::Begins(burst)));
        let ends = bursts.iter().enumerate().map(|(burst, (_, _, to))| (*to, Event::Ends(burst)));
        let mut events: BTreeMap<Span, Vec<Event>> = BTreeMap::new();
        for (at, event) in ends.chain(delays).chain(begins) {
            events.entry(at).or_default().push(event);
        }
        Self { bursts, events }
    }
}

fn names(parties: &[Party<'_>]) -> Vec<String> {
    parties.iter().map(|party| party.host.name.clone()).collect()
}

/// A run under way.
struct Run {
    start: Instant,
    loads: Vec<Load>,
    measured: Measured,
}

impl Run {
    fn act(
        &mut self,
        now: Instant,
        events: &[Event],
        bursts: &[(usize, Span, Span)],
        control: &mut Control<'_>,
    ) -> anyhow::Result<()> {
        let at_us = now.saturating_since(self.start).as_micros();
        for event in events {
            match *event {
                Event::Begins(burst) => {
                    let (place, from, _) = bursts[burst];
                    if let Load::Stream(stream) = &mut self.loads[place] {
                        stream.resume()?;
                    }
                    // It lasts to the end of the run unless that comes earlier.
                    let from_us = if from.is_zero() { 0 } else { at_us };
                    self.measured.worked.push(Burst { initiator: place, from_us, to_us: 0 });
                }
                Event::Ends(burst) => {
                    let (place, ..) = bursts[burst];
                    if let Load::Stream(stream) = &mut self.loads[place] {
                        stream.pause()?;
                    }
                    let mut worked = self.measured.worked.iter_mut().rev();
                    worked.find(|worked| worked.initiator == place).context("it has begun")?.to_us = at_us;
                }
                Event::Delay(place, delay) => {
                    let Control::Fixed { delays, .. } = control else {
                        bail!("only fixed delays are set at times")
                    };
                    delays.aim(place, delay);
                    let delay_us = delay.as_micros();
                    self.measured.changes.push(DelayChange { initiator: place, at_us, delay_us });
                }
            }
        }
        Ok(())
    }

    fn sample(&mut self, now: Instant, last: &[Volume], counted: &[Volume]) {
        let done: Vec<_> = counted.iter().zip(last).map(|(now, last)| *now - *last).collect();
        self.measured.samples.push(Sample {
            at_us: now.saturating_since(self.start).as_micros(),
            reads: done.iter().map(|volume| volume.reads).sum(),
            read_us: done.iter().map(|volume| volume.read_millis * 1_000).sum(),
            read: done.iter().map(|volume| volume.read).collect(),
            written: done.iter().map(|volume| volume.written).collect(),
            ..Sample::default()
        });
    }
}

/// Who slows initiators down.
enum Control<'h> {
    Nobody,
    Fixed { delays: FixedDelays, renewed: Instant },
    Agent { agent: Guarded, watch: Watch, hosts: &'h [Host] },
}

impl<'h> Control<'h> {
    fn begin(
        stage: &Stage<'_>,
        hosts: &'h [Host],
        parties: &[Party<'_>],
        throttle: &ThrottleSpec,
    ) -> anyhow::Result<Self> {
        match throttle {
            ThrottleSpec::Pid(pid) => {
                let mut agent = Guarded::of(
                    stage.weir,
                    pid,
                    stage.pace,
                    hosts,
                    parties.iter().map(|party| kind(party.spec)),
                )?;
                agent.wait_for(hosts.len())?;
                Ok(Self::Agent { agent, watch: Watch::default(), hosts })
            }
            ThrottleSpec::Fixed(_) => {
                let delays = FixedDelays::install(hosts, stage.pace.slow(CEILING))?;
                Ok(Self::Fixed { delays, renewed: stage.clock.now() })
            }
            ThrottleSpec::None | ThrottleSpec::Curve(_) => Ok(Self::Nobody),
        }
    }

    fn turn(&mut self, now: Instant) -> anyhow::Result<()> {
        match self {
            Self::Fixed { delays, renewed } => {
                delays.turn()?;
                if now.saturating_since(*renewed) >= RENEW {
                    *renewed = now;
                    delays.renew()?;
                }
                Ok(())
            }
            Self::Agent { agent, watch, .. } => watch.turn(now, agent),
            Self::Nobody => Ok(()),
        }
    }

    /// Ends it, and adds what the agent said to the samples.
    fn end(self, start: Instant, measured: &mut Measured) -> anyhow::Result<()> {
        match self {
            Self::Nobody => Ok(()),
            Self::Fixed { delays, .. } => delays.remove(),
            Self::Agent { agent, watch, hosts } => {
                let places: BTreeMap<_, _> = hosts.iter().map(Host::initiator).zip(0..).collect();
                for sample in &mut measured.samples {
                    watch.tell(start + Span::from_micros(sample.at_us), &places, sample);
                }
                agent.stop()
            }
        }
    }
}
