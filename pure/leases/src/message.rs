//! The messages between gateways and their controller.
//!
//! A gateway opens a stream with its [`Hello`]. Then it sends [`Report`]s and acknowledgements, and the
//! controller sends [`Grants`]. Each direction keeps its order. Any message may be lost with the stream.

use serde::{Deserialize, Serialize};
use weir_control::{Grant, PortObservation};
use weir_model::Span;

/// The first message of a gateway on a stream: which volumes it serves, and what it holds.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct Hello {
    /// The run of the gateway: a number that the process draws when it starts, and that no other run has. It
    /// tells two processes of one name apart, and shows that a process has come back.
    pub run: u64,
    /// Its volumes.
    pub volumes: Vec<Held>,
    /// How much of its lease is left; zero if the lease is over.
    pub left: Span,
    /// Whether the gateway's pool is under the law of promises. Then it holds nothing, and there is no lease.
    pub is_of_promises: bool,
}

/// A volume at a gateway.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Held {
    /// The volume's name.
    pub volume: String,
    /// The grant that is in force.
    pub grant: Grant,
    /// The static part, which comes into force when the gateway has been alone for long.
    pub fallback: Grant,
}

/// What a gateway saw in the control interval that ended.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct Report {
    /// The reports of a stream are numbered from one; the [`Hello`] is number zero.
    pub number: u64,
    /// All volumes that the gateway serves, by name.
    pub volumes: Vec<(String, PortObservation)>,
}

/// What a gateway may do from now on; all of it comes into force at once.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Grants {
    /// Rises from message to message. The gateway acknowledges the number when the grants are in force.
    pub number: u64,
    /// The number of the report that this answers.
    pub answers: u64,
    /// How long the grants hold, from the sending of that report.
    pub lease: Span,
    /// How long after the arrival of this message a gateway that hears no more takes its whole static part.
    /// By then, all others were told to make room for it.
    pub alone_after: Span,
    /// What each volume may do.
    pub volumes: Vec<VolumeGrant>,
}

/// What a volume may do at a gateway.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct VolumeGrant {
    /// The volume's name.
    pub volume: String,
    /// What holds until the lease is over. From then on, the lesser of this and the fallback holds.
    pub grant: Grant,
    /// The volume's part of the gateway's static part.
    pub fallback: Grant,
}
