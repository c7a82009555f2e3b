//! What is set up, as plain values.

use weir_model::{Bandwidth, Span};
use weir_throttle::Settings;

/// A target with its initiators.
#[derive(Clone, Debug)]
pub struct TargetOptions {
    /// Gives the run, together with all else here.
    pub seed: u64,
    /// How long the run lasts.
    pub duration: Span,
    /// How long a disk takes for a request, on average. Above zero.
    pub service_time: Span,
    /// By how much of that a request takes less or more, at most. From 0 to 1.
    pub spread: f64,
    /// The way to the target and back, together with what both ends need for a request.
    pub round_trip: Span,
    /// Bytes a second in each direction, for each initiator.
    pub bandwidth: Bandwidth,
    /// The initiators.
    pub initiators: Vec<Initiator>,
    /// Who is delayed.
    pub delays: Delays,
    /// What goes wrong.
    pub misfortunes: Vec<Misfortune>,
}

/// An initiator with its load. Initiator `n` is named `iqn.n`, and has the address `10.0.0.(10 + n)`.
#[derive(Clone, Debug)]
pub struct Initiator {
    /// The number of its volume group, which has a disk of its own.
    pub group: u32,
    /// Whether it writes; otherwise it reads.
    pub writes: bool,
    /// Whether its writes wait until the target asks for the data.
    pub r2t: bool,
    /// Bytes of a request.
    pub request: u32,
    /// How many requests it has outstanding at most.
    pub threads: u32,
    /// The time from the begin of a request to that of the next, if it has a pace. It catches up if it falls
    /// behind.
    pub pace: Option<Span>,
    /// When it works: from and to, in order of time.
    pub bursts: Vec<(Span, Span)>,
    /// After so many requests it is done. The run ends when all initiators with a limit are done.
    pub limit: Option<u64>,
}

/// Who is delayed.
#[derive(Clone, Debug)]
pub enum Delays {
    /// Nobody.
    None,
    /// These delays are set, in order of time.
    Fixed(Vec<FixedDelay>),
    /// What `weir throttle` decides.
    Throttle(Box<Settings>),
}

/// A change of the delay of an initiator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FixedDelay {
    /// When.
    pub at: Span,
    /// The initiator.
    pub initiator: usize,
    /// The delay of packets from then on.
    pub delay: Span,
}

/// Something that goes wrong at an instant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Misfortune {
    /// When.
    pub at: Span,
    /// The initiator that it happens to, or whose device it happens to.
    pub initiator: usize,
    /// What happens.
    pub what: Mishap,
}

/// What can happen to an initiator or to its device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mishap {
    /// It loses its session. What is outstanding is lost.
    LogsOut,
    /// It logs in again, from another port.
    LogsIn,
    /// The counters of its device cannot be read any more.
    CountersVanish,
    /// They can be read again, and begin at zero.
    CountersReturn,
    /// The counters of its device jump to just below where they wrap.
    CountersNearWrap,
    /// The device behind its LUN is gone, and so are the LUN and its session.
    DeviceVanishes,
    /// The device comes back under the number that it had, and it logs in again.
    DeviceReturns,
}
