//! The manual, checked against the program: the text that a reader copies from it is run exactly as it stands
//! there.
//!
//! The commands for Linux's own client are run in `vm`.

pub(crate) mod clients;
mod configurations;
mod metrics;
mod units;
