//! What an operator can ask: the state of each resource, and what is out of reach.

use weir_model::Span;

use crate::limits::LeftOut;
use crate::members::Standing;
use crate::resource::ResourceId;

/// The state of everything.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Report {
    /// Each resource.
    pub resources: Vec<ResourceReport>,
    /// Each target whose initiators no delay can reach.
    pub out_of_reach: Vec<OutOfReach>,
    /// What is not looked at.
    pub left_out: LeftOut,
}

/// A target whose initiators no delay can reach.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OutOfReach {
    /// The target.
    pub target: String,
    /// Why.
    pub why: String,
}

/// What the law of a resource saw and decided last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Guarded<'a> {
    /// What names the resource for as long as it exists.
    pub id: &'a ResourceId,
    /// How long its reads wait: the EWMA that the law works with.
    pub wait: Span,
    /// How long they should wait at most.
    pub threshold: Span,
    /// The delay of the packets to its members; zero while nobody is delayed.
    pub delay: Span,
}

/// The state of a resource.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ResourceReport {
    /// What names it for as long as it exists.
    pub id: ResourceId,
    /// What people call it.
    pub name: String,
    /// How long its reads wait: the EWMA that the law works with.
    pub wait: Span,
    /// How long those waited that finished in the last interval, on average; `None` if none did.
    pub last_wait: Option<Span>,
    /// How long they should wait at most.
    pub threshold: Span,
    /// The delay of the packets to its members; zero while nobody is delayed.
    pub delay: Span,
    /// Whether the delay has been the longest that is allowed for a second.
    pub ceiling_reached: bool,
    /// The bytes a second above which an initiator becomes a member.
    pub write_limit: u64,
    /// All initiators that use it.
    pub initiators: Vec<InitiatorReport>,
}

/// An initiator at a resource.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InitiatorReport {
    /// Its name.
    pub name: String,
    /// How many bytes a second it writes there, as an EWMA.
    pub rate: u64,
    /// Whether it is a member, and why.
    pub standing: Standing,
    /// How many connections a delay reaches, if it is a member.
    pub connections: usize,
}

impl ResourceReport {
    /// The initiators whose packets are delayed while the delay is above zero.
    pub fn members(&self) -> impl Iterator<Item = &InitiatorReport> {
        self.initiators.iter().filter(|initiator| initiator.standing.is_member())
    }
}
