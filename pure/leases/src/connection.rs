//! A gateway's stream, as the controller's driver knows it, and why a gateway does not get one.

use thiserror::Error;

/// One stream of a gateway: a number that the controller uses only once.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Connection(pub(crate) u64);

/// Why a gateway is not accepted.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum Refused {
    /// The configuration does not name it.
    #[error("gateway {name} is not configured at this controller; accepted: {accepted}")]
    Unknown {
        /// The gateway.
        name: String,
        /// The gateways that it names.
        accepted: String,
    },
    /// Another run of the gateway is connected.
    #[error("gateway {name} is connected already; accepted: one gateway of each name")]
    Taken {
        /// The gateway.
        name: String,
        /// The stream of the other run.
        by: Connection,
    },
    /// The gateway's pool is under another law than the controller's.
    #[error(
        "gateway {name} has control = \"{found}\" in this pool; accepted: control = \"{accepted}\", as in the \
         controller's file"
    )]
    OtherLaw {
        /// The gateway.
        name: String,
        /// The word of its law.
        found: &'static str,
        /// The word of the controller's law.
        accepted: &'static str,
    },
    /// The gateway serves more volumes than it may.
    #[error(
        "gateway {name} serves {found} volumes; accepted: at most {accepted}, as each takes a request of the gateway's part of \
         the array: name them in the controller's file"
    )]
    TooMany {
        /// The gateway.
        name: String,
        /// How many volumes it serves.
        found: usize,
        /// How many it may.
        accepted: usize,
    },
}
