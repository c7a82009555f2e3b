//! The state of one connection in the transmission phase, as its shard keeps it.

use std::task::Waker;

use weir_backend::Buffer;
use weir_model::{Instant, Span, VolumeId};
use weir_nbd::{Command, NbdError, REQUEST_LENGTH, Session};
use weir_sched::Chain;

use crate::budget::{Charge, OwnerId};
use crate::front::Permit;
use crate::loss::Witness;
use crate::output::Output;
use crate::pace::Pace;
use crate::stream::Stream;

/// A connection's slot, and a serial number that tells its users apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ConnectionId {
    pub(crate) key: usize,
    pub(crate) serial: u64,
}

/// One client that talks to one volume.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) id: ConnectionId,
    pub(crate) peer: String,
    pub(crate) stream: Stream,
    pub(crate) session: Session,
    pub(crate) pool: usize,
    pub(crate) volume: VolumeId,
    /// The number that the engine has for the volume at the port that the connection came through.
    pub(crate) port: VolumeId,
    /// The number that the budget has for the volume.
    pub(crate) owner: OwnerId,
    pub(crate) phase: Phase,
    pub(crate) incoming: Incoming,
    /// Bytes that were read but not parsed, because a limit was reached in the middle of them.
    pub(crate) backlog: Vec<u8>,
    pub(crate) output: Output,
    /// The connection's requests that the engine has and the device has not finished.
    pub(crate) pending: Chain,
    /// Requests whose reply has not been written to its end.
    pub(crate) requests: u32,
    /// Data bytes of those requests.
    pub(crate) bytes: u64,
    /// Bytes taken from the connection's reserve.
    pub(crate) reserve_used: u64,
    /// How fast the socket takes replies, if it did not take all at once.
    pub(crate) taking: Option<Pace>,
    /// Whether the connection is in the driver's list of connections that wait for their clients.
    pub(crate) watched: bool,
    /// The losses of its volume that the connection was told of; `None` once the volume has ended.
    pub(crate) witness: Option<Witness>,
    /// A limit keeps the connection from reading on. It is woken when one of its replies is written.
    pub(crate) held_back: bool,
    /// Whether the connection is in the driver's list of connections that have something to write.
    pub(crate) touched: bool,
    /// The connection's place among the connections allowed; dropping it frees the place.
    pub(crate) _permit: Permit,
    /// Wakes the connection's task when a limit that held it back has eased.
    pub(crate) waker: Option<Waker>,
}

/// How far the connection is from its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Phase {
    /// Requests are read and executed.
    Open,
    /// The volume is being removed. New requests are refused with ESHUTDOWN; requests that were accepted
    /// before are answered.
    Retired,
    /// The client asked to disconnect. The shard reads nothing more, and answers every accepted request.
    Disconnecting,
    /// The shard writes nothing more. It throws away the bytes that arrive until the client closes its side
    /// or the time is up. If the shard closed at once, the kernel would reset the connection, and the client
    /// could lose replies that it has not read yet.
    Lingering { until: Instant },
}

/// The place in the stream of requests up to which the connection has read.
#[derive(Debug)]
pub(crate) enum Incoming {
    /// Inside a request header, of which `filled` bytes have arrived.
    Header { bytes: [u8; REQUEST_LENGTH], filled: usize },
    /// Before a request that has to wait until a limit eases.
    Stalled(Command),
    /// Inside the data of a write.
    Payload { command: Command, buffer: Buffer, filled: usize, charge: Charge, pace: Pace },
    /// Inside the data of a refused write.
    Skip { left: u32, cookie: u64, error: NbdError, pace: Pace },
}

impl Incoming {
    /// Between two requests.
    pub(crate) const START: Self = Self::Header { bytes: [0; REQUEST_LENGTH], filled: 0 };
}

impl Connection {
    /// Whether there is any use in reading from the socket. `most` is how many requests the connection may
    /// have unanswered.
    pub(crate) fn wants_input(&self, most: u32) -> bool {
        match self.phase {
            Phase::Open | Phase::Retired => match self.incoming {
                Incoming::Header { .. } => self.requests < most,
                Incoming::Stalled(_) => false,
                Incoming::Payload { .. } | Incoming::Skip { .. } => true,
            },
            Phase::Disconnecting => false,
            Phase::Lingering { .. } => true,
        }
    }

    /// Counts a request that has got its room.
    #[inline]
    pub(crate) fn begin_request(&mut self, charge: &Charge) {
        self.requests += 1;
        self.bytes += charge.bytes();
        self.reserve_used += charge.reserve();
    }

    /// Answers with an error once `left` bytes more have gone by.
    pub(crate) fn skip(&mut self, now: Instant, left: u32, cookie: u64, error: NbdError) {
        let pace = Pace::new(now, gone_by(left));
        self.incoming = Incoming::Skip { left, cookie, error, pace };
    }

    /// Whether the client has all its answers: no reply and no request of the connection waits.
    pub(crate) fn is_settled(&self) -> bool {
        // A request that waits for memory, or for its data to go by, is owed an answer too.
        let waiting = matches!(self.incoming, Incoming::Stalled(_) | Incoming::Skip { .. });
        self.requests == 0 && !waiting && self.output.is_empty()
    }

    /// Whether the connection waits for its client: to send the rest of a write, to take replies, or to close
    /// its side.
    pub(crate) fn waits_for_client(&self) -> bool {
        let sends = matches!(self.incoming, Incoming::Payload { .. } | Incoming::Skip { .. });
        sends || !self.output.is_empty() || matches!(self.phase, Phase::Lingering { .. })
    }

    /// Why the connection is to be closed, if its client makes it wait for longer than `timeout`.
    pub(crate) fn overdue(&mut self, now: Instant, timeout: Span) -> Option<&'static str> {
        if let Phase::Lingering { until } = self.phase {
            return (until <= now).then_some("the volume is no longer served");
        }
        if !self.output.is_empty() {
            let taken = self.output.taken();
            if self.taking.get_or_insert(Pace::new(now, taken)).behind(now, taken) > timeout {
                return Some("the client takes no replies");
            }
        }
        let behind = match &mut self.incoming {
            Incoming::Payload { filled, pace, .. } => pace.behind(now, *filled as u64),
            Incoming::Skip { left, pace, .. } => pace.behind(now, gone_by(*left)),
            Incoming::Header { .. } | Incoming::Stalled(_) => return None,
        };
        (behind > timeout).then_some("the client does not finish a write")
    }

    /// Notes the task of the connection.
    pub(crate) fn set_waker(&mut self, waker: &Waker) {
        if self.waker.as_ref().is_none_or(|known| !known.will_wake(waker)) {
            self.waker = Some(waker.clone());
        }
    }

    /// Wakes the connection's task.
    pub(crate) fn wake(&mut self) {
        self.held_back = false;
        if let Some(waker) = &self.waker {
            waker.wake_by_ref();
        }
    }
}

/// A number that grows with each byte that goes by, as `left` shrinks.
fn gone_by(left: u32) -> u64 {
    u64::from(u32::MAX - left)
}
