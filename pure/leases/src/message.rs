//! What gateways and their controller tell each other.
//!
//! A stream is opened by the gateway's [`Hello`]. Then [`Report`]s and acknowledgements go up and [`Grants`]
//! come down, each in order; any of them may be lost with the stream.

use serde::{Deserialize, Serialize};
use weir_control::{Grant, PortObservation};
use weir_model::Span;

/// The first that a gateway says on a stream: what it serves and what it may do until it is told otherwise.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct Hello {
    /// Which run of the gateway says it: a number that no other run has, drawn when it starts. Two processes
    /// with one name are told apart by it, and one that comes back is known again.
    pub run: u64,
    /// Its volumes.
    pub volumes: Vec<Held>,
    /// For how long from now on it may do what it was granted; zero if that time is over.
    pub left: Span,
}

/// A volume at a gateway.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Held {
    /// The volume's name.
    pub volume: String,
    /// What is in force.
    pub grant: Grant,
    /// What will be once the gateway has been alone for long.
    pub fallback: Grant,
}

/// What a gateway saw in the control interval that ended.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct Report {
    /// The reports of a stream are numbered from one; the [`Hello`] is number zero.
    pub number: u64,
    /// By the volume's name: all that the gateway serves.
    pub volumes: Vec<(String, PortObservation)>,
}

/// What a gateway may do from now on; all of it comes into force at once.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Grants {
    /// Rises from one to the next. The gateway acknowledges it as soon as it is in force.
    pub number: u64,
    /// The number of the report that this answers.
    pub answers: u64,
    /// How long it holds, from the sending of that report.
    pub lease: Span,
    /// From when it is accepted until a gateway that is told no more may assume that all others were told to
    /// make room for its fallback.
    pub alone_after: Span,
    /// What each volume may do.
    pub volumes: Vec<VolumeGrant>,
}

/// What a volume may do at a gateway.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct VolumeGrant {
    /// The volume's name.
    pub volume: String,
    /// Until the lease is over. From then on, the lesser of this and the fallback.
    pub grant: Grant,
    /// The part that is always left for this gateway when it is away.
    pub fallback: Grant,
}
