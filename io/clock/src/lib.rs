//! The one place that reads a clock.
//!
//! All code that decides takes `now` as an argument. The code that drives it takes `now` from a [`Clock`],
//! and is woken by an [`Alarm`]. Both exist once, so that no decision depends on a time that the driver did
//! not pass.

mod alarm;
mod clock;

pub use alarm::Alarm;
pub use clock::Clock;
