//! The manual, held to what it says: what a reader copies from it is run as it stands there.
//!
//! The commands for Linux's own client are run in `vm`.

pub(crate) mod clients;
mod configurations;
mod metrics;
mod units;
