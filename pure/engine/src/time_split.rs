//! Where the time of one request went.

use weir_model::Span;

/// The parts of a request's time, in the order in which they come. They add up to its latency, to the
/// nanosecond.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct TimeSplit {
    /// The limits of its own volume held it back: a rate or a concurrency, configured or granted by a law.
    pub own_limit: Span,
    /// It could have gone by these limits, and waited for its turn: a gate of the pool was shut.
    pub turn: Span,
    /// It was at the device.
    pub device: Span,
    /// The device had finished it, and the one-sided PID held its reply.
    pub held: Span,
    /// Its reply was on the way to the client, until the socket had taken the last byte.
    pub reply: Span,
}

impl TimeSplit {
    /// The sum of the parts.
    pub fn total(&self) -> Span {
        self.own_limit + self.turn + self.device + self.held + self.reply
    }

    /// Adds the parts of another request.
    pub fn add(&mut self, other: &Self) {
        self.own_limit += other.own_limit;
        self.turn += other.turn;
        self.device += other.device;
        self.held += other.held;
        self.reply += other.reply;
    }
}
