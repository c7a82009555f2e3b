//! The clients of a volume: when they ask, and for what.
//!
//! A client is a small state machine. It says when it wants to act next. At that instant the driver asks for
//! its request, and later tells it of the answer. It keeps its next instant, and no queue of arrivals. So a
//! run is as cheap at the hundred millionth request as at the first.
//!
//! **Modelled**:
//!
//! - open arrivals (Poisson, constant), whether earlier requests were answered or not;
//! - closed threads that ask, wait and think;
//! - phases that change all of the load at a set time;
//! - recorded requests, open loop, at the instants at which they came.
//!
//! **Not modelled**: dependencies between requests other than a thread's own order, and clients that give up.
//!
//! Each purpose draws from a random stream of its own, named after the volume. So another mix of reads leaves
//! the arrivals as they were.
//!
//! **Threads over a change of phase.** A thread may have a request outstanding when the phase changes. It
//! goes on as a thread of the new phase, if that phase has a place left for it. So there are never more
//! requests outstanding than the larger of the two phases allows.

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

/// A recorded load for a volume, in the order of its times. It is read while the run goes on.
pub type Trace = Box<dyn Iterator<Item = TraceRequest> + Send>;

/// A request of a client, within its volume.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Asked {
    pub(crate) kind: IoKind,
    /// The first byte, counted from the volume's first.
    pub(crate) offset: u64,
    pub(crate) length: u32,
    /// Whether a thread waits for its answer.
    pub(crate) by_thread: bool,
}

/// All the clients of one volume.
#[derive(Debug)]
pub(crate) enum Client {
    /// Made-up clients, by the scenario's phases.
    Phased(Box<PhasedClient>),
    /// Recorded clients.
    Traced(TracedClient),
    /// The clients are gone.
    Stopped,
}

impl Client {
    /// Clients that do what the scenario's phases say.
    pub(crate) fn phased(volume: &VolumeScenario, seed: Seed) -> Self {
        Self::Phased(Box::new(PhasedClient::new(volume, seed)))
    }

    /// Clients that do what was recorded, on a volume of `size` bytes.
    pub(crate) fn traced(trace: Trace, size: u64) -> Self {
        Self::Traced(TracedClient::new(trace, size))
    }

    /// When to ask it next; [`Instant::FAR_FUTURE`]: not before a request is answered.
    pub(crate) fn next_at(&self) -> Instant {
        match self {
            Self::Phased(client) => client.next_at(),
            Self::Traced(client) => client.next_at(),
            Self::Stopped => Instant::FAR_FUTURE,
        }
    }

    /// The next request that is due. The driver calls this until there is none.
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
