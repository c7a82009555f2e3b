//! The rules of the cluster that a test may break, to see that a checker finds it. A normal run breaks none.

use weir_leases::Terms;
use weir_model::Instant;

/// How the parts of a cluster are joined.
pub(super) trait Rules {
    /// Until when terms hold, as the engine is told.
    fn until(&self, terms: &Terms) -> Instant {
        terms.until
    }

    /// Whether a gateway that has been alone for long takes its fallback.
    fn takes_fallback(&self) -> bool {
        true
    }

    /// Whether the controller takes each of its grants for acknowledged as soon as it is sent.
    fn forgets_unacknowledged(&self) -> bool {
        false
    }

    /// How many times a gateway gives the array each request.
    fn copies(&self) -> u32 {
        1
    }

    /// Whether a gateway hears which of its requests the array has done.
    fn hears_answers(&self, _gateway: usize) -> bool {
        true
    }
}

/// The rules as they are.
#[derive(Debug)]
pub(super) struct Kept;

impl Rules for Kept {}
