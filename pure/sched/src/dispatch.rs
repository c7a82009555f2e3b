//! What a scheduler answers when it is asked for the next request.

use weir_model::{Instant, Io};

/// What to do now, and if nothing, why.
///
/// The reasons are kept apart because they call for different things: a timer, a completion, a new request.
/// One that merges "empty" and "busy" leaves the driver to poll.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dispatch {
    /// Give this request to the device, and ask again.
    Issue(Io),
    /// Nothing may be issued before this exact instant, at which a rate gate opens, unless something new
    /// comes in.
    WaitUntil(Instant),
    /// A bound on the requests at the device holds what waits; a completion may change that.
    AtDepth {
        /// When, without a completion, the next request becomes past due, the next rate gate opens or the
        /// lane for background requests does; `None` if only a completion helps.
        recheck: Option<Instant>,
    },
    /// Nothing waits.
    Idle,
}
