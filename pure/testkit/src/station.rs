//! A device in virtual time: some servers with one queue before them.

use std::collections::VecDeque;
use std::fmt;

use weir_model::{Instant, Io, IoId, Span};

/// The time that a request takes at a server, as a function of when it begins.
type Service = Box<dyn FnMut(Instant, &Io) -> Span>;

/// Servers that take requests in the order in which they come.
pub struct Station {
    servers: usize,
    service: Service,
    waiting: VecDeque<Io>,
    /// The requests that are being served, and when each will be finished; in the order of that instant.
    serving: Vec<(Instant, IoId)>,
}

impl Station {
    /// `servers` servers that take `service` for each request.
    pub fn constant(servers: usize, service: Span) -> Self {
        Self::scripted(servers, move |_, _| service)
    }

    /// `servers` servers. A request takes the time that `service` returns when it begins.
    pub fn scripted(servers: usize, service: impl FnMut(Instant, &Io) -> Span + 'static) -> Self {
        assert!(servers > 0, "a station without servers");
        Self { servers, service: Box::new(service), waiting: VecDeque::new(), serving: Vec::new() }
    }

    /// Takes a request.
    pub fn start(&mut self, now: Instant, io: Io) {
        self.waiting.push_back(io);
        self.fill(now);
    }

    /// When it finishes the next request.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.serving.first().map(|(at, _)| *at)
    }

    /// A request that is finished by now.
    pub fn poll_finished(&mut self, now: Instant) -> Option<IoId> {
        let (at, _) = self.serving.first()?;
        if *at > now {
            return None;
        }
        let (_, id) = self.serving.remove(0);
        self.fill(now);
        Some(id)
    }

    fn fill(&mut self, now: Instant) {
        while self.serving.len() < self.servers {
            let Some(io) = self.waiting.pop_front() else { return };
            let until = now + (self.service)(now, &io);
            let place = self.serving.partition_point(|(at, _)| *at <= until);
            self.serving.insert(place, (until, io.id));
        }
    }
}

impl fmt::Debug for Station {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (waiting, serving) = (self.waiting.len(), self.serving.len());
        write!(f, "Station({} servers, {serving} served, {waiting} waiting)", self.servers)
    }
}
