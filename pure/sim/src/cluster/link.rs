//! The connection between a gateway and the controller: streams, and the weather (how messages travel).
//!
//! A stream begins with a gateway's hello and the controller's answer. No message of the stream arrives
//! before these. After them, each message takes its own time. In foul weather, messages are lost. A gateway's
//! messages may also be repeated, and overtake each other. The controller's messages keep their order,
//! because a gateway relies on TCP's order within a stream. Messages that were sent before the end of a
//! stream still arrive, so an old stream's hello may come after a new stream's.

use rand::RngExt;
use weir_leases::{Connection, Grants, Hello, Report};
use weir_model::{Instant, Span};

use crate::event_queue::EventQueue;
use crate::random::Prng;

/// A message of a gateway.
#[derive(Clone, Debug)]
pub(super) enum Up {
    Hello(Hello),
    Report(Report),
    Acknowledged(u64),
}

/// A message of the controller.
#[derive(Clone, Debug)]
pub(super) enum Down {
    /// The hello was accepted.
    Attached,
    Grants(Grants),
}

/// How messages travel.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Weather {
    /// The least time that a message travels.
    pub delay: Span,
    /// The most that a message's random additional time may be.
    pub jitter: Span,
    /// The probability that a message is lost.
    pub lost: f64,
    /// The probability that a gateway's message arrives twice.
    pub repeated: f64,
    /// The probability that a gateway's message may overtake others.
    pub reordered: f64,
}

/// One direction of a stream.
#[derive(Debug)]
struct Way<M> {
    messages: EventQueue<M>,
    /// When the first message arrives. No message overtakes it.
    first: Option<Instant>,
    last: Instant,
}

/// A stream.
#[derive(Debug)]
pub(super) struct Stream {
    pub gateway: usize,
    up: Way<Up>,
    down: Way<Down>,
    /// The controller's connection for this stream.
    pub connection: Option<Connection>,
    /// When each side sees the end of the stream; `FAR_FUTURE` while it has no end.
    pub gateway_ends: Instant,
    pub controller_ends: Instant,
    /// Whether each side has seen the end, or is gone.
    pub gateway_left: bool,
    pub controller_left: bool,
    /// Whether the link is cut, so that nothing gets through any more.
    is_cut: bool,
}

impl Stream {
    pub(super) fn new(gateway: usize) -> Self {
        Self {
            gateway,
            up: Way::new(),
            down: Way::new(),
            connection: None,
            gateway_ends: Instant::FAR_FUTURE,
            controller_ends: Instant::FAR_FUTURE,
            gateway_left: false,
            controller_left: false,
            is_cut: false,
        }
    }

    pub(super) fn send_up(&mut self, now: Instant, weather: &Weather, random: &mut Prng, message: Up) {
        if !self.is_cut {
            self.up.send(now, weather, random, message);
        }
    }

    pub(super) fn send_down(&mut self, now: Instant, weather: &Weather, random: &mut Prng, message: Down) {
        if !self.is_cut {
            let in_order = Weather { repeated: 0.0, reordered: 0.0, ..*weather };
            self.down.send(now, &in_order, random, message);
        }
    }

    pub(super) fn receive_up(&mut self, now: Instant) -> Option<Up> {
        self.up.messages.pop_due(now)
    }

    pub(super) fn receive_down(&mut self, now: Instant) -> Option<Down> {
        self.down.messages.pop_due(now)
    }

    pub(super) fn next_up(&self) -> Instant {
        self.up.messages.next_at().unwrap_or(Instant::FAR_FUTURE).min(self.controller_ends)
    }

    pub(super) fn next_down(&self) -> Instant {
        self.down.messages.next_at().unwrap_or(Instant::FAR_FUTURE).min(self.gateway_ends)
    }

    /// Cuts the stream: nothing gets through from now on, and each side notices at its own instant.
    pub(super) fn cut(&mut self, gateway_ends: Instant, controller_ends: Instant) {
        self.is_cut = true;
        (self.up.messages, self.down.messages) = (EventQueue::new(), EventQueue::new());
        self.gateway_ends = self.gateway_ends.min(gateway_ends);
        self.controller_ends = self.controller_ends.min(controller_ends);
    }

    /// The gateway has closed the stream. The controller reads what was sent, and then the end.
    pub(super) fn close_by_gateway(&mut self, at: Instant) {
        self.gateway_left = true;
        self.down.messages = EventQueue::new();
        self.controller_ends = self.controller_ends.min(at.max(self.up.last));
    }

    /// The controller has closed the stream. The gateway reads what was sent, and then the end.
    pub(super) fn close_by_controller(&mut self, at: Instant) {
        self.up.messages = EventQueue::new();
        self.gateway_ends = self.gateway_ends.min(at.max(self.down.last));
    }
}

impl<M: Clone> Way<M> {
    fn new() -> Self {
        Self { messages: EventQueue::new(), first: None, last: Instant::ORIGIN }
    }

    fn send(&mut self, now: Instant, weather: &Weather, random: &mut Prng, message: M) {
        let mut arrives = || {
            let jitter = Span::from_nanos(random.random_range(0..=weather.jitter.as_nanos()));
            now + weather.delay + jitter
        };
        let (once, again) = (arrives(), arrives());
        let Some(first) = self.first else {
            (self.first, self.last) = (Some(once), once);
            return self.messages.push(once, message);
        };
        if random.random_bool(weather.lost) {
            return;
        }
        let overtakes = random.random_bool(weather.reordered);
        let once = once.max(if overtakes { first } else { self.last });
        if random.random_bool(weather.repeated) {
            let again = again.max(if overtakes { first } else { once });
            self.last = self.last.max(again);
            self.messages.push(again, message.clone());
        }
        self.last = self.last.max(once);
        self.messages.push(once, message);
    }
}
