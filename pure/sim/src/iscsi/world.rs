//! The run: what happens, in the order of time.

use std::collections::BTreeMap;

use rand::RngExt;
use weir_model::{Instant, Span};
use weir_throttle::Connection;

use super::agent::{self, Agent, Known};
use super::disk::{Disk, VolumeCounters};
use super::initiator::{Next, Working};
use super::network::Network;
use super::options::{Delays, FixedDelay, Initiator, Mishap, TargetOptions};
use super::tcp::TcpCounts;
use crate::event_queue::EventQueue;
use crate::random::Seed;

/// The interval of the law and of the samples.
const INTERVAL: Span = Span::from_millis(100);
/// Initiators do not begin at the same instant, but within this time.
const JITTER: Span = Span::from_millis(5);
/// Bytes of a command or a response: a header and its TCP and IP headers.
const HEADER: u32 = 100;

/// A target with its initiators, in simulated time.
#[derive(Debug)]
pub struct TargetWorld {
    options: TargetOptions,
    events: EventQueue<Event>,
    disks: BTreeMap<u32, Disk>,
    volumes: Vec<VolumeCounters>,
    initiators: Vec<Working>,
    known: Vec<Known>,
    network: Network,
    agent: Agent,
    interval: TargetSample,
}

/// What happened in an interval.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct TargetSample {
    /// How many requests the initiators began.
    pub begun: u64,
    /// How many of their requests were answered.
    pub answered: u64,
    /// How many reads the disks finished.
    pub reads: u64,
    /// How long these were at the disks, in sum.
    pub read_time: Span,
    /// The EWMA of the law of the first volume group, at the end of the interval.
    pub ewma: Span,
    /// The threshold of that law.
    pub threshold: Span,
    /// The delay of that law from the end of the interval on; zero while there is no member.
    pub delay: Span,
    /// The initiators that the law delays from then on.
    pub members: Vec<usize>,
    /// The delay of the packets to each initiator from then on; nothing if they enter no leaf.
    pub delays: Vec<Option<Span>>,
    /// The bytes that each initiator has read.
    pub read: Vec<u64>,
    /// The bytes that each initiator has written.
    pub written: Vec<u64>,
}

/// A request of an initiator, in the session that it was begun in.
#[derive(Clone, Copy, Debug)]
struct Request {
    initiator: usize,
    session: u32,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    /// An initiator looks whether it begins a request.
    Looks(usize),
    /// A command is at the target, that was sent at that instant.
    Commands(Request, Instant),
    /// The target's demand for data is at the initiator.
    IsAsked(Request),
    /// The data of a write are at the target, that were sent at that instant.
    Delivers(Request, Instant),
    /// The disk has finished a request that came at that instant.
    IsFinished(Request, Instant),
    /// The answer is at the initiator.
    IsAnswered(Request),
    /// An interval ends.
    Interval,
    /// A fixed delay is set.
    SetDelay(FixedDelay),
    /// Something goes wrong.
    Mishap(usize, Mishap),
}

impl TargetWorld {
    /// The run of these options, at its start.
    ///
    /// # Panics
    /// If the throttle's settings cannot be, or there are more than 200 initiators.
    pub fn new(options: TargetOptions) -> Self {
        let seed = Seed(options.seed);
        let known = |initiator: &Initiator| Known {
            group: initiator.group,
            port: 40_000,
            is_logged_in: true,
            has_device: true,
            is_readable: true,
            written: 0,
        };
        let known: Vec<_> = options.initiators.iter().map(known).collect();
        let agent = match &options.delays {
            Delays::None => Agent::none(),
            Delays::Fixed(_) => Agent::fixed(&known),
            Delays::Throttle(settings) => Agent::throttle((**settings).clone()),
        };
        let disk = |group: u32| {
            let random = seed.stream(&format!("iscsi/disk {group}"));
            (group, Disk::new(options.service_time, options.spread, random))
        };
        let mut starts = seed.stream("iscsi/starts");
        let mut start = || Instant::ORIGIN + Span::from_nanos(starts.random_range(0..JITTER.as_nanos()));
        let count = options.initiators.len();
        let mut world = Self {
            events: EventQueue::new(),
            disks: options.initiators.iter().map(|initiator| disk(initiator.group)).collect(),
            volumes: vec![VolumeCounters::default(); count],
            initiators: options.initiators.iter().map(|known| Working::new(known.clone(), start())).collect(),
            known,
            network: Network::new(options.round_trip, options.bandwidth, count),
            agent,
            interval: TargetSample::empty(count),
            options,
        };
        world.push_first();
        world
    }

