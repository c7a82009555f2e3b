//! What a scheduler answers when it is asked for the next request.

use weir_model::{Instant, Io};

/// What to do now, and if nothing, why.
///
/// The reasons are kept apart because the driver waits for different things: a timer, a completion, or a new
/// request. If "empty" and "busy" were one answer, the driver would have to poll.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dispatch {
    /// Give this request to the device, and ask again.
    Issue(Io),
    /// Nothing may be issued before this exact instant, at which a rate gate opens, unless a new request
    /// comes in.
    WaitUntil(Instant),
    /// A bound on the requests at the device, or the pace of background requests, holds the waiting requests
    /// back; a completion may change that.
    AtDepth {
        /// When to ask again if no completion comes before: the next request becomes past due, or the next
        /// rate gate, the bound of background requests or their lane opens. `None` if only a completion or
        /// other knobs help.
        recheck: Option<Instant>,
    },
    /// Nothing waits.
    Idle,
}
