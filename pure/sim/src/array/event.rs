//! The events that an array waits for, and what its units tell it.

use weir_model::Instant;

use crate::event_queue::EventQueue;

/// An event inside an array.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Event {
    /// A request has come through its port, and the storage controller has handled it.
    Arrived(u32),
    /// The answer to a request has gone through its port.
    Answered(u32),
    /// An operation on a member ends, unless the member has failed in between. Then the member has another
    /// generation.
    Operation { unit: u16, generation: u16, member: u32, operation: u32 },
    /// The oldest row of a unit's NVRAM may have become too old.
    FlushDue { unit: u16 },
    /// The next part of a member is to be rebuilt, if the member still has this generation.
    RebuildDue { unit: u16, generation: u16 },
}

/// A unit has done a part of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PartDone {
    pub(crate) request: u32,
    pub(crate) ok: bool,
}

/// What each call gives a unit: the time, and the places for the events and answers that follow.
#[derive(Debug)]
pub(crate) struct Turn<'a> {
    pub(crate) now: Instant,
    pub(crate) events: &'a mut EventQueue<Event>,
    pub(crate) done: &'a mut Vec<PartDone>,
}
