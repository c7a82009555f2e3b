//! A controller and its gateways in simulated time, on streams that keep order, take time, lose messages and
//! break.
//!
//! Each process has a clock of its own. All clocks run at one rate, and no two show the same. Time goes on in
//! steps of [`STEP`]. After each step, the test adds up what the gateways hold.

#![allow(dead_code, unreachable_pub)] // each test uses a part of it, and no other crate any

mod gateway;

use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroU32;

use weir_control::{Grant, Limits, TotalConcurrency};
use weir_leases::{Connection, Controller, ControllerConfig, Event, Grants, Hello, Report, VolumeConfig};
use weir_model::{Bandwidth, Instant, Iops, MilliIops, Objective, Priority, Span};

pub use gateway::Gateway;

pub const STEP: Span = Span::from_millis(10);
pub const INTERVAL: Span = Span::from_millis(100);
pub const LEASE: Span = INTERVAL.saturating_mul(3);
pub const IOPS: u32 = 900;
pub const BANDWIDTH: u64 = 9_000_001;

/// A message on its way up.
#[derive(Clone, Debug)]
pub enum Up {
    Hello(Hello),
    Report(Report),
    Acknowledged(u64),
}

/// One direction of a stream: in order, each message as long on its way as the link is slow when it is sent.
#[derive(Clone, Debug)]
pub struct Link<M> {
    messages: VecDeque<(Instant, M)>,
    pub delay: Span,
    /// So many of the next are lost.
    pub lose: u32,
}

impl<M> Link<M> {
    fn new(delay: Span) -> Self {
        Self { messages: VecDeque::new(), delay, lose: 0 }
    }

    fn send(&mut self, now: Instant, message: M) {
        if self.lose > 0 {
            self.lose -= 1;
            return;
        }
        let after = self.messages.back().map_or(now, |(at, _)| *at);
        self.messages.push_back((after.max(now + self.delay), message));
    }

    fn receive(&mut self, now: Instant) -> Option<M> {
        let due = self.messages.front().is_some_and(|(at, _)| *at <= now);
        if due { self.messages.pop_front().map(|(_, message)| message) } else { None }
    }
}

/// A stream between a gateway and a controller.
#[derive(Debug)]
pub struct Stream {
    pub up: Link<Up>,
    pub down: Link<Grants>,
    /// What the controller knows it by.
    connection: Option<Connection>,
    /// Nothing gets through any more; who notices when.
    broken: Option<(Instant, Instant)>,
    /// The gateway has left it.
    left: bool,
}

/// All of it.
pub struct World {
    pub now: Instant,
    pub controller: Option<Controller>,
    pub gateways: Vec<Gateway>,
    /// By what name each gateway comes.
    names: Vec<String>,
    pub streams: Vec<(usize, Stream)>,
    pub config: ControllerConfig,
    pub volumes: BTreeMap<String, VolumeConfig>,
    pub events: Vec<Event>,
    /// How far the controller's clock is ahead; another for each that is started.
    offset: Span,
    /// The slowness of new streams.
    pub delay: Span,
}

/// Volumes: of one both rates are limited, of one its requests are.
pub fn volumes() -> BTreeMap<String, VolumeConfig> {
    let limited = Limits {
        concurrency: None,
        max_iops: Iops::new(f64::from(IOPS)),
        max_bandwidth: Bandwidth::new(BANDWIDTH),
    };
    let narrow = Limits { concurrency: NonZeroU32::new(9), ..Limits::default() };
    let with = |limits| VolumeConfig { limits, ..VolumeConfig::default() };
    [("free", Limits::default()), ("limited", limited), ("narrow", narrow)]
        .map(|(name, limits)| (name.to_owned(), with(limits)))
        .into()
}

/// The volumes of a gateway in a world of several: all of them, or one only at the first gateway, so that
/// what it is granted is less than what is left for it when it is away.
pub fn served(uneven: bool, gateway: usize) -> Vec<String> {
    let all = volumes().into_keys();
    all.filter(|volume| !uneven || gateway > 0 || volume == "narrow").collect()
}

pub fn priority(value: f64) -> VolumeConfig {
    let priority = Priority::new(value).expect("above zero");
    VolumeConfig { objective: Objective { priority, ..Objective::default() }, ..VolumeConfig::default() }
}

