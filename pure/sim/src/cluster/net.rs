//! All streams between the gateways and the controller, and how messages travel at this instant.

use std::collections::BTreeMap;

use rand::RngExt;
use weir_model::{Instant, Span};

use super::link::{Down, Stream, Up, Weather};
use crate::random::Prng;

/// Within how many control intervals a side notices that the other is gone: it sends a keep-alive after one
/// interval, and waits one interval for the answer (`io/cluster`).
const NOTICED: u64 = 2;

/// The streams.
#[derive(Debug)]
pub(super) struct Net {
    interval: Span,
    fair: Weather,
    /// By gateway: foul weather, and when it is over.
    foul: Vec<Option<(Instant, Weather)>>,
    /// By gateway: until when nothing gets through.
    cut_until: Vec<Instant>,
    /// Whether the controller's process exists, so that its machine answers.
    pub is_controller_up: bool,
    streams: BTreeMap<u64, Stream>,
    opened: u64,
    random: Prng,
}

impl Net {
    pub(super) fn new(gateways: usize, interval: Span, fair: Weather, random: Prng) -> Self {
        Self {
            interval,
            fair,
            foul: vec![None; gateways],
            cut_until: vec![Instant::ORIGIN; gateways],
            is_controller_up: true,
            streams: BTreeMap::new(),
            opened: 0,
            random,
        }
    }

    /// A gateway tries to connect. Returns when it knows the outcome, and whether the connection is there.
    pub(super) fn dial(&mut self, now: Instant, gateway: usize) -> (Instant, bool) {
        if now < self.cut_until[gateway] {
            return (now + self.interval.max(Span::from_secs(1)), false); // the time-out of `io/cluster`
        }
        (now + self.delay(now, gateway) + self.delay(now, gateway), self.is_controller_up)
    }

    /// Opens a stream on a connection, and returns its key.
    pub(super) fn open(&mut self, now: Instant, gateway: usize) -> u64 {
        self.opened += 1;
        let mut stream = Stream::new(gateway);
        if now < self.cut_until[gateway] || !self.is_controller_up {
            stream.cut(now + self.interval.saturating_mul(NOTICED), now);
        }
        self.streams.insert(self.opened, stream);
        self.opened
    }

    pub(super) fn send_up(&mut self, now: Instant, stream: u64, message: Up) {
        if let Some(stream) = self.streams.get_mut(&stream) {
            let weather = weather(self.fair, &self.foul, now, stream.gateway);
            stream.send_up(now, &weather, &mut self.random, message);
        }
    }

    pub(super) fn send_down(&mut self, now: Instant, stream: u64, message: Down) {
        if let Some(stream) = self.streams.get_mut(&stream) {
            let weather = weather(self.fair, &self.foul, now, stream.gateway);
            stream.send_down(now, &weather, &mut self.random, message);
        }
    }

    pub(super) fn stream(&mut self, stream: u64) -> Option<&mut Stream> {
        self.streams.get_mut(&stream)
    }

    pub(super) fn streams(&self) -> impl Iterator<Item = (u64, &Stream)> {
        self.streams.iter().map(|(key, stream)| (*key, stream))
    }

    /// The gateway closes a stream.
    pub(super) fn close_by_gateway(&mut self, now: Instant, stream: u64) {
        let Some(gateway) = self.streams.get(&stream).map(|stream| stream.gateway) else { return };
        let at = now + self.delay(now, gateway);
        if let Some(stream) = self.streams.get_mut(&stream) {
            stream.close_by_gateway(at);
        }
    }

    /// The controller closes a stream.
    pub(super) fn close_by_controller(&mut self, now: Instant, stream: u64) {
        let Some(gateway) = self.streams.get(&stream).map(|stream| stream.gateway) else { return };
        let at = now + self.delay(now, gateway);
        if let Some(stream) = self.streams.get_mut(&stream) {
            stream.close_by_controller(at);
        }
    }

    /// Forgets the streams whose end both sides have seen.
    pub(super) fn sweep(&mut self) {
        self.streams.retain(|_, stream| !(stream.gateway_left && stream.controller_left));
    }

    /// Cuts the link: nothing gets through between a gateway and the controller until `until`.
    pub(super) fn cut(&mut self, now: Instant, gateway: usize, until: Instant) {
        self.cut_until[gateway] = self.cut_until[gateway].max(until);
        for stream in self.streams.values_mut().filter(|stream| stream.gateway == gateway) {
            let [ours, theirs] = [(), ()].map(|()| noticed(&mut self.random, self.interval));
            stream.cut(now + ours, now + theirs);
        }
    }

    /// A gateway's process is gone. The controller notices at once or by a missing keep-alive.
    pub(super) fn gateway_died(&mut self, now: Instant, gateway: usize) {
        for stream in self.streams.values_mut().filter(|stream| stream.gateway == gateway) {
            stream.gateway_left = true;
            stream.cut(now, now + noticed(&mut self.random, self.interval));
        }
    }

    /// The controller's process is gone.
    pub(super) fn controller_died(&mut self, now: Instant) {
        self.is_controller_up = false;
        for stream in self.streams.values_mut() {
            stream.connection = None;
            stream.cut(now + noticed(&mut self.random, self.interval), now);
        }
    }

    /// One side (the gateway, or with `None` the controller) does nothing until `until`. If that is long, the
    /// other side misses its keep-alives, and ends its streams.
    pub(super) fn paused(&mut self, now: Instant, gateway: Option<usize>, until: Instant) {
        let noticed = now + self.interval.saturating_mul(NOTICED);
        if until <= noticed {
            return;
        }
        let of = |stream: &&mut Stream| gateway.is_none_or(|gateway| stream.gateway == gateway);
        for stream in self.streams.values_mut().filter(of) {
            // Messages that were sent before lie in the sockets. The side that slept reads them first, and
            // then the end.
            let (ours, theirs) = if gateway.is_some() { (until, noticed) } else { (noticed, until) };
            stream.gateway_ends = stream.gateway_ends.min(ours);
            stream.controller_ends = stream.controller_ends.min(theirs);
        }
    }

    pub(super) fn set_foul(&mut self, gateway: usize, until: Instant, weather: Weather) {
        self.foul[gateway] = Some((until, weather));
    }

    fn delay(&mut self, now: Instant, gateway: usize) -> Span {
        let Weather { delay, jitter, .. } = weather(self.fair, &self.foul, now, gateway);
        delay + Span::from_nanos(self.random.random_range(0..=jitter.as_nanos()))
    }
}

fn weather(fair: Weather, foul: &[Option<(Instant, Weather)>], now: Instant, gateway: usize) -> Weather {
    foul[gateway].filter(|(until, _)| now < *until).map_or(fair, |(_, weather)| weather)
}

/// How long a side takes to notice that the other is gone. In half of the cases it notices at once, because
/// the other machine says so.
fn noticed(random: &mut Prng, interval: Span) -> Span {
    let most = interval.saturating_mul(NOTICED).as_nanos();
    Span::from_nanos(if random.random_bool(0.5) { random.random_range(0..=most) } else { 0 })
}
