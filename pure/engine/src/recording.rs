//! What an engine was told, when, and what it made of it: enough to live it through once more.
//!
//! An engine that has a [`Recorder`] tells it of every call as an [`Entry`], with what the call decided in
//! it, and of every event. The engine reads no clock and draws no random numbers, so that a [`Replay`] of the
//! entries through another engine of the same code must decide the same to the last of them: a field problem
//! becomes a test, and a change of the code shows where it changes a decision.
//!
//! **Why from the birth of an engine on** ([`Engine::with_recorder`](crate::Engine::with_recorder)) and not
//! from any moment: its state would have to be written down too, every heap and window of it, and each change
//! of that state would be a change of the format. Entries speak of the interface only.
//!
//! **Why decisions beside the inputs.** With inputs alone a replay would show what the engine does now, and
//! nobody could say whether that is what it did then.

mod replay;

use std::fmt;

use serde::{Deserialize, Serialize};
use weir_control::Grant;
use weir_model::{Instant, IoId, VolumeId};
use weir_sched::Dispatch;

use crate::config::{EngineConfig, Grants, VolumeConfig};
use crate::engine::Request;
use crate::event::Event;

pub use replay::{Deviation, How, Replay};

/// Who is told of everything that an engine is told. Called on the path of every request: it must not wait.
pub trait Recorder: fmt::Debug {
    /// Takes an entry. `now` never goes back. The first is [`Entry::Made`].
    fn record(&mut self, now: Instant, entry: &Entry);
}

/// One call of an engine and what it decided, or one event.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Entry {
    /// It was made.
    Made {
        /// How its pool is to be treated.
        config: EngineConfig,
        /// What `poll_timeout` says from now on.
        timeout: Option<Instant>,
    },
    /// `set_config`.
    ConfigSet {
        /// How its pool is to be treated.
        config: EngineConfig,
        /// What `poll_timeout` says from now on.
        timeout: Option<Instant>,
    },
    /// `add_volume`.
    VolumeAdded {
        /// How the volume is to be treated.
        config: VolumeConfig,
        /// Decided: its number.
        id: VolumeId,
    },
    /// `set_volume`.
    VolumeSet {
        /// Which.
        id: VolumeId,
        /// How it is to be treated.
        config: VolumeConfig,
    },
    /// `remove_volume`.
    VolumeRemoved {
        /// Which.
        id: VolumeId,
    },
    /// `handle_grants`.
    Granted {
        /// What the controller has granted.
        grants: Grants,
        /// What `poll_timeout` says from now on.
        timeout: Option<Instant>,
    },
    /// `set_fallback`.
    FallbackSet {
        /// What each volume may do without a lease.
        volumes: Vec<(VolumeId, Grant)>,
    },
    /// `handle_submit`.
    Submitted {
        /// What was asked for.
        request: Request,
        /// Decided: its place.
        id: IoId,
    },
    /// `poll_dispatch`; all of it is decided.
    Dispatched(Answer),
    /// `handle_complete`.
    Completed {
        /// Which request.
        id: IoId,
        /// Whether the device did it.
        ok: bool,
    },
    /// `handle_reply`.
    Replied {
        /// Which request.
        id: IoId,
    },
    /// `handle_abort`.
    Aborted {
        /// Which request.
        id: IoId,
        /// Decided: whether it was queued and is gone.
        gone: bool,
    },
    /// `handle_timeout`.
    TimedOut {
        /// Decided: what `poll_timeout` says from now on.
        timeout: Option<Instant>,
    },
    /// An event; follows the call that caused it.
    Reported(Event),
}

/// What `poll_dispatch` said: [`Dispatch`] with a request's place for the request, which says the same and is
/// shorter.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Answer {
    /// This request goes to the device.
    Issue(IoId),
    /// See [`Dispatch::WaitUntil`].
    WaitUntil(Instant),
    /// See [`Dispatch::AtDepth`].
    AtDepth {
        /// See [`Dispatch::AtDepth`].
        recheck: Option<Instant>,
    },
    /// See [`Dispatch::Idle`].
    Idle,
}

impl From<Dispatch> for Answer {
    fn from(dispatch: Dispatch) -> Self {
        match dispatch {
            Dispatch::Issue(io) => Self::Issue(io.id),
            Dispatch::WaitUntil(at) => Self::WaitUntil(at),
            Dispatch::AtDepth { recheck } => Self::AtDepth { recheck },
            Dispatch::Idle => Self::Idle,
        }
    }
}