impl World {
    /// `gateways` gateways, all started and about to connect, and their controller.
    pub fn new(total: u32, gateways: usize, uneven: bool) -> Self {
        let names: Vec<String> = (0..gateways).map(|n| format!("gateway{n}")).collect();
        let total = TotalConcurrency::Fixed(NonZeroU32::new(total).expect("above zero"));
        let mut world = Self {
            now: Instant::ORIGIN + Span::from_secs(1_000),
            controller: None,
            gateways: (0..gateways).map(|n| Gateway::new(n, served(uneven, n))).collect(),
            names: names.clone(),
            streams: Vec::new(),
            config: ControllerConfig { total, interval: INTERVAL, gateways: names },
            volumes: volumes(),
            events: Vec::new(),
            offset: Span::ZERO,
            delay: Span::from_millis(20),
        };
        world.start_controller();
        world
    }

    pub fn total(&self) -> u32 {
        match self.config.total {
            TotalConcurrency::Fixed(total) => total.get(),
            TotalConcurrency::Auto => u32::MAX,
        }
    }

    /// The controller's time.
    pub fn theirs(&self) -> Instant {
        self.now + self.offset
    }

    pub fn start_controller(&mut self) {
        self.offset += Span::from_nanos(1_234_567_891);
        let volumes = self.volumes.clone();
        self.controller = Some(Controller::new(self.theirs(), self.config.clone(), volumes));
    }

    /// The controller dies; gateways notice after `notice`.
    pub fn stop_controller(&mut self, notice: Span) {
        self.controller = None;
        let at = self.now + notice;
        for (_, stream) in &mut self.streams {
            stream.break_off(at, at);
            stream.connection = None;
        }
    }

    /// Nothing gets through to a gateway on the stream that it has.
    pub fn cut(&mut self, gateway: usize, gateway_notices: Span, controller_notices: Span) {
        let (ours, theirs) = (self.now + gateway_notices, self.now + controller_notices);
        for (_, stream) in self.streams.iter_mut().filter(|(of, stream)| *of == gateway && !stream.left) {
            stream.break_off(ours, theirs);
        }
    }

    pub fn stop_gateway(&mut self, gateway: usize, down: Span) {
        self.cut(gateway, Span::ZERO, INTERVAL);
        self.gateways[gateway].stop(self.now + down);
    }

    /// A gateway sleeps: it hears nothing, does nothing, and remembers everything. Its clock goes on. Its
    /// connection is gone when it wakes up.
    pub fn suspend_gateway(&mut self, gateway: usize, asleep: Span) {
        self.cut(gateway, asleep, INTERVAL);
        self.gateways[gateway].sleep(self.now + asleep);
    }

    /// Another process is started with the name of a gateway.
    pub fn start_twin(&mut self, of: usize) -> usize {
        let twin = self.gateways.len();
        let served = volumes().into_keys().collect();
        self.gateways.push(Gateway::new(twin, served));
        self.gateways[twin].backoff = INTERVAL;
        self.names.push(self.names[of].clone());
        twin
    }

    /// How often a gateway of this name was accepted.
    pub fn accepted(&self, name: &str) -> usize {
        let accepted =
            |event: &&Event| matches!(event, Event::GatewayConnected { gateway, .. } if gateway == name);
        self.events.iter().filter(accepted).count()
    }

    pub fn set_volume(&mut self, name: &str, volume: VolumeConfig) {
        self.volumes.insert(name.to_owned(), volume);
        let now = self.theirs();
        if let Some(controller) = &mut self.controller {
            controller.set_volume(now, name, volume);
        }
    }

    pub fn set_total(&mut self, total: u32) {
        self.config.total = TotalConcurrency::Fixed(NonZeroU32::new(total).expect("above zero"));
        let now = self.theirs();
        if let Some(controller) = &mut self.controller {
            controller.set_config(now, self.config.clone());
        }
    }

    pub fn stream(&mut self, gateway: usize) -> Option<&mut Stream> {
        let mut streams = self.streams.iter_mut().filter(|(of, stream)| *of == gateway && !stream.left);
        streams.next().map(|(_, stream)| stream)
    }

    /// Time goes on by a step.
    pub fn step(&mut self) {
        self.now = self.now + STEP;
        self.notice();
        self.connect();
        self.run_gateways();
        self.run_controller();
    }

    pub fn run(&mut self, span: Span) {
        let until = self.now + span;
        while self.now < until {
            self.step();
            self.check();
        }
    }

    /// The same, where more may be held than there is: a total has just fallen.
    pub fn run_unchecked(&mut self, span: Span) {
        let until = self.now + span;
        while self.now < until {
            self.step();
        }
    }

    /// What the gateways hold of a volume, in sum: requests, thousandths of a request a second, bytes a
    /// second. Rates only of those that were ever told any.
    pub fn held(&self, volume: &str) -> (u32, u64, u64) {
        let grants = self.gateways.iter().filter_map(|gateway| gateway.grant(self.now, volume));
        grants.fold((0, 0, 0), |(requests, iops, bandwidth), grant: Grant| {
            let rates =
                (grant.max_iops.map_or(0, MilliIops::get), grant.max_bandwidth.map_or(0, Bandwidth::get));
            (requests + grant.concurrency.get(), iops + rates.0, bandwidth + rates.1)
        })
    }

