//! The vocabulary of weir: time, quantities, requests and service-level objectives.
//!
//! All other crates speak in these types, so that no unit can be forgotten: an [`Instant`] is not a [`Span`],
//! and neither is a number. The crate decides nothing and reads nothing; time and randomness always come in
//! as arguments.
//!
//! All types can be written down and read back (serde). A value that is read obeys the same rules as a value
//! that is made: a rate of zero is an error in a file too.

mod depth;
mod goal;
mod histogram;
mod io;
mod objective;
mod rate;
mod share;
mod slo;
mod time;

pub use depth::QueueDepth;
pub use goal::{NoGoal, SloGoal};
pub use histogram::LatencyHistogram;
pub use io::{Completion, Direction, Io, IoId, IoKind, VolumeId};
pub use objective::{NoPercentile, NoPriority, Objective, Percentile, Priority, Target};
pub use rate::{Arrivals, Bandwidth, Iops, MilliIops, NoRate, Offered};
pub use share::{NoShare, TimeShare};
pub use slo::{Slo, SloError, SloPoint, Verdict};
pub use time::{Instant, Span};
