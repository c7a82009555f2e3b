//! An engine, a device and clients in virtual time.

use rand::SeedableRng;
use rand_distr::{Distribution, Exp};
use rand_pcg::Pcg64Mcg;
use weir_engine::{Dispatch, Engine, EngineConfig, Event, Request, VolumeConfig, WindowReport};
use weir_model::{Instant, IoId, IoKind, Iops, Span, VolumeId};

use crate::Station;

/// Drives an [`Engine`] with a [`Station`]. The time jumps from each event to the next.
#[derive(Debug)]
pub struct Rig {
    /// The engine. A test may call it directly, and then calls [`Rig::settle`].
    pub engine: Engine,
    now: Instant,
    station: Station,
    clients: Vec<Client>,
    /// By slot: the client that the request belongs to.
    owners: Vec<Option<usize>>,
    reports: Vec<(Instant, Event)>,
}

/// The load of a client.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Load {
    /// The volume that its requests are for.
    pub volume: VolumeId,
    /// The kind of its requests.
    pub kind: IoKind,
    /// Their length in bytes.
    pub length: u32,
    /// When they come.
    pub arrivals: Arrivals,
}

/// When a client's requests come.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Arrivals {
    /// At equal distances.
    Constant(Iops),
    /// At random, this many a second, drawn from this seed.
    Poisson(Iops, u64),
    /// Each as soon as an earlier one is answered, so that this many are always outstanding.
    Closed(u32),
}

#[derive(Debug)]
struct Client {
    load: Load,
    /// When an open client sends next.
    next: Option<Instant>,
    random: Pcg64Mcg,
    stopped: bool,
}

impl Rig {
    /// An engine without volumes before this device.
    pub fn new(config: EngineConfig, station: Station) -> Self {
        let now = Instant::ORIGIN;
        let engine = Engine::new(now, config);
        Self { engine, now, station, clients: Vec::new(), owners: Vec::new(), reports: Vec::new() }
    }

    /// The time.
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// Adds a volume.
    pub fn add_volume(&mut self, config: VolumeConfig) -> VolumeId {
        self.engine.add_volume(self.now, config)
    }

    /// Lets a client begin. Returns its number.
    pub fn start(&mut self, load: Load) -> usize {
        let seed = if let Arrivals::Poisson(_, seed) = load.arrivals { seed } else { 0 };
        let random = Pcg64Mcg::seed_from_u64(seed);
        let mut client = Client { load, next: None, random, stopped: false };
        client.next = client.gap().map(|gap| self.now + gap);
        self.clients.push(client);
        let number = self.clients.len() - 1;
        if let Arrivals::Closed(depth) = load.arrivals {
            (0..depth).for_each(|_| self.send(number));
        }
        self.settle();
        number
    }

    /// Lets a client send nothing more.
    pub fn stop(&mut self, client: usize) {
        self.clients[client].stopped = true;
        self.clients[client].next = None;
    }

    /// Sends one request that belongs to no client.
    pub fn submit(&mut self, volume: VolumeId, kind: IoKind, length: u32) -> IoId {
        let id = self.engine.handle_submit(self.now, Request { volume, kind, offset: 0, length });
        self.own(id, None);
        self.settle();
        id
    }

    /// Jumps to the next instant at which something happens.
    pub fn step(&mut self) {
        let next = [self.engine.poll_timeout(), self.station.poll_timeout()]
            .into_iter()
            .chain(self.clients.iter().map(|client| client.next))
            .flatten()
            .min()
            .expect("an engine always has a window to end");
        self.now = self.now.max(next);
        while let Some(id) = self.station.poll_finished(self.now) {
            if self.engine.handle_complete(self.now, id, true).is_none() {
                self.reply(id);
            }
        }
        for client in 0..self.clients.len() {
            if self.clients[client].next.is_some_and(|at| at <= self.now) {
                self.send(client);
                self.clients[client].next = self.clients[client].gap().map(|gap| self.now + gap);
            }
        }
        self.engine.handle_timeout(self.now);
        while let Some(id) = self.engine.poll_release() {
            self.reply(id);
        }
        self.settle();
    }

    /// Steps until the time is `until` or just after.
    pub fn drive_until(&mut self, until: Instant) {
        while self.now < until {
            self.step();
        }
    }

    /// Drains every `poll_*`. The rig's own methods call it; a test calls it after it has changed the engine
    /// directly.
    pub fn settle(&mut self) {
        while let Dispatch::Issue(io) = self.engine.poll_dispatch(self.now) {
            self.station.start(self.now, io);
        }
        while let Some(event) = self.engine.poll_event() {
            self.reports.push((self.now, event));
        }
    }

    /// Every event that the engine has reported, and when.
    pub fn reports(&self) -> &[(Instant, Event)] {
        &self.reports
    }

    /// The SLO windows of a volume that ended after `since`.
    pub fn windows(&self, volume: VolumeId, since: Instant) -> Vec<WindowReport> {
        let window = |(at, event): &(Instant, Event)| match event {
            Event::WindowClosed { volume: of, window } if *of == volume && *at > since => Some(*window),
            _ => None,
        };
        self.reports.iter().filter_map(window).collect()
    }

    /// How many requests of a volume were answered after `since`.
    pub fn answered(&self, volume: VolumeId, since: Instant) -> usize {
        let is_one = |(at, event): &&(Instant, Event)| {
            matches!(event, Event::Finished { volume: of, .. } if *of == volume) && *at > since
        };
        self.reports.iter().filter(is_one).count()
    }

    fn reply(&mut self, id: IoId) {
        self.engine.handle_reply(self.now, id);
        if let Some(client) = self.owners[id.slot as usize].take() {
            self.on_answer(client);
        }
    }

    fn on_answer(&mut self, client: usize) {
        let is_closed = matches!(self.clients[client].load.arrivals, Arrivals::Closed(_));
        if is_closed && !self.clients[client].stopped {
            self.send(client);
        }
    }

    fn send(&mut self, client: usize) {
        let Load { volume, kind, length, .. } = self.clients[client].load;
        let id = self.engine.handle_submit(self.now, Request { volume, kind, offset: 0, length });
        self.own(id, Some(client));
    }

    fn own(&mut self, id: IoId, client: Option<usize>) {
        let slot = id.slot as usize;
        if slot >= self.owners.len() {
            self.owners.resize(slot + 1, None);
        }
        self.owners[slot] = client;
    }
}

impl Client {
    /// The time until an open client sends next.
    fn gap(&mut self) -> Option<Span> {
        let seconds = match self.load.arrivals {
            Arrivals::Constant(rate) => 1.0 / rate.get(),
            Arrivals::Poisson(rate, _) => {
                Exp::new(rate.get()).expect("a rate is above zero").sample(&mut self.random)
            }
            Arrivals::Closed(_) => return None,
        };
        Some(Span::from_secs_f64(seconds))
    }
}