    /// All requests that the gateways may have at the array.
    pub fn sum(&self) -> u32 {
        self.volumes.keys().map(|volume| self.held(volume).0).sum()
    }

    /// The requests of a gateway.
    pub fn of(&self, gateway: usize) -> u32 {
        let grants = self.volumes.keys().filter_map(|volume| self.gateways[gateway].grant(self.now, volume));
        grants.map(|grant| grant.concurrency.get()).sum()
    }

    /// Nobody holds more than there is.
    pub fn check(&self) {
        let split =
            |volume| self.gateways.iter().map(|gateway| gateway.grant(self.now, volume)).collect::<Vec<_>>();
        assert!(self.sum() <= self.total(), "{} at {:?}", self.sum(), self.now);
        let (_, iops, bandwidth) = self.held("limited");
        let within = iops <= u64::from(IOPS) * 1000 && bandwidth <= BANDWIDTH;
        assert!(within, "{iops} {bandwidth} at {:?}: {:?}", self.now, split("limited"));
        let narrow = self.held("narrow").0;
        assert!(narrow <= 9, "{narrow} at {:?}: {:?}", self.now, split("narrow"));
    }

    fn notice(&mut self) {
        let (now, theirs) = (self.now, self.theirs());
        for (of, stream) in &mut self.streams {
            let Some((ours, his)) = stream.broken else { continue };
            if ours <= now && !stream.left {
                stream.left = true;
                self.gateways[*of].handle_lost(now);
            }
            if his <= now
                && let (Some(controller), Some(connection)) = (&mut self.controller, stream.connection.take())
            {
                controller.handle_disconnected(theirs, connection);
            }
        }
        self.streams.retain(|(_, stream)| !(stream.left && stream.connection.is_none()));
    }

    fn connect(&mut self) {
        if self.controller.is_none() {
            return;
        }
        for (n, gateway) in self.gateways.iter_mut().enumerate() {
            if let Some(hello) = gateway.poll_hello(self.now) {
                let mut up = Link::new(self.delay);
                up.send(self.now, Up::Hello(hello));
                let down = Link::new(self.delay);
                self.streams.push((n, Stream { up, down, connection: None, broken: None, left: false }));
            }
        }
    }

    fn run_gateways(&mut self) {
        for (n, gateway) in self.gateways.iter_mut().enumerate() {
            gateway.run(self.now);
            let mut streams = self.streams.iter_mut().filter(|(of, stream)| *of == n && !stream.left);
            let Some((_, stream)) = streams.next() else { continue };
            while let Some(grants) = stream.down.receive(self.now) {
                if let Some(number) = gateway.handle_grants(self.now, &grants) {
                    stream.up.send(self.now, Up::Acknowledged(number));
                }
            }
            if let Some(report) = gateway.poll_report(self.now) {
                stream.up.send(self.now, Up::Report(report));
            }
        }
    }

    fn run_controller(&mut self) {
        let now = self.theirs();
        let Some(controller) = &mut self.controller else { return };
        for (of, stream) in &mut self.streams {
            while let Some(message) = stream.up.receive(self.now) {
                match (message, stream.connection) {
                    (Up::Hello(hello), _) => {
                        stream.connection = controller.handle_connected(now, &self.names[*of], &hello).ok();
                        if stream.connection.is_none() {
                            stream.break_off(self.now, self.now);
                        }
                    }
                    (Up::Report(report), Some(connection)) => {
                        controller.handle_report(now, connection, report).expect("it has few volumes");
                    }
                    (Up::Acknowledged(n), Some(connection)) => {
                        controller.handle_acknowledged(now, connection, n);
                    }
                    _ => {}
                }
            }
        }
        controller.handle_timeout(now);
        while let Some((connection, grants)) = controller.poll_grants(now) {
            let mut streams = self.streams.iter_mut();
            if let Some((_, stream)) = streams.find(|(_, stream)| stream.connection == Some(connection)) {
                stream.down.send(self.now, grants);
            }
        }
        self.events.extend(std::iter::from_fn(|| controller.poll_event()));
    }
}

impl Stream {
    fn break_off(&mut self, gateway_notices: Instant, controller_notices: Instant) {
        self.up.messages.clear();
        self.down.messages.clear();
        (self.up.lose, self.down.lose) = (u32::MAX, u32::MAX);
        self.broken.get_or_insert((gateway_notices, controller_notices));
    }
}
