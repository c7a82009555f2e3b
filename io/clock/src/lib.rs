//! The one place that reads a clock.
//!
//! Everything that decides takes `now` as an argument; what drives it takes `now` from a [`Clock`] and is
//! woken by an [`Alarm`]. Both exist once, so that no decision can be made on a time that nobody handed in.

mod alarm;
mod clock;

pub use alarm::Alarm;
pub use clock::Clock;