    fn push_first(&mut self) {
        if let Delays::Fixed(changes) = &self.options.delays {
            for &change in changes {
                self.events.push(Instant::ORIGIN + change.at, Event::SetDelay(change));
            }
        }
        for misfortune in &self.options.misfortunes {
            let event = Event::Mishap(misfortune.initiator, misfortune.what);
            self.events.push(Instant::ORIGIN + misfortune.at, event);
        }
        self.events.push(Instant::ORIGIN, Event::Interval);
        for (initiator, working) in self.initiators.iter().enumerate() {
            for &(from, _) in &working.options.bursts {
                self.events.push(Instant::ORIGIN + from, Event::Looks(initiator));
            }
        }
    }

    /// Runs to the end, and calls `each` at the end of each interval. Returns when it ended, and how TCP
    /// fared.
    pub fn run(mut self, mut each: impl FnMut(Instant, &TargetSample)) -> (Instant, TcpCounts) {
        let end = Instant::ORIGIN + self.options.duration;
        let mut now = Instant::ORIGIN;
        while let Some(at) = self.events.next_at().filter(|at| *at <= end && !self.is_done()) {
            now = at;
            while let Some(event) = self.events.pop_due(now) {
                if matches!(event, Event::Interval) {
                    self.handle_interval(now, &mut each);
                } else {
                    self.handle(now, event);
                }
            }
        }
        (now, self.network.counts)
    }

    /// Whether there are initiators with a limit, and all of these have reached it.
    fn is_done(&self) -> bool {
        let mut limited = self.initiators.iter().filter(|working| working.options.limit.is_some()).peekable();
        limited.peek().is_some() && limited.all(Working::is_done)
    }

    fn handle(&mut self, now: Instant, event: Event) {
        match event {
            Event::Looks(initiator) => self.look(now, initiator),
            Event::Commands(request, sent) => self.handle_command(now, request, sent),
            Event::IsAsked(request) if self.is_current(request) => {
                let bytes = self.initiators[request.initiator].options.request;
                let arrives = self.network.send_to_target(now, request.initiator, bytes);
                self.events.push(arrives, Event::Delivers(request, now));
            }
            Event::Delivers(request, sent) if self.is_current(request) => {
                let bytes = self.initiators[request.initiator].options.request;
                self.acknowledge(now, sent, request.initiator, bytes);
                self.begin(now, request);
            }
            Event::IsFinished(request, came) => self.handle_finish(now, request, came),
            Event::IsAnswered(request) if self.is_current(request) => {
                let working = &mut self.initiators[request.initiator];
                working.outstanding -= 1;
                self.interval.answered += 1;
                let bytes = u64::from(working.options.request);
                let of_kind =
                    if working.options.writes { &mut self.interval.written } else { &mut self.interval.read };
                of_kind[request.initiator] += bytes;
                self.look(now, request.initiator);
            }
            Event::SetDelay(change) => self.agent.aim(now, change.initiator, change.delay),
            Event::Mishap(initiator, what) => self.handle_mishap(now, initiator, what),
            // What a session left that has ended since.
            Event::IsAsked(_) | Event::Delivers(..) | Event::IsAnswered(_) | Event::Interval => {}
        }
    }

    /// An initiator begins all requests that it can.
    fn look(&mut self, now: Instant, initiator: usize) {
        loop {
            let working = &mut self.initiators[initiator];
            match working.next(now) {
                Next::Begin => {
                    self.interval.begun += 1;
                    let bytes = command_bytes(&working.options);
                    let request = Request { initiator, session: working.session };
                    let arrives = self.network.send_to_target(now, initiator, bytes);
                    self.events.push(arrives, Event::Commands(request, now));
                }
                Next::Wait(until) => {
                    // Each answer comes here while the pace says no. One look at that instant is enough.
                    if working.looks_at.replace(until) != Some(until) {
                        self.events.push(until, Event::Looks(initiator));
                    }
                    return;
                }
                Next::Rest => return,
            }
        }
    }

    fn handle_command(&mut self, now: Instant, request: Request, sent: Instant) {
        if !self.is_current(request) {
            return;
        }
        let bytes = command_bytes(&self.initiators[request.initiator].options);
        self.acknowledge(now, sent, request.initiator, bytes);
        let Working { options, .. } = &self.initiators[request.initiator];
        if options.writes && options.r2t {
            let arrives = self.answer(now, request.initiator, HEADER);
            self.events.push(arrives, Event::IsAsked(request));
        } else {
            self.begin(now, request);
        }
    }

