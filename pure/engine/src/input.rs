//! What an engine can be told, and what it answers.
//!
//! Each method of [`Engine`](crate::Engine) that changes the engine makes an [`Input`] and takes an
//! [`Outcome`] apart. So the drivers, a recorder and a replay all see the same calls: a call that one of them
//! knows and another does not cannot exist.

use serde::{Deserialize, Serialize};
use weir_control::{Grant, Standing};
use weir_model::{Instant, IoId, IoKind, VolumeId};
use weir_sched::Dispatch;

use crate::config::{EngineConfig, Grants, VolumeConfig};

/// One call of an engine. The time of the call stands beside it.
#[derive(PartialEq, Debug)]
pub enum Input {
    /// [`set_config`](crate::Engine::set_config).
    SetConfig(EngineConfig),
    /// [`add_volume`](crate::Engine::add_volume).
    AddVolume(VolumeConfig),
    /// [`set_volume`](crate::Engine::set_volume).
    SetVolume {
        /// The volume.
        id: VolumeId,
        /// Its configuration from now on.
        config: VolumeConfig,
    },
    /// [`remove_volume`](crate::Engine::remove_volume).
    RemoveVolume {
        /// The volume.
        id: VolumeId,
    },
    /// [`handle_grants`](crate::Engine::handle_grants).
    Grants(Grants),
    /// [`set_fallback`](crate::Engine::set_fallback).
    SetFallback(Vec<(VolumeId, Grant)>),
    /// [`handle_submit`](crate::Engine::handle_submit).
    Submit(Request),
    /// [`poll_dispatch`](crate::Engine::poll_dispatch).
    Dispatch,
    /// [`handle_complete`](crate::Engine::handle_complete).
    Complete {
        /// The request.
        id: IoId,
        /// Whether the device did what was asked.
        ok: bool,
    },
    /// [`handle_reply`](crate::Engine::handle_reply).
    Reply {
        /// The request.
        id: IoId,
    },
    /// [`handle_abort`](crate::Engine::handle_abort).
    Abort {
        /// The request.
        id: IoId,
    },
    /// [`handle_timeout`](crate::Engine::handle_timeout).
    Timeout,
    /// [`handle_standing`](crate::Engine::handle_standing).
    Standing(Standing),
}

/// Written out, because a derived `clone` is not inlined. The compiler would then not know which input goes
/// to a recorder.
impl Clone for Input {
    #[inline(always)]
    fn clone(&self) -> Self {
        match self {
            Self::SetConfig(config) => Self::SetConfig(*config),
            Self::AddVolume(config) => Self::AddVolume(config.clone()),
            Self::SetVolume { id, config } => Self::SetVolume { id: *id, config: config.clone() },
            Self::RemoveVolume { id } => Self::RemoveVolume { id: *id },
            Self::Grants(grants) => Self::Grants(grants.clone()),
            Self::SetFallback(volumes) => Self::SetFallback(volumes.clone()),
            Self::Submit(request) => Self::Submit(*request),
            Self::Dispatch => Self::Dispatch,
            Self::Complete { id, ok } => Self::Complete { id: *id, ok: *ok },
            Self::Reply { id } => Self::Reply { id: *id },
            Self::Abort { id } => Self::Abort { id: *id },
            Self::Timeout => Self::Timeout,
            Self::Standing(standing) => Self::Standing(*standing),
        }
    }
}

/// What a client asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Request {
    /// The volume.
    pub volume: VolumeId,
    /// What to do.
    pub kind: IoKind,
    /// First byte.
    pub offset: u64,
    /// Number of bytes; zero for a flush.
    pub length: u32,
}

/// What an engine decided about an [`Input`]. Each input but [`Input::Complete`] has an outcome of one kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(untagged)] // the input says which outcome follows it
pub enum Outcome {
    /// To [`Input::SetVolume`], [`Input::RemoveVolume`], [`Input::SetFallback`], [`Input::Complete`],
    /// [`Input::Reply`] and [`Input::Standing`]: the engine decided nothing but the events that it reports.
    Done,
    /// To [`Input::Complete`]: the reply is held until then.
    Held(Instant),
    /// To [`Input::AddVolume`]: the number of the volume.
    Added(VolumeId),
    /// To [`Input::Submit`]: the id of the request.
    Submitted(IoId),
    /// To [`Input::Dispatch`]: the next request for the device, or why there is none.
    Dispatched(Answer),
    /// To [`Input::Abort`]: whether the request was queued and is gone.
    Aborted(bool),
    /// To [`Input::SetConfig`], [`Input::Grants`] and [`Input::Timeout`]: what
    /// [`poll_timeout`](crate::Engine::poll_timeout) says from now on.
    Timeout(Option<Instant>),
}

/// A [`Dispatch`] that names the request by its id. The rest of the request stands in its [`Input::Submit`].
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

impl Outcome {
    /// The number that a new volume got.
    pub(crate) fn added(self) -> VolumeId {
        if let Self::Added(id) = self { id } else { other() }
    }

    /// The id that a new request got.
    pub(crate) fn submitted(self) -> IoId {
        if let Self::Submitted(id) = self { id } else { other() }
    }

    /// Until when the reply is held; `None`: it is not.
    pub(crate) fn held_until(self) -> Option<Instant> {
        if let Self::Held(until) = self { Some(until) } else { None }
    }

    /// Whether the request is gone.
    pub(crate) fn aborted(self) -> bool {
        if let Self::Aborted(gone) = self { gone } else { other() }
    }
}

/// Not reached: each method takes the outcome of the input that it made.
fn other() -> ! {
    unreachable!("this outcome is of another input")
}
