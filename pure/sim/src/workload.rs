//! The clients of a volume: when they ask, and for what.
//!
//! A client is a small state machine: it says when it wants to act next, is asked for what it wants then, and
//! is told of answers. It keeps one instant that lies ahead and not a queue of arrivals, so that a run is as
//! cheap at the hundred millionth request as at the first.
//!
//! **Modelled**: open arrivals (Poisson, constant) that do not care whether earlier requests were answered;
//! closed threads that ask, wait and think; phases that change everything at a set time; recorded requests,
//! open loop, at the instants at which they came. **Not modelled**: dependencies between requests other than
//! a thread's own order, and clients that give up. Each purpose draws from a random stream of its own, named
//! after the volume, so that another mix of reads leaves the arrivals as they were.
//!
//! **Threads over a change of phase.** A thread whose request is outstanding when the phase changes goes on
//! as a thread of the new phase, if that has any left: there are never more outstanding than the larger of
//! the two allows.

mod arrivals;
mod load;
mod phased;
mod places;
mod scatter;
mod schedule;
mod traced;

use weir_model::{Instant, IoKind};

use crate::random::Seed;
use crate::scenario::{TraceRequest, VolumeScenario};
use phased::PhasedClient;
use traced::TracedClient;

/// A recorded load for a volume, read as the run goes on, in the order of its times.
pub type Trace = Box<dyn Iterator<Item = TraceRequest> + Send>;

/// A request of a client, within its volume.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Asked {
    pub(crate) kind: IoKind,
    /// From the volume's first byte on.
    pub(crate) offset: u64,
    pub(crate) length: u32,
    /// Whether a thread waits for its answer.
    pub(crate) by_thread: bool,
}

/// All the clients of one volume.
#[derive(Debug)]
pub(crate) enum Client {
    /// Made up, by the scenario's phases.
    Phased(Box<PhasedClient>),
    /// Recorded.
    Traced(TracedClient),
    /// Gone.
    Stopped,
}

impl Client {
    /// Those that do what the scenario's phases say.
    pub(crate) fn phased(volume: &VolumeScenario, seed: Seed) -> Self {
        Self::Phased(Box::new(PhasedClient::new(volume, seed)))
    }

    /// Those that do what was recorded, on a volume of `size` bytes.
    pub(crate) fn traced(trace: Trace, size: u64) -> Self {
        Self::Traced(TracedClient::new(trace, size))
    }

    /// When to ask it next; [`Instant::FAR_FUTURE`]: not before something is answered.
    pub(crate) fn next_at(&self) -> Instant {
        match self {
            Self::Phased(client) => client.next_at(),
            Self::Traced(client) => client.next_at(),
            Self::Stopped => Instant::FAR_FUTURE,
        }
    }

    /// The next request that is due; to be called until there is none.
    pub(crate) fn ask(&mut self, now: Instant) -> Option<Asked> {
        match self {
            Self::Phased(client) => client.ask(now),
            Self::Traced(client) => client.ask(now),
            Self::Stopped => None,
        }
    }

    /// A thread's request was answered, with success or not.
    pub(crate) fn on_answer(&mut self, now: Instant, ok: bool) {
        if let Self::Phased(client) = self {
            client.on_answer(now, ok);
        }
    }
}

#[cfg(test)]
mod tests;