    fn begin(&mut self, now: Instant, request: Request) {
        let Working { options, .. } = &self.initiators[request.initiator];
        if !options.writes {
            self.volumes[request.initiator].reads_in_flight += 1;
        }
        let disk = self.disks.get_mut(&options.group).expect("each group has a disk");
        self.events.push(disk.handle_request(now), Event::IsFinished(request, now));
    }

    fn handle_finish(&mut self, now: Instant, request: Request, came: Instant) {
        let Working { options, .. } = &self.initiators[request.initiator];
        let (writes, bytes) = (options.writes, options.request);
        let volume = &mut self.volumes[request.initiator];
        if writes {
            volume.bytes_written += u64::from(bytes);
            self.known[request.initiator].written += u64::from(bytes);
        } else {
            volume.reads += 1;
            volume.read_time += now.since(came);
            volume.reads_in_flight = volume.reads_in_flight.saturating_sub(1);
            self.interval.reads += 1;
            self.interval.read_time += now.since(came);
        }
        if self.is_current(request) {
            let answer = HEADER + if writes { 0 } else { bytes };
            let arrives = self.answer(now, request.initiator, answer);
            self.events.push(arrives, Event::IsAnswered(request));
        }
    }

    fn handle_interval(&mut self, now: Instant, each: &mut impl FnMut(Instant, &TargetSample)) {
        self.agent.handle_interval(now, INTERVAL, &self.volumes, &self.known, &self.network);
        let seen = self.agent.seen(0);
        let delay_of = |(initiator, known)| self.agent.delay_of(initiator, known);
        self.interval.delays = self.known.iter().enumerate().map(delay_of).collect();
        self.interval.members = self.agent.members(&self.known);
        (self.interval.ewma, self.interval.threshold, self.interval.delay) =
            (seen.ewma, seen.threshold, seen.delay);
        let sample = std::mem::replace(&mut self.interval, TargetSample::empty(self.known.len()));
        if now > Instant::ORIGIN {
            each(now, &sample);
        }
        self.events.push(now + INTERVAL, Event::Interval);
    }

    fn handle_mishap(&mut self, now: Instant, initiator: usize, what: Mishap) {
        let (working, known) = (&mut self.initiators[initiator], &mut self.known[initiator]);
        match what {
            Mishap::LogsOut | Mishap::DeviceVanishes => {
                working.log_out();
                known.is_logged_in = false;
                known.has_device &= what == Mishap::LogsOut;
            }
            Mishap::LogsIn | Mishap::DeviceReturns if !known.is_logged_in => {
                working.log_in(now);
                (known.is_logged_in, known.has_device, known.written) = (true, true, 0);
                known.port += 1;
                self.look(now, initiator);
            }
            Mishap::LogsIn | Mishap::DeviceReturns => {}
            Mishap::CountersVanish => known.is_readable = false,
            Mishap::CountersReturn => {
                known.is_readable = true;
                self.volumes[initiator] = VolumeCounters::default();
            }
            Mishap::CountersNearWrap => self.volumes[initiator] = VolumeCounters::near_wrap(),
        }
    }

    fn is_current(&self, request: Request) -> bool {
        let working = &self.initiators[request.initiator];
        working.is_logged_in && working.session == request.session
    }

    fn answer(&mut self, now: Instant, initiator: usize, bytes: u32) -> Instant {
        let connection = self.connection(initiator);
        self.network.send_to_initiator(now, initiator, bytes, connection, &self.agent.kernel)
    }

    fn acknowledge(&mut self, now: Instant, sent: Instant, initiator: usize, bytes: u32) {
        let connection = self.connection(initiator);
        self.network.acknowledge(now, sent, initiator, bytes, connection, &self.agent.kernel);
    }

    fn connection(&self, initiator: usize) -> Connection {
        agent::connection(initiator, &self.known[initiator])
    }
}

/// Bytes of the packets of a command, with the data of a write that does not wait to be asked.
fn command_bytes(options: &Initiator) -> u32 {
    HEADER + if options.writes && !options.r2t { options.request } else { 0 }
}

impl TargetSample {
    fn empty(initiators: usize) -> Self {
        Self { read: vec![0; initiators], written: vec![0; initiators], ..Self::default() }
    }
}
